"""The goal, item by item: reached, not reached, or not to be judged from what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from loadtests.demo.compare import Interval
from loadtests.experiment.design import OUR_LIVE, Arm, Phase, Step
from loadtests.experiment.statistics import Results, beyond, interval_of, window

LEAST_SEEDS = 3


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
    what = f"availability ({how}) higher than the default placement's from {_rates(steps)}"
    if not steps:
        why = f"the default placement first fails at {first.paper_rate}, where the nodes are all but full"
        return Item(what, Verdict.NOT_JUDGED, why)
    differences = results.differences(ours, steps)
    interval = interval_of(differences.values())
    if interval is None or len(differences) < LEAST_SEEDS:
        return Item(what, Verdict.NOT_JUDGED, f"valid pairs of {len(differences)} seeds; {LEAST_SEEDS} are needed")
    verdict = Verdict.REACHED if interval.low > 0 else Verdict.NOT_REACHED
    return Item(what, verdict, f"{_told(interval)} over {len(differences)} seeds")


def _not_worse(results: Results) -> Item:
    steps = beyond()
    what = f"live availability not significantly worse from {_rates(steps)}"
    differences = results.differences(OUR_LIVE, steps)
    interval = interval_of(differences.values())
    if interval is None or len(differences) < LEAST_SEEDS:
        return Item(what, Verdict.NOT_JUDGED, f"valid pairs of {len(differences)} seeds; {LEAST_SEEDS} are needed")
    verdict = Verdict.NOT_REACHED if interval.high < 0 else Verdict.REACHED
    return Item(what, verdict, f"{_told(interval)} over {len(differences)} seeds")


def _homeless(results: Results) -> Item:
    live = [record for record in results.records if record.phase is Phase.LIVE and record.planner == OUR_LIVE.planner]
    what = "no pod left without a node by our default planner"
    if not live:
        return Item(what, Verdict.NOT_JUDGED, "no live run was measured")
    left = sum(record.without_node + record.dumped for record in live)
    verdict = Verdict.REACHED if left == 0 else Verdict.NOT_REACHED
    return Item(what, verdict, f"{left} in {len(live)} steps")


def _lost(results: Results) -> Item:
    """Reported, not judged: moves without loss are another issue's."""
    live = [record for record in results.records if record.phase is Phase.LIVE and record.planner == OUR_LIVE.planner]
    moves, lost = sum(record.moves for record in live), sum(record.lost_in_moves for record in live)
    why = f"{lost} requests in {moves} moves" + (f": {lost / moves:.1f} per move" if moves else "")
    return Item("requests lost per move", Verdict.REPORTED, why)


def _rates(steps: Sequence[Step]) -> str:
    return f"{steps[0].paper_rate} to {steps[-1].paper_rate}" if steps else "nowhere"


def _told(interval: Interval) -> str:
    return f"mean difference {interval.mean:+.4f}, 95 % interval {interval.low:+.4f} .. {interval.high:+.4f}"
