"""Better or worse than doing nothing, here and in KSE's recorded runs, by one rule; and the goal."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from statistics import fmean, stdev

from loadtests.experiments.kse.arms import GREEDY, NONE, OURS, REFINE
from loadtests.experiments.kse.design import Scenario, scenarios
from loadtests.experiments.kse.results import Run

RECORDED = Path(__file__).parent / "data" / "results.csv"
_JUDGED = (NONE, GREEDY, REFINE, OURS)
_ALGORITHMS = {"kube-scheduler": NONE, "kse-GreedyLB": GREEDY, "kse-RefineLB": REFINE}


class Change(StrEnum):
    BETTER = "better"
    SAME = "same"
    WORSE = "worse"


@dataclass(frozen=True, slots=True)
class Measured:
    """Means over the repeats of one arm on one scenario."""

    imbalance: float
    spread: float
    """Standard deviation of the imbalance over the repeats."""
    moves: float
    availability: float
    p95_ms: float
    repeats: int

    def compared_with(self, nothing: Measured) -> Change:
        """The rule: the intervals mean +/- spread do not overlap."""
        if self.imbalance + self.spread < nothing.imbalance - nothing.spread:
            return Change.BETTER
        if self.imbalance - self.spread > nothing.imbalance + nothing.spread:
            return Change.WORSE
        return Change.SAME


Results = Mapping[tuple[str, str], Measured]
"""By the names of scenario and arm."""


def measured(runs: Iterable[Run]) -> Results:
    grouped: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        grouped.setdefault((run.scenario, run.arm), []).append(run)
    return {key: _measured(found) for key, found in grouped.items()}


def _measured(runs: list[Run]) -> Measured:
    imbalances = [run.imbalance for run in runs]
    return Measured(
        fmean(imbalances),
        stdev(imbalances) if len(runs) > 1 else 0.0,
        fmean(run.moves for run in runs),
        fmean(run.availability for run in runs),
        fmean(run.p95_ms for run in runs),
        len(runs),
    )


@cache
def recorded() -> Results:
    """KSE's published raw data, recomputed: 2 x 32 scenarios x 3 algorithms, 10 runs each."""
    found = {}
    with RECORDED.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            scenario = Scenario(
                row["workload"], int(row["pods"]), int(row["target"]), row["rate"], row["dist"], row["metric"]
            )
            found[scenario.name, _ALGORITHMS[row["algo"]]] = Measured(
                float(row["mae_mean"]),
                float(row["mae_std"]),
                float(row["reschedules_mean"]),
                float(row["avail_mean"]),
                float(row["lat_p95_ms"]),
                int(row["n_runs"]),
            )
    return found


def changes(results: Results, arm: str, workload: str = "") -> dict[str, Change]:
    """By scenario, where both the arm and doing nothing were run."""
    return {
        each.name: results[each.name, arm].compared_with(results[each.name, NONE])
        for each in scenarios([workload] if workload else ("synthetic", "realistic"))
        if (each.name, arm) in results and (each.name, NONE) in results
    }


def comparable(results: Results) -> list[str]:
    """The scenarios that all judged arms were run on: means over other sets cannot be compared."""
    return [each.name for each in scenarios() if all((each.name, arm) in results for arm in _JUDGED)]


def count(found: Mapping[str, Change], change: Change) -> int:
    return sum(each is change for each in found.values())


@dataclass(frozen=True, slots=True)
class Verdict:
    what: str
    reached: bool | None
    """None cannot be judged."""
    figures: str

    @property
    def text(self) -> str:
        return "cannot be judged" if self.reached is None else "reached" if self.reached else "not reached"


def judge(results: Results, wanted: Sequence[Scenario] = tuple(scenarios())) -> list[Verdict]:
    """The goal of ours, on all 64 scenarios or, as for real nodes, on those wanted."""
    needed = [(each.name, arm) for each in wanted for arm in _JUDGED]
    enough = all(key in results and results[key].repeats > 1 for key in needed)
    by_arm = {arm: changes(results, arm) for arm in _JUDGED}
    better = {arm: count(by_arm[arm], Change.BETTER) for arm in _JUDGED}
    worse = [name for name, change in by_arm[OURS].items() if change is Change.WORSE]
    names = comparable(results)
    moves = {arm: fmean([results[name, arm].moves for name in names] or [0.0]) for arm in _JUDGED}
    below = [name for name in names if results[name, OURS].availability < results[name, NONE].availability - 0.005]
    lowest = min((results[name, OURS].availability - results[name, NONE].availability for name in names), default=0.0)

    def verdict(what: str, reached: bool, figures: str) -> Verdict:
        return Verdict(what, reached if enough else None, figures)

    return [
        verdict(
            "improves at least as many scenarios as the better of greedy and refine",
            better[OURS] >= max(better[GREEDY], better[REFINE]),
            f"ours {better[OURS]}, greedy {better[GREEDY]}, refine {better[REFINE]} of {len(names)}",
        ),
        verdict("worsens none", not worse, f"worse in {len(worse)}" + (f": {', '.join(worse)}" if worse else "")),
        verdict(
            "no more moves than refine",
            moves[OURS] <= moves[REFINE],
            f"per run ours {moves[OURS]:.1f}, refine {moves[REFINE]:.1f}, greedy {moves[GREEDY]:.1f}",
        ),
        verdict(
            "availability not below doing nothing",
            not below,
            f"below by more than 0.005 points in {len(below)}; the largest difference is {lowest:+.4f} points",
        ),
    ]
