"""The paper's findings, each judged on our own runs: thresholds against the default placement and each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean

from loadtests.experiments.stable.design import KUBE_SCHEDULER, LEAST_SEEDS, STEPS, THRESHOLDS, Arm, Phase
from loadtests.experiments.stable.goal import GoalVerdict, Item, compare
from loadtests.experiments.stable.paper_table import paper_totals
from loadtests.experiments.stable.results import Results

ABOVE = 70
"""Rate above which the paper's lowest threshold is always the worst."""


@dataclass(frozen=True, slots=True)
class Counts:
    """Of one live arm, means per run."""

    rematches: float
    left_out: float
    """Apps that some plan left without a node, each counted once per run."""
    moves: float


def judge_findings(results: Results) -> list[Item]:
    """By planner, the paper's first."""
    return [item for planner in _planners(results) for item in _of_planner(results, planner)]


def mean_availability(results: Results, arm: Arm) -> float | None:
    """Over all steps; None where a step is missing."""
    found = [results.availability(arm, step) for step in STEPS]
    known = [value for value in found if value is not None]
    return fmean(known) if len(known) == len(STEPS) else None


def counts(results: Results, arm: Arm) -> Counts | None:
    """Steps that are left out of other figures count here."""
    records, runs = results.measured(arm), len(results.seeds(arm))
    if not runs:
        return None
    left_out = {(record.seed, app) for record in records for app in record.left_out}
    rematches, moves = (sum(getattr(record, name) for record in records) for name in ("rematches", "moves"))
    return Counts(rematches / runs, len(left_out) / runs, moves / runs)


def _planners(results: Results) -> list[str]:
    """That were run live with every threshold."""
    arms = set(results.arms())
    names = sorted({arm.planner for arm in arms if arm.phase is Phase.LIVE and not arm.revision}, reverse=True)
    return [name for name in names if all(Arm(Phase.LIVE, name, each) in arms for each in THRESHOLDS)]


def _of_planner(results: Results, planner: str) -> list[Item]:
    frozen = {each: Arm(Phase.FROZEN, planner, each) for each in THRESHOLDS}
    means = {each: mean_availability(results, arm) for each, arm in frozen.items()}
    known = {each: value for each, value in means.items() if value is not None}
    items = [_rematches(results, planner), _trade_off(results, planner)]
    if len(known) < len(THRESHOLDS):
        return items
    return [_above_default(results, planner, frozen), _best(planner, known), _lowest(results, planner, frozen), *items]


def _above_default(results: Results, planner: str, frozen: Mapping[float, Arm]) -> Item:
    what = f"{planner}, phase B: every threshold above the default placement, over all steps"
    compared = {each: compare(results, arm, STEPS) for each, arm in frozen.items()}
    intervals = {each: one.interval for each, one in compared.items()}
    figures = "; ".join(
        f"{each:g}: {one.mean:+.4f} ({one.low:+.4f} .. {one.high:+.4f})"
        for each, one in intervals.items()
        if one is not None
    )
    if any(one is None or len(compared[each].differences) < LEAST_SEEDS for each, one in intervals.items()):
        return Item(what, GoalVerdict.NOT_JUDGED, f"{LEAST_SEEDS} seeds are needed; {figures}")
    reached = all(one is not None and one.low > 0 for one in intervals.values())
    return Item(what, GoalVerdict.REACHED if reached else GoalVerdict.NOT_REACHED, figures)


def _best(planner: str, means: Mapping[float, float]) -> Item:
    best = max(THRESHOLDS)
    reached = all(means[best] > value for each, value in means.items() if each != best)
    verdict = GoalVerdict.REACHED if reached else GoalVerdict.NOT_REACHED
    figures = ", ".join(f"{each:g}: {value:.4f}" for each, value in means.items())
    return Item(f"{planner}, phase B: {best:g} best on average over all steps", verdict, figures)


def _lowest(results: Results, planner: str, frozen: Mapping[float, Arm]) -> Item:
    lowest, *others = sorted(THRESHOLDS)
    above = [step for step in STEPS if step.paper_rate > ABOVE]
    worst = [
        step.paper_rate
        for step in above
        if all(_less(results, frozen[lowest], frozen[other], step.index) for other in others)
    ]
    what = f"{planner}, phase B: {lowest:g} below the other thresholds at every step above {ABOVE}"
    verdict = GoalVerdict.REACHED if len(worst) == len(above) else GoalVerdict.NOT_REACHED
    where = f": {', '.join(map(str, worst))}" if worst else ""
    return Item(what, verdict, f"at {len(worst)} of {len(above)} steps{where}")


def _less(results: Results, one: Arm, other: Arm, index: int) -> bool:
    mine, yours = (results.availability(arm, STEPS[index]) for arm in (one, other))
    return mine is not None and yours is not None and mine < yours


def _rematches(results: Results, planner: str) -> Item:
    figures = []
    for threshold in THRESHOLDS:
        ours, paper = counts(results, Arm(Phase.LIVE, planner, threshold)), paper_totals(threshold)
        assert ours is not None
        figures.append(
            f"{threshold:g}: {ours.rematches:.1f} ({ours.left_out:.1f}), paper {paper.rematches} ({paper.dumped})"
        )
    what = f"{planner}, live: rematches per run (pods left without a node, each once)"
    return Item(what, GoalVerdict.REPORTED, "; ".join(figures))


def _trade_off(results: Results, planner: str) -> Item:
    """Which the paper leaves open."""
    default = mean_availability(results, KUBE_SCHEDULER)
    figures = []
    for threshold in THRESHOLDS:
        arm = Arm(Phase.LIVE, planner, threshold)
        mean, count = mean_availability(results, arm), counts(results, arm)
        if mean is None or default is None or count is None:
            continue
        gain = mean - default
        each = f", {gain / count.left_out:+.4f} per pod left out" if count.left_out else ", nobody left out"
        figures.append(f"{threshold:g}: {gain:+.4f}{each}")
    what = f"{planner}, live: availability gained over the default placement, all steps, per dumped pod"
    return Item(what, GoalVerdict.REPORTED, "; ".join(figures))
