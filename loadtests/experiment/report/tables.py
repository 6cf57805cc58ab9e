"""The report's tables, as rows of text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from loadtests.experiment.design import KUBE_SCHEDULER, OURS, PAPER, PAPER_RATES, STEPS, Arm, Phase
from loadtests.experiment.goal import judge
from loadtests.experiment.paper import PAPER_TABLE
from loadtests.experiment.report.worlds import World
from loadtests.experiment.statistics import Results, interval_of

THRESHOLDS = (0.7, 0.8, 0.9)
_NOTHING = "–"


@dataclass(frozen=True, slots=True)
class Table:
    headers: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


def goal_table(worlds: Sequence[World]) -> Table:
    rows = [(world.title, item.what, item.verdict.value, item.why) for world in worlds for item in judge(world.results)]
    return Table(("where", "goal", "verdict", "figures"), rows)


def paper_table(world: World) -> Table:
    """Rematches (pods dumped), moves: mean over the seeds."""
    arms = [Arm(Phase.LIVE, planner, threshold) for planner in (PAPER, OURS) for threshold in THRESHOLDS]
    rows = []
    for rate in PAPER_RATES:
        published = [PAPER_TABLE[rate][threshold] for threshold in THRESHOLDS]
        cells = [f"{one.rematches} ({one.dumped})" if one.rematches else "0" for one in published]
        rows.append((str(rate), *cells, *(_counted(world.results, arm, rate) for arm in arms)))
    heads = (f"{arm.planner} {arm.threshold:g}" for arm in arms)
    return Table(("step", *(f"paper {threshold:g}" for threshold in THRESHOLDS), *heads), rows)


def availability_table(worlds: Sequence[World]) -> Table:
    """Every arm's mean availability by step."""
    rows = []
    for world in worlds:
        for arm in world.results.arms():
            values = [world.results.availability(arm, step) for step in STEPS]
            seeds = len({record.seed for record in world.results.of_arm(arm)})
            shown = (_NOTHING if value is None else f"{value:.3f}" for value in values)
            rows.append((world.title, arm.name, str(seeds), *shown))
    return Table(("where", "arm", "seeds", *(str(rate) for rate in PAPER_RATES)), rows)


def frozen_table(worlds: Sequence[World]) -> Table:
    """Phase B: what the placement that a threshold had reached at 120 gains over the default at all rates."""
    rows = []
    for world in worlds:
        for arm in world.results.arms():
            if arm.phase is not Phase.FROZEN:
                continue
            found = world.results.differences(arm, STEPS)
            interval = interval_of(found.values())
            bounds = f"{interval.low:+.4f} .. {interval.high:+.4f}" if interval else "one seed"
            mean = f"{fmean(found.values()):+.4f}" if found else _NOTHING
            rows.append((world.title, arm.name, str(len(found)), mean, bounds))
    return Table(("where", "arm", "seeds", "mean gain of availability", "95 % interval"), rows)


def agreement_table(worlds: Sequence[World]) -> Table:
    """Real less simulated, by arm: where the model is wrong, and by how much."""
    rows: list[tuple[str, ...]] = []
    by_name = {world.about.world: world.results for world in worlds}
    if len(by_name) == 2:
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


def _counted(results: Results, arm: Arm, rate: int) -> str:
    found = [record for record in results.of_arm(arm) if record.paper_rate == rate]
    if not found:
        return _NOTHING
    rematches, dumped, moves = (
        fmean(getattr(record, name) for record in found) for name in ("rematches", "dumped", "moves")
    )
    return "0" if not rematches and not moves else f"{rematches:.3g} ({dumped:.3g}), {moves:.3g} moved"


def _gaps(real: Results, model: Results, arm: Arm) -> dict[int, float]:
    gaps = {}
    for step in STEPS:
        measured, expected = real.availability(arm, step), model.availability(arm, step)
        if measured is not None and expected is not None:
            gaps[step.paper_rate] = measured - expected
    return gaps
