from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from loadtests.experiments.stable.design import OUR_LIVE, PREDICTIVE_LIVE, STEPS, earlier_live
from loadtests.experiments.stable.driver import Machine
from loadtests.experiments.stable.goal import GoalVerdict, Item, compare, judge
from loadtests.experiments.stable.measurement import saturated
from loadtests.experiments.stable.records import StepRecord
from loadtests.experiments.stable.results import Results, beyond, interval_of, window
from tests.support.experiment import failing, series

SEEDS = (1, 2, 3)


def by_what(items: list[Item], word: str) -> Item:
    return next(item for item in items if word in item.what)


def test_the_default_first_fails_where_its_mean_does() -> None:
    results = Results.of([*failing(1), *failing(2, at=100)])
    first = results.first_failing()
    assert first is not None
    assert first.paper_rate == 90
    assert [step.paper_rate for step in window(first)] == [90, 100, 110]
    assert [step.paper_rate for step in beyond()] == [120, 130, 140, 150]


def test_a_clear_gain_in_every_seed_reaches_the_goal() -> None:
    ours = [record for seed in (1, 2, 3) for record in series(OUR_LIVE, seed, {150: 0.8})]
    ours += [record for seed in (1, 2) for record in series(OUR_LIVE.frozen(), seed, {})]
    items = judge(Results.of([*ours, *(record for seed in (1, 2, 3) for record in failing(seed))]))
    assert by_what(items, "live").verdict is GoalVerdict.REACHED
    assert "90 to 110" in by_what(items, "live").what
    assert by_what(items, "phase B").verdict is GoalVerdict.NOT_JUDGED
    assert by_what(items, "worse").verdict is GoalVerdict.REACHED
    assert by_what(items, "without a node").verdict is GoalVerdict.REACHED


def test_a_gain_that_may_be_chance_does_not() -> None:
    ours = [
        record
        for seed, value in ((1, 0.99), (2, 0.83), (3, 0.7))
        for record in series(OUR_LIVE, seed, dict.fromkeys(range(90, 151, 10), value))
    ]
    items = judge(Results.of([*ours, *(record for seed in (1, 2, 3) for record in failing(seed))]))
    assert by_what(items, "live").verdict is GoalVerdict.NOT_REACHED


def test_two_seeds_are_too_few() -> None:
    ours = [record for seed in (1, 2) for record in series(OUR_LIVE, seed, {})]
    items = judge(Results.of([*ours, *failing(1), *failing(2)]))
    assert by_what(items, "live").verdict is GoalVerdict.NOT_JUDGED


def test_invalid_steps_are_counted_and_left_out() -> None:
    ours = [record for seed in (1, 2, 3) for record in series(OUR_LIVE, seed, {}, valid=False)]
    results = Results.of([*ours, *(record for seed in (1, 2, 3) for record in failing(seed))])
    assert results.invalid == 33
    assert by_what(judge(results), "live").verdict is GoalVerdict.NOT_JUDGED


def live_with(change: Callable[[StepRecord], StepRecord]) -> Results:
    """Three seeds of ours, better than the default; the third is changed."""
    ours = [record for seed in (1, 2) for record in series(OUR_LIVE, seed, {})]
    return Results.of([*ours, *map(change, series(OUR_LIVE, 3, {})), *(one for seed in SEEDS for one in failing(seed))])


def test_a_seed_with_a_third_of_its_window_invalid_still_counts_and_the_text_says_so() -> None:
    item = by_what(judge(live_with(lambda one: replace(one, valid=one.paper_rate != 100))), "live")
    assert item.verdict is GoalVerdict.REACHED
    assert item.why.endswith("over 3 seeds, 8 of 9 pairs of steps valid")


@pytest.mark.parametrize(
    "change",
    [
        lambda one: replace(one, valid=one.paper_rate not in (90, 100)),
        lambda one: replace(one, valid=one.paper_rate != 100, moves=int(one.paper_rate == 100)),
    ],
    ids=["one step of three is valid", "the step of the move is not"],
)
def test_a_seed_that_lacks_what_matters_does_not_count(change: Callable[[StepRecord], StepRecord]) -> None:
    item = by_what(judge(live_with(change)), "live")
    assert (item.verdict, item.why) == (GoalVerdict.NOT_JUDGED, "2 of 3 seeds count; 3 are needed")


