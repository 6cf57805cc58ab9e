"""The goal, item by item: reached, not reached, or not to be judged from what was measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from loadtests.demo.compare import Interval
from loadtests.experiment.comparison import compare
from loadtests.experiment.design import LEAST_SEEDS, OUR_LIVE, Arm, Phase, Step
from loadtests.experiment.statistics import Results, beyond, rates_of, window


class Verdict(StrEnum):
    REACHED = "reached"
    NOT_REACHED = "not reached"
    NOT_JUDGED = "cannot be judged"
    REPORTED = "reported"


@dataclass(frozen=True, slots=True)
class Item:
    what: str
    verdict: Verdict
    why: str


def judge(results: Results) -> list[Item]:
    """Live with the moves included, and as the paper's phase B tells it."""
    first = results.first_failing()
    if first is None:
        nothing = Item("higher availability", Verdict.NOT_JUDGED, "the default placement did not fail at any rate")
        return [nothing, _homeless(results), _lost(results)]
    return [
        _higher(results, OUR_LIVE, "live, moves included", first),
        _higher(results, OUR_LIVE.frozen(), "phase B", first),
        _not_worse(results),
        _homeless(results),
        _lost(results),
    ]


def _higher(results: Results, ours: Arm, how: str, first: Step) -> Item:
    steps = window(first)
    what = f"availability ({how}) higher than the default placement's from {rates_of(steps)}"
    if not steps:
        why = f"the default placement first fails at {first.paper_rate}, where the nodes are all but full"
        return Item(what, Verdict.NOT_JUDGED, why)
    return _judged(results, ours, steps, what, lambda interval: interval.low > 0)


def _not_worse(results: Results) -> Item:
    what = f"live availability not significantly worse from {rates_of(beyond())}"
    return _judged(results, OUR_LIVE, beyond(), what, lambda interval: interval.high >= 0)


def _judged(results: Results, ours: Arm, steps: Sequence[Step], what: str, reached: Callable[[Interval], bool]) -> Item:
    comparison = compare(results, ours, steps)
    interval = comparison.interval
    if interval is None or len(comparison.differences) < LEAST_SEEDS:
        why = f"{len(comparison.differences)} of {comparison.seeds} seeds count; {LEAST_SEEDS} are needed"
        return Item(what, Verdict.NOT_JUDGED, why)
    return Item(what, Verdict.REACHED if reached(interval) else Verdict.NOT_REACHED, comparison.told())


def _homeless(results: Results) -> Item:
    live = [record for record in results.records if record.phase is Phase.LIVE and record.planner == OUR_LIVE.planner]
    what = "no pod left without a node by our default planner"
    if not live:
        return Item(what, Verdict.NOT_JUDGED, "no live run was measured")
    left = sum(record.without_node + record.dumped for record in live)
    verdict = Verdict.REACHED if left == 0 else Verdict.NOT_REACHED
    return Item(what, verdict, f"{left} in {len(live)} valid steps")


def _lost(results: Results) -> Item:
    """Reported, not judged: moves without loss are another issue's."""
    live = [record for record in results.records if record.phase is Phase.LIVE and record.planner == OUR_LIVE.planner]
    moves, lost = sum(record.moves for record in live), sum(record.lost_in_moves for record in live)
    why = f"{lost} requests in {moves} moves" + (f": {lost / moves:.1f} per move" if moves else "")
    return Item("requests lost per move", Verdict.REPORTED, why)
