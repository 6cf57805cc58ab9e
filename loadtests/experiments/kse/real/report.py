"""The part of the report that is about real nodes, beside the same scenarios in simulated time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from loadtests.experiments.kse.arms import ARMS, NONE
from loadtests.experiments.kse.design import Scenario
from loadtests.experiments.kse.judging import Measured, Results, judge, measured, recorded
from loadtests.experiments.kse.real.design import (
    LOAD_SECONDS,
    NODE_SCALE,
    PLAN_SECONDS,
    SNAPSHOTS,
    SUBSET,
    TIME_SCALE,
)
from loadtests.experiments.kse.real.records import RealRun
from loadtests.experiments.kse.results import Run, imbalance_of
from loadtests.experiments.kse.traces import trace_figure
from loadtests.report_page import ReportPage, Table

_NOT_RUN = "Not run: it needs real nodes (--real, as root)."
_HOW = (
    "A part of the scenarios on real kubelets, containerd, kube-proxy and Prometheus, with the real controller: 20 pods"
    " of the synthetic app, constant rates, by CPU. Ramps, memory, 40 pods and WordPress were not run.",
    f"A node has a {NODE_SCALE}th of KSE's CPU, and time runs {TIME_SCALE} times as fast: {TIME_SCALE} times the"
    f" requests per second, each {NODE_SCALE * TIME_SCALE} times as cheap, a plan every {PLAN_SECONDS:g} s, and our"
    f" durations {TIME_SCALE} times as short where kubelets allow it. A run has {LOAD_SECONDS:g} s of load, which are"
    f" the first {SNAPSHOTS} of KSE's 12 minutes. What does not shrink: a pod needs its 2 seconds to start, so a move"
    f" costs about {TIME_SCALE} times the availability that it costs KSE.",
    "Imbalance is in millicores of KSE's nodes. The simulated imbalance is that of the same minutes; simulated moves"
    " and availability are those of all 12 minutes. p95 is that of the answered requests.",
)


@dataclass(frozen=True, slots=True)
class RealPart:
    runs: Sequence[RealRun]
    simulated: Sequence[Run]
    """Of all scenarios."""

    def write(self, page: ReportPage) -> None:
        page.heading("On real nodes")
        if not self.runs:
            page.text(_NOT_RUN)
            return
        here, there = measured(self.runs), measured(self._same_minutes())
        page.text(*_HOW, self._validity())
        goal = [(each.what, each.text, each.figures) for each in judge(here, self._scenarios())]
        page.table(Table(("ours, of these scenarios", "verdict", "figures"), goal))
        page.table(_table(self._scenarios(), here, there, measured(self.simulated)))
        for scenario in self._scenarios():
            page.figure(trace_figure(f"{scenario.name}: real nodes, repeat 1", scenario, self.runs))
            page.figure(trace_figure(f"{scenario.name}: simulated time", scenario, self._same_minutes()))

    def summary(self) -> dict[str, object]:
        if not self.runs:
            return {}
        here = measured(self.runs)
        goal = judge(here, self._scenarios())
        return {
            "scenarios": len(self._scenarios()),
            "repeats": min(each.repeats for each in here.values()),
            "saturatedRuns": sum(run.saturated for run in self.runs),
            "runs": len(self.runs),
            "goal": [{"what": each.what, "verdict": each.text, "figures": each.figures} for each in goal],
        }

    def _scenarios(self) -> list[Scenario]:
        run = {each.scenario for each in self.runs}
        return [each for each in SUBSET if each.name in run]

    def _same_minutes(self) -> list[Run]:
        names = {each.name for each in self._scenarios()}
        return [_cut(run) for run in self.simulated if run.scenario in names]

    def _validity(self) -> str:
        held = sum(run.saturated for run in self.runs)
        cheap, dear = (choose(run.request_ms for run in self.runs) for choose in (min, max))
        return (
            f"{len(self.runs)} runs; in {held} of them the machine itself may have held pods or the load tool back"
            f" (docs/experiment.md has the rule). A request cost {cheap:.2f} to {dear:.2f} ms of CPU."
        )


def _cut(run: Run) -> Run:
    trace = run.trace[:SNAPSHOTS]
    return replace(run, trace=trace, imbalance=imbalance_of(trace))


def _table(wanted: Iterable[Scenario], here: Results, there: Results, whole: Results) -> Table:
    headers = ("scenario", "arm", "imbalance", "simulated", "recorded", "moves", "simulated", "availability %",
               "simulated", "p95 ms")  # fmt: skip
    rows = []
    for scenario in wanted:
        for arm in ARMS:
            key = (scenario.name, arm)
            if key not in here:
                continue
            each, beside = here[key], whole.get(key)
            imbalances = [_imbalance(given, *key) for given in (here, there, recorded())]
            moves = [_figure(one, "moves", 1) for one in (each, beside)]
            availabilities = [_figure(one, "availability", 2) for one in (each, beside)]
            rows.append((scenario.name, arm, *imbalances, *moves, *availabilities, f"{each.p95_ms:.1f}"))
    return Table(headers, rows)


def _imbalance(results: Results, name: str, arm: str) -> str:
    """With the change, where more than one repeat allows to judge it."""
    found, nothing = results.get((name, arm)), results.get((name, NONE))
    if found is None:
        return "-"
    text = f"{found.imbalance:.0f} +/- {found.spread:.0f}"
    if arm == NONE or nothing is None or min(found.repeats, nothing.repeats) < 2:
        return text
    return f"{text}, {found.compared_with(nothing)}"


def _figure(found: Measured | None, name: str, digits: int) -> str:
    return "-" if found is None else f"{getattr(found, name):.{digits}f}"
