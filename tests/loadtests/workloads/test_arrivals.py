from __future__ import annotations

from itertools import pairwise

import pytest

from loadtests.workloads.load_generator import AppLoad, Arrival, LoadPlan, RateStep, arrival_times


def times(load: AppLoad, arrival: Arrival = Arrival.POISSON, seed: int = 1, duration: float = 100) -> list[float]:
    return list(arrival_times(load, arrival, seed, duration))


def steady(rate: float, app: str = "a") -> AppLoad:
    return AppLoad(app, (RateStep(0, rate),))


def test_the_seed_and_the_app_decide_everything() -> None:
    assert times(steady(10)) == times(steady(10))
    assert times(steady(10)) != times(steady(10), seed=2)
    assert times(steady(10)) != times(steady(10, app="b"))


def test_poisson_has_its_mean_and_its_spread() -> None:
    gaps = [later - earlier for earlier, later in pairwise(times(steady(50), duration=200))]
    mean = sum(gaps) / len(gaps)
    deviation = (sum((gap - mean) ** 2 for gap in gaps) / len(gaps)) ** 0.5
    assert mean == pytest.approx(1 / 50, rel=0.05)
    assert deviation == pytest.approx(mean, rel=0.08)


def test_constant_is_constant() -> None:
    found = times(steady(4), Arrival.CONSTANT, duration=10)
    assert len(found) == 40
    assert [later - earlier for earlier, later in pairwise(found)] == pytest.approx([0.25] * 39)


def test_rates_rise_in_steps_and_a_later_step_changes_nothing_before_it() -> None:
    rising = AppLoad("a", (RateStep(0, 10), RateStep(50, 40), RateStep(500, 99)))
    found = times(rising)
    early = [at for at in found if at < 50]
    assert early == pytest.approx([at for at in times(steady(10)) if at < 50])
    assert len(found) - len(early) == pytest.approx(2000, rel=0.1)
    assert found == sorted(found)
    assert found[-1] < 100


def test_a_rate_of_zero_is_a_pause() -> None:
    paused = AppLoad("a", (RateStep(0, 10), RateStep(20, 0), RateStep(80, 10)))
    assert not [at for at in times(paused) if 20 < at < 80]


def test_the_plan_merges_the_apps_in_order() -> None:
    plan = LoadPlan((steady(5, "a"), steady(15, "b")), seed=3, duration=20)
    found = list(plan.arrivals())
    assert found == sorted(found)
    assert {app for _, app in found} == {"a", "b"}
    assert [at for at, app in found if app == "b"] == times(steady(15, "b"), seed=3, duration=20)
