"""The load of a workload one minute ahead, as it is sampled while a controller runs."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from reactor.forecasts.load_ahead import KEPT, SILENT, STEP, LoadAhead

WEB = "shop/ReplicaSet/web"
START = 1_700_000_000.0


def sawtooth(second: float) -> float:
    """Every five minutes a jump to 2 cores, which fall to nothing."""
    return 2.0 * (1 - second % 300 / 300)


def sampled(until: float, every: float = 2.0, load: Callable[[float], float] = sawtooth) -> LoadAhead:
    ahead = LoadAhead()
    second = 0.0
    while second <= until:
        ahead.add(START + second, {WEB: load(second)})
        second += every
    return ahead


@pytest.mark.parametrize("every", [2.0, 15.0])
def test_the_second_jump_is_seen_half_a_minute_before(every: float) -> None:
    most = sampled(570.0, every).most(WEB, START + 570)
    assert most == pytest.approx(2.0, abs=0.15)


def test_it_is_never_less_than_what_is_measured_now() -> None:
    assert sampled(100.0).most(WEB, START + 100) == pytest.approx(sawtooth(100))
    assert sampled(450.0).most(WEB, START + 450) == pytest.approx(sawtooth(450), abs=0.02)


def test_what_was_not_measured_lately_has_no_answer() -> None:
    ahead = sampled(100.0)
    assert ahead.most(WEB, START + 100 + 2 * SILENT) is None
    assert ahead.most("shop/ReplicaSet/other", START + 100) is None
    ahead.add(START + 100 + 2 * SILENT, {})
    assert ahead.most(WEB, START + 100) is None, "it is forgotten"


def test_the_samples_of_a_workload_are_bounded() -> None:
    ahead = sampled(KEPT + 1000, every=STEP, load=lambda _second: 1.0)
    ahead.add(START + 1e9, {WEB: 3.0})
    assert ahead.most(WEB, START + 1e9) == 3.0
