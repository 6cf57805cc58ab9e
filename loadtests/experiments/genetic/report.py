"""The report: page, CSV and JSON, of all workloads or of those that were run."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean

import numpy as np
import plotly.graph_objects as go

from loadtests.experiments.genetic.design import AXES, NODES, PAPER_RATIOS, PAPER_TABLE, deviations, loads, traces
from loadtests.experiments.genetic.outcome import ARMS, KUBE_SCHEDULER, Outcome
from loadtests.report_page import Answer, ReportPage, Table
from loadtests.small_clusters import GENERATIONS, GOOD_ENOUGH, Convergence
from loadtests.tools.catalogue import program
from reactor.errors import InputError

DATA = ("deviations.csv", "summary.json")
_WEIGHTED = ("genetic", "genetic, 0.5 on the strong node")
_ANSWERS = (
    Answer("Fig. 2", "generations until the search is good enough, with and without the dictionary",
           "50 pods on 10 nodes; the paper does not state its problem"),
    Answer("Figs 3 to 5", "deviations of the loads, and their ratios to the real kube-scheduler's",
           "workloads of our own, since the paper states no sizes: only ratios compare"),
    Answer("Figs 6 to 9", "120 seconds of the first workload", "each pod's use wanders by a random walk: not measured"),
    Answer("Table 3", "use of the nodes with equal weights and with 0.5 on the strong one", "only directions compare"),
)  # fmt: skip


def write_report(folder: Path, outcomes: Sequence[Outcome], curves: Convergence | None, *, partial: bool) -> Path:
    """index.html, deviations.csv and summary.json; the path of the page. Without curves: they were not run."""
    if not outcomes:
        raise InputError(f"{folder}: nothing was measured yet")
    _write_csv(folder / "deviations.csv", outcomes)
    (folder / "summary.json").write_text(json.dumps(_summary(outcomes, curves), indent=1) + "\n", encoding="utf-8")
    page = folder / "index.html"
    page.write_text(_page(outcomes, curves, partial=partial).html(), encoding="utf-8")
    return page


def _write_csv(path: Path, outcomes: Sequence[Outcome]) -> None:
    with path.open("w", newline="", encoding="utf-8") as out:
        table = csv.writer(out)
        table.writerow(("workload", "placed_by", "cpu_seconds", "moves", *(f"sigma_{axis}" for axis in ("all", *AXES))))
        for each in outcomes:
            for arm, placement in each.placements.items():
                found = deviations(each.pods, placement).values()
                cost = (f"{each.cpu_seconds.get(arm, 0.0):.3f}", each.moves.get(arm, 0))
                table.writerow((each.seed, arm, *cost, *(f"{value:.3f}" for value in found)))


def _means(outcomes: Sequence[Outcome], arm: str) -> dict[str, float]:
    found = [deviations(each.pods, each.placements[arm]) for each in outcomes]
    return {axis: fmean(each[axis] for each in found) for axis in ("all", *AXES)}


def _ratios(outcomes: Sequence[Outcome], arm: str) -> dict[str, float]:
    default, ours = _means(outcomes, KUBE_SCHEDULER), _means(outcomes, arm)
    return {axis: default[axis] / ours[axis] if ours[axis] else float("inf") for axis in default}


def _page(outcomes: Sequence[Outcome], curves: Convergence | None, *, partial: bool) -> ReportPage:
    page = ReportPage("GENETIC: check dictionary, even loads, weights", partial=partial)
    page.text(
        "Three nodes: strong (8 cores, 16 GB, 400 MB/s of disk, 1 Gbit/s) and two weak ones (half of it). 36 pods use"
        " about half of them; one in three is heavy on one axis, and requests are 0.5 to 1.5 of what is used. The paper"
        " states no sizes, so only ratios and directions can be compared. kube-scheduler is the real one on a real"
        " control plane with fake nodes (KWOK); loads are those of the model, not measured."
    )
    page.answers(_ANSWERS)
    if curves is not None:
        _add_generations(page, curves)
    page.heading("Standard deviation of the loads, percentage points (Figs 3 to 5)")
    page.text(
        "GENETIC's fitness is the deviation of one number per node, the weighted mean of its axes. So that number"
        " becomes even and single axes need not: a node may be full on one axis and empty on another. Whether the"
        " paper's Figs 4 and 5 are of a search by that axis alone is not said; both are shown. balance evens out every"
        " axis."
    )
    page.table(_deviation_table(outcomes))
    page.heading("120 seconds (Figs 6 to 9), first workload")
    page.text("Simulated: each pod's use wanders about its mean. Dotted: kube-scheduler; solid: genetic.")
    for axis in AXES:
        page.figure(_trace_figure(outcomes[0], axis))
    page.heading("Weights (Table 3): use of strong / weak1 / weak2 in %, mean of the workloads")
    page.table(_weights_table(outcomes))
    page.heading("What the search costs")
    page.table(_cost_table(outcomes))
    page.facts(_facts(outcomes))
    return page


def _add_generations(page: ReportPage, curves: Convergence) -> None:
    page.heading("Generations (Fig 2)")
    plain, checked = curves.needed
    page.text(
        f"Until the mean cost of {curves.seeds} seeds is below {GOOD_ENOUGH:g}: {plain} without the dictionary,"
        f" {checked} with it; the paper has 190 and 110. The problem is ours: 50 pods on 10 nodes, most with a node"
        f" selector; at most {GENERATIONS} generations."
    )
    page.figure(_convergence_figure(curves))


def _deviation_table(outcomes: Sequence[Outcome]) -> Table:
    rows = []
    for arm in outcomes[0].placements:
        found = _means(outcomes, arm)
        rows.append((arm, *(f"{found[axis]:.2f}" for axis in ("all", *AXES))))
    for arm in ARMS:
        found = _ratios(outcomes, arm)
        rows.append((f"kube-scheduler / {arm}", *(f"{found[axis]:.1f}" for axis in ("all", *AXES))))
    paper = (f"{PAPER_RATIOS[axis]:.1f}" if axis in PAPER_RATIOS else "" for axis in ("all", *AXES))
    rows.append(("the paper: default / genetic", *paper))
    return Table(("placed by", "mean of the axes", *AXES), rows)


def _weights_table(outcomes: Sequence[Outcome]) -> Table:
    rows = []
    for name, equal, weighted in PAPER_TABLE:
        ours = [_text(_use(outcomes, arm, name)) for arm in _WEIGHTED]
        rows.append((name, *ours, equal, weighted))
    return Table(("axis", "equal weights", "0.5 on the strong node", "the paper, equal", "the paper, 0.5"), rows)


def _use(outcomes: Sequence[Outcome], arm: str, axis: str) -> list[float]:
    """Of the nodes, as shares: the mean of the workloads."""
    found = [loads(each.pods, each.placements[arm])[:, AXES.index(axis)] for each in outcomes]
    shares: list[float] = np.mean(found, axis=0).tolist()
    return shares


def _text(shares: Sequence[float]) -> str:
    return " / ".join(f"{100 * share:.1f}" for share in shares)


def _cost_table(outcomes: Sequence[Outcome]) -> Table:
    rows = [
        (
            arm,
            f"{1000 * fmean(each.cpu_seconds[arm] for each in outcomes):.0f} ms",
            f"{fmean(each.moves[arm] for each in outcomes):.1f}",
        )
        for arm in ARMS
    ]
    return Table(("planner", "CPU of one plan", "moves"), rows)


def _convergence_figure(curves: Convergence) -> go.Figure:
    figure = go.Figure()
    figure.add_scatter(y=curves.plain.tolist(), name="without the dictionary")
    figure.add_scatter(y=curves.checked.tolist(), name="with the dictionary")
    figure.update_layout(height=360, yaxis_type="log", yaxis_title="deviation, and what is forbidden", margin={"t": 20})
    return figure


def _trace_figure(outcome: Outcome, axis: str) -> go.Figure:
    figure = go.Figure()
    for arm, dash in (("kube-scheduler", "dot"), ("genetic", "solid")):
        for node, values in traces(outcome.pods, outcome.placements[arm], axis, outcome.seed).items():
            figure.add_scatter(y=values, name=f"{node}, {arm}", line={"dash": dash})
    figure.update_layout(height=320, yaxis_title=f"{axis}, %", xaxis_title="seconds", margin={"t": 20})
    return figure


def _summary(outcomes: Sequence[Outcome], curves: Convergence | None) -> Mapping[str, object]:
    return {
        **_facts(outcomes),
        "generations": None if curves is None else _generations(curves),
        "deviations": {arm: _means(outcomes, arm) for arm in outcomes[0].placements},
        "ratios": {arm: _ratios(outcomes, arm) for arm in ARMS},
        "paper ratios": PAPER_RATIOS,
        "node use": {arm: {axis: _use(outcomes, arm, axis) for axis in AXES} for arm in _WEIGHTED},
        "cpu seconds": {arm: fmean(each.cpu_seconds[arm] for each in outcomes) for arm in ARMS},
        "moves": {arm: fmean(each.moves[arm] for each in outcomes) for arm in ARMS},
    }


def _generations(curves: Convergence) -> Mapping[str, object]:
    plain, checked = curves.needed
    return {"plain": plain, "dictionary": checked, "paper": [190, 110]}


def _facts(outcomes: Sequence[Outcome]) -> dict[str, object]:
    return {
        "workloads": len(outcomes),
        "nodes": {node.name: node.room for node in NODES},
        "kube-scheduler": program(KUBE_SCHEDULER).version,
        "cores of the machine": os.cpu_count(),
    }
