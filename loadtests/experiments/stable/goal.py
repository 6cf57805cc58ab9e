"""Judges the goal: an arm against the default placement, pair by pair over a range of steps, item by item."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from statistics import fmean

from loadtests.experiments.stable.design import (
    FROZEN_AT,
    KUBE_SCHEDULER,
    LEAST_SEEDS,
    OUR_LIVE,
    PREDICTIVE_LIVE,
    STEPS,
    Arm,
    Phase,
    Step,
)
from loadtests.experiments.stable.results import Results, beyond, interval_of, rates_of, window
from loadtests.paired_statistics import Interval

LEAST_VALID = Fraction(2, 3)
"""Of a seed's pairs of steps; a mean over fewer would be that of another range."""
TOLERATED = 0.02
"""Availability by which a version may be worse than an earlier one, at most."""


@dataclass(frozen=True, slots=True)
class ArmComparison:
    differences: Mapping[int, float]
    """Mean over the valid pairs of steps, by seed; only seeds that count."""
    seeds: int
    """That were measured, counted or not."""
    pairs: int
    """Of steps that are valid in both arms, of the seeds that count."""
    possible: int
    moved: bool
    """Whether the differences may come from moves."""

    @property
    def interval(self) -> Interval | None:
        return interval_of(self.differences.values())

    def describe(self) -> str:
        number = len(self.differences)
        if not number:
            return f"none of {_seeds(self.seeds)} counts"
        over = _seeds(number) if number == self.seeds else f"{number} of {_seeds(self.seeds)}"
        return f"{self._figures()} over {over}, {self.pairs} of {self.possible} pairs of steps valid"

    def _figures(self) -> str:
        """Nothing but zeros is no finding about moves when there were none."""
        if not self.moved and not any(self.differences.values()):
            return "no move was made: no difference"
        mean = f"mean difference {fmean(self.differences.values()):+.4f}"
        interval = self.interval
        return f"{mean}, 95 % interval {interval.low:+.4f} .. {interval.high:+.4f}" if interval else mean


def compare(results: Results, arm: Arm, steps: Sequence[Step], other: Arm = KUBE_SCHEDULER) -> ArmComparison:
    seeds = results.seeds(arm)
    by_seed = {seed: _pairs(results, arm, seed, steps, other) for seed in sorted(seeds)}
    counted = {seed: pairs for seed, pairs in by_seed.items() if _counts(results, arm, seed, steps, pairs)}
    return ArmComparison(
        differences={seed: fmean(pairs.values()) for seed, pairs in counted.items()},
        seeds=len(seeds),
        pairs=sum(map(len, counted.values())),
        possible=len(counted) * len(steps),
        moved=_moved(results, arm, steps) or _moved(results, other, steps),
    )


def _pairs(results: Results, arm: Arm, seed: int, steps: Sequence[Step], other: Arm) -> dict[int, float]:
    """By rate."""
    found = {step.paper_rate: results.differences(arm, step, other) for step in steps}
    return {rate: differences[seed] for rate, differences in found.items() if seed in differences}


def _counts(results: Results, arm: Arm, seed: int, steps: Sequence[Step], pairs: Mapping[int, float]) -> bool:
    """Enough of its pairs are valid, and none that a move ended in is left out: moves cost, and would look free.

    A step that was not measured may have held a move.
    """
    without_move = {record.paper_rate for record in results.measured(arm) if record.seed == seed and not record.moves}
    left_out = {step.paper_rate for step in steps} - set(pairs)
    return bool(pairs) and len(pairs) >= LEAST_VALID * len(steps) and left_out <= without_move


def _moved(results: Results, arm: Arm, steps: Sequence[Step]) -> bool:
    """Whether the live run made a move that these steps could show; a frozen placement is what it had at one step."""
    last = FROZEN_AT if arm.phase is Phase.FROZEN else max((step.paper_rate for step in steps), default=0)
    live = results.measured(Arm(Phase.LIVE, arm.planner, arm.threshold))
    return any(record.moves for record in live if record.paper_rate <= last)


def _seeds(number: int) -> str:
    return "1 seed" if number == 1 else f"{number} seeds"


class GoalVerdict(StrEnum):
    REACHED = "reached"
    NOT_REACHED = "not reached"
    NOT_JUDGED = "cannot be judged"
    REPORTED = "reported"


@dataclass(frozen=True, slots=True)
class Item:
    what: str
    verdict: GoalVerdict
    why: str