def test_the_step_of_a_move_has_to_be_valid_in_the_other_arm_too() -> None:
    ours = [record for seed in SEEDS for record in series(OUR_LIVE, seed, {}, moves=1)]
    default = [replace(one, valid=(one.seed, one.paper_rate) != (1, 110)) for seed in SEEDS for one in failing(seed)]
    found = compare(Results.of([*ours, *default]), OUR_LIVE, [step for step in STEPS if 90 <= step.paper_rate <= 110])
    assert set(found.differences) == {2, 3}
    assert found.describe().endswith("over 2 of 3 seeds, 6 of 6 pairs of steps valid")


def test_nothing_but_zeros_without_a_move_is_said_so() -> None:
    still = [replace(one, phase=arm.phase, planner=arm.planner, threshold=arm.threshold)
             for seed in SEEDS for one in failing(seed) for arm in (OUR_LIVE, OUR_LIVE.frozen())]  # fmt: skip
    default = [one for seed in SEEDS for one in failing(seed)]
    text = compare(Results.of([*still, *default]), OUR_LIVE.frozen(), STEPS).describe()
    assert text == "no move was made: no difference over 3 seeds, 33 of 33 pairs of steps valid"
    moving = [replace(one, moves=1) for one in still]
    assert "+0.0000" in compare(Results.of([*moving, *default]), OUR_LIVE.frozen(), STEPS).describe()


def test_a_homeless_pod_fails_the_goal_and_losses_are_reported() -> None:
    ours = series(OUR_LIVE, 1, {}, without_node=1, moves=2, lost_in_moves=5)
    items = judge(Results.of([*ours, *failing(1)]))
    assert by_what(items, "without a node").verdict is GoalVerdict.NOT_REACHED
    assert by_what(items, "lost").why == "55 requests in 22 moves: 2.5 per move"
    assert by_what(items, "moves per run").why == "22.0 (22 in 1 runs)"


@pytest.mark.parametrize(("worse_by", "verdict"), [(0.0, GoalVerdict.REACHED), (0.05, GoalVerdict.NOT_REACHED)])
def test_an_earlier_version_is_compared_seed_by_seed(worse_by: float, verdict: GoalVerdict) -> None:
    earlier = earlier_live("abc1234")
    rates = {step.paper_rate: 0.99 for step in STEPS}
    below = {rate: value - worse_by for rate, value in rates.items()}
    records = [
        one for seed in SEEDS for one in (*series(OUR_LIVE, seed, below, moves=1), *series(earlier, seed, rates))
    ]
    items = judge(Results.of([*records, *(one for seed in SEEDS for one in failing(seed))]))
    assert by_what(items, "stable@abc1234 over all steps").verdict is verdict
    assert by_what(items, "moves per run, live stable@abc1234 0.9").why == "0.0 (0 in 3 runs)"


def test_predictive_is_compared_with_ours_up_to_120_and_over_all_steps() -> None:
    late = {step.paper_rate: 0.9 if step.paper_rate > 120 else 1.0 for step in STEPS}
    records = [
        one for seed in SEEDS for one in (*series(OUR_LIVE, seed, {}, moves=1), *series(PREDICTIVE_LIVE, seed, late))
    ]
    items = judge(Results.of([*records, *(one for seed in SEEDS for one in failing(seed))]))
    assert "mean difference +0.0000" in by_what(items, "less that of ours, 50 to 120").why
    assert "mean difference -0.0273" in by_what(items, "less that of ours, 50 to 150").why
    assert by_what(items, f"moves per run, {PREDICTIVE_LIVE.name}").why == "0.0 (0 in 3 runs)"


def test_one_difference_has_no_interval() -> None:
    assert interval_of([0.1]) is None
    found = interval_of([0.1, 0.2, 0.3])
    assert found is not None
    assert found.mean == pytest.approx(0.2)
    assert found.low < 0


def make_machine(idle: float, delay_ms: float | None = 0.3, late_ms: float = 0.0, unsent: float = 0.0) -> Machine:
    return Machine(outside_idle=idle, outside=0.75, late_ms=late_ms, unsent=unsent, delay_ms=delay_ms)


@pytest.mark.parametrize(
    ("machine", "is_saturated"),
    [
        (make_machine(0.4), False),
        (make_machine(0.4, delay_ms=9.0), False),
        (make_machine(-0.2, delay_ms=9.0), True),
        (make_machine(-0.2, delay_ms=0.3), False),
        (make_machine(0.4, delay_ms=None), True),
        (make_machine(0.4, late_ms=80.0), True),
        (make_machine(0.4, unsent=0.1), True),
    ],
)
def test_a_machine_is_saturated_when_the_lab_had_to_wait_for_it(machine: Machine, is_saturated: bool) -> None:
    assert saturated(machine) is is_saturated
