"""The report's tables, as rows of text."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from loadtests.experiments.stable.design import (
    KUBE_SCHEDULER,
    OURS,
    PAPER,
    PAPER_RATES,
    PAPER_RAW,
    STEPS,
    THRESHOLDS,
    Arm,
    Phase,
    Step,
)
from loadtests.experiments.stable.findings import judge_findings
from loadtests.experiments.stable.goal import compare, judge
from loadtests.experiments.stable.paper_table import PAPER_TABLE
from loadtests.experiments.stable.results import Results, World, rates_of, window
from loadtests.report_page import Table

_NOTHING = "–"


def goal_table(worlds: Sequence[World]) -> Table:
    rows = [(world.title, item.what, item.verdict.value, item.why) for world in worlds for item in judge(world.results)]
    return Table(("where", "goal", "verdict", "figures"), rows)


def findings_table(worlds: Sequence[World]) -> Table:
    rows = [
        (world.title, item.what, item.verdict.value, item.why)
        for world in worlds
        for item in judge_findings(world.results)
    ]
    return Table(("where", "finding of the paper", "verdict", "figures"), rows)


def paper_table(world: World) -> Table:
    """Rematches (pods left out) as the paper tells them, and pods moved: mean over the valid seeds."""
    known = world.results.arms()
    every = [Arm(Phase.LIVE, planner, each) for planner in (PAPER, PAPER_RAW, OURS) for each in THRESHOLDS]
    arms = [arm for arm in every if arm in known]
    rows = []
    for step in STEPS:
        published = [PAPER_TABLE[step.paper_rate][threshold] for threshold in THRESHOLDS]
        cells = [f"{one.rematches} ({one.dumped})" if one.rematches else "0" for one in published]
        counted = (cell for arm in arms for cell in _counted(world.results, arm, step))
        rows.append((str(step.paper_rate), *cells, *counted))
    heads = (f"{arm.planner} {arm.threshold:g}: {what}" for arm in arms for what in ("rematches (left out)", "moved"))
    papers = (f"paper {threshold:g}: rematches (left out)" for threshold in THRESHOLDS)
    return Table(("step", *papers, *heads), rows)


def availability_table(worlds: Sequence[World]) -> Table:
    """Every arm's mean availability by step; n where it is of fewer seeds than the arm has."""
    rows = []
    for world in worlds:
        for arm in world.results.arms():
            seeds = len(world.results.seeds(arm))
            valid = f"{len(world.results.of_arm(arm))} of {len(world.results.measured(arm))}"
            shown = (_available(world.results, arm, step) for step in STEPS)
            rows.append((world.title, arm.name, str(seeds), valid, *shown))
    return Table(("where", "arm", "seeds", "valid steps", *(str(rate) for rate in PAPER_RATES)), rows)


def frozen_table(worlds: Sequence[World]) -> Table:
    """Phase B: what the placement that a threshold had reached at 120 gains over the default."""
    rows = []
    for world in worlds:
        first = world.results.first_failing()
        judged = window(first) if first is not None else []
        for arm in world.results.arms():
            if arm.phase is Phase.FROZEN:
                gains = (
                    compare(world.results, arm, steps).describe() if steps else _NOTHING for steps in (judged, STEPS)
                )
                rows.append((world.title, arm.name, rates_of(judged), *gains))
    heads = ("the goal's steps", "gain of availability over the goal's steps", f"over all steps, {rates_of(STEPS)}")
    return Table(("where", "arm", *heads), rows)


def agreement_table(worlds: Sequence[World]) -> Table:
    """Real less simulated, by arm: where the model is wrong, and by how much."""
    rows: list[tuple[str, ...]] = []
    by_name = {world.about.world: world.results for world in worlds}
    if len(by_name) == 2 and len({world.about.form for world in worlds}) == 1:
        real, model = by_name["real"], by_name["simulated"]
        for arm in [KUBE_SCHEDULER, *(arm for arm in real.arms() if arm != KUBE_SCHEDULER)]:
            gaps = _gaps(real, model, arm)
            if gaps:
                worst = max(gaps, key=lambda rate: abs(gaps[rate]))
                mean = fmean(abs(gap) for gap in gaps.values())
                rows.append((arm.name, f"{mean:.3f}", f"{gaps[worst]:+.3f} at {worst}"))
    return Table(("arm", "mean |real - simulated| of availability", "largest"), rows)


def invalid_table(worlds: Sequence[World]) -> Table:
    rows = []
    for world in worlds:
        invalid = [record for record in world.records if not record.valid]
        idle = [record.outside_idle for record in world.records if record.outside_idle is not None]
        delay = [record.delay_ms for record in world.records if record.delay_ms is not None]
        spare = f"{fmean(idle):+.2f} cores" if idle else _NOTHING
        waited = f"{fmean(delay):.2f} ms" if delay else _NOTHING
        rows.append((world.title, f"{len(invalid)} of {len(world.records)}", spare, waited))
    return Table(("where", "invalid steps", "idle outside the nodes' quotas (mean)", "wait for a CPU (mean)"), rows)


def _available(results: Results, arm: Arm, step: Step) -> str:
    value = results.availability(arm, step)
    return _NOTHING if value is None else f"{value:.3f}{_missing(results, arm, step)}"


def _counted(results: Results, arm: Arm, step: Step) -> tuple[str, str]:
    """Rematches (pods left out), and pods moved."""
    found = results.at(arm, step)
    if not found:
        return _NOTHING, _NOTHING
    rematches, dumped, moves = (
        fmean(getattr(record, name) for record in found) for name in ("rematches", "dumped", "moves")
    )
    missing = _missing(results, arm, step)
    return (f"{_short(rematches)} ({_short(dumped)})" if rematches else "0") + missing, _short(moves) + missing


def _missing(results: Results, arm: Arm, step: Step) -> str:
    valid = len(results.at(arm, step))
    return f" n={valid}" if valid < len(results.seeds(arm)) else ""


def _short(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _gaps(real: Results, model: Results, arm: Arm) -> dict[int, float]:
    gaps = {}
    for step in STEPS:
        measured, expected = real.availability(arm, step), model.availability(arm, step)
        if measured is not None and expected is not None:
            gaps[step.paper_rate] = measured - expected
    return gaps