def judge(results: Results) -> list[Item]:
    """Live with the moves included, and as the paper's phase B tells it."""
    return [
        *_availability(results),
        *_earlier(results),
        *_predictive(results),
        _without_node(results),
        *_moves(results),
    ]


def _availability(results: Results) -> list[Item]:
    first = results.first_failing()
    if first is None:
        return [Item("higher availability", GoalVerdict.NOT_JUDGED, "the default placement did not fail at any rate")]
    return [
        _higher(results, OUR_LIVE, "live, moves included", first),
        _higher(results, OUR_LIVE.frozen(), "phase B", first),
        _not_worse(results),
    ]


def _earlier(results: Results) -> list[Item]:
    """Against the controllers of other revisions, over all steps."""
    return [
        _judged(
            results,
            OUR_LIVE,
            STEPS,
            f"live availability at most {TOLERATED:g} below that of {arm.planner} over all steps",
            lambda interval: interval.low > -TOLERATED,
            arm,
        )
        for arm in results.arms()
        if arm.revision
    ]


def _predictive(results: Results) -> list[Item]:
    """Against ours that waits for failures. Reported: predictive is an option, not the default."""
    if PREDICTIVE_LIVE not in results.arms():
        return []
    ranges = [step for step in STEPS if step.paper_rate <= FROZEN_AT], STEPS
    return [
        Item(
            f"live availability of {PREDICTIVE_LIVE.name} less that of ours, {rates_of(steps)}",
            GoalVerdict.REPORTED,
            compare(results, PREDICTIVE_LIVE, steps, OUR_LIVE).describe(),
        )
        for steps in ranges
    ]


def _higher(results: Results, ours: Arm, how: str, first: Step) -> Item:
    steps = window(first)
    what = f"availability ({how}) higher than the default placement's from {rates_of(steps)}"
    if not steps:
        why = f"the default placement first fails at {first.paper_rate}, where the nodes are all but full"
        return Item(what, GoalVerdict.NOT_JUDGED, why)
    return _judged(results, ours, steps, what, lambda interval: interval.low > 0)


def _not_worse(results: Results) -> Item:
    what = f"live availability not significantly worse from {rates_of(beyond())}"
    return _judged(results, OUR_LIVE, beyond(), what, lambda interval: interval.high >= 0)


def _judged(
    results: Results,
    ours: Arm,
    steps: Sequence[Step],
    what: str,
    reached: Callable[[Interval], bool],
    other: Arm = KUBE_SCHEDULER,
) -> Item:
    comparison = compare(results, ours, steps, other)
    interval = comparison.interval
    if interval is None or len(comparison.differences) < LEAST_SEEDS:
        why = f"{len(comparison.differences)} of {comparison.seeds} seeds count; {LEAST_SEEDS} are needed"
        return Item(what, GoalVerdict.NOT_JUDGED, why)
    return Item(what, GoalVerdict.REACHED if reached(interval) else GoalVerdict.NOT_REACHED, comparison.describe())


def _without_node(results: Results) -> Item:
    live = [record for record in results.records if record.phase is Phase.LIVE and record.planner == OUR_LIVE.planner]
    what = "no pod left without a node by our default planner"
    if not live:
        return Item(what, GoalVerdict.NOT_JUDGED, "no live run was measured")
    left = sum(record.without_node + record.dumped for record in live)
    verdict = GoalVerdict.REACHED if left == 0 else GoalVerdict.NOT_REACHED
    return Item(what, verdict, f"{left} in {len(live)} valid steps")


def _moves(results: Results) -> list[Item]:
    """Of ours, its earlier versions and its other trigger. Reported, not judged: the simulation has no surge."""
    arms = [arm for arm in results.arms() if arm in (OUR_LIVE, PREDICTIVE_LIVE) or arm.revision]
    return [item for arm in arms for item in (_moves_per_run(results, arm), _lost(results, arm))]


def _moves_per_run(results: Results, arm: Arm) -> Item:
    """Steps that are left out of other figures count here."""
    runs, moves = len(results.seeds(arm)), sum(record.moves for record in results.measured(arm))
    return Item(f"moves per run, {arm.name}", GoalVerdict.REPORTED, f"{moves / runs:.1f} ({moves} in {runs} runs)")


def _lost(results: Results, arm: Arm) -> Item:
    found = results.measured(arm)
    moves, lost = sum(record.moves for record in found), sum(record.lost_in_moves for record in found)
    why = f"{lost} requests in {moves} moves" + (f": {lost / moves:.1f} per move" if moves else "")
    return Item(f"requests lost to moves (refused, cut off, no endpoint), {arm.name}", GoalVerdict.REPORTED, why)
