"""The report of BNIP's placement test: what of the paper it answers, ours beside it, and what differs."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean

import plotly.graph_objects as go
from msgspec import Struct

from loadtests.experiments.bnip.design import (
    ARMS,
    DEMANDS,
    NODES,
    PAPER_BNIP,
    PAPER_DEFAULT,
    PAPER_MEASURED,
    Placement,
    best_of_all,
    groups,
    placed_by,
    steps_of,
    use_of,
)
from loadtests.experiments.bnip.live.report import LIVE_ANSWERS, UPDATES_CSV, USERS_CSV, Live
from loadtests.report_page import Answer, ReportPage, Table
from loadtests.tools.catalogue import program
from reactor.errors import InputError

DATA = ("steps.csv", UPDATES_CSV, USERS_CSV, "summary.json")
_ABOUT = (
    "Three nodes (2 cores and 4 GB, 4 and 4, 8 and 8) with links of 50, 75 and 125 Mbit/s get nine pods one after the"
    " other. Each asks for 100m CPU and 160 Mi; pods 1 to 3 send 2 Mbit/s, 4 to 6 send 5, 7 to 9 send 10. They are"
    " placed by the real kube-scheduler of a real control plane, alone and with Rematch's extender, which runs as a"
    " process of its own. Nodes are fake (KWOK), since only placements are counted: every pod is taken to send what it"
    " states, and a Prometheus of the lab says so.",
)
_DIFFERENT = (
    "Mean and variance are by nominal demands, in percent and square percent. The paper's Table 7 has measured ones"
    " (12.3 % and 4.3, 11.3 % and 0.8, in a unit that it does not state): its pods send less than they state. So the"
    " means cannot agree; the order of the placements can.",
    "The paper's default scheduler put eight of nine pods on the largest node. This kube-scheduler does not. The paper"
    " does not say what else ran on its nodes, and which version it used.",
    "The paper's own placement is not what its formula gives on idle nodes. The extender is the formula, and gives its"
    " replay.",
    "kube-scheduler breaks ties by chance, so its own placement may differ from run to run.",
)
_ANSWERS = (
    Answer("Table 6", "placements", "this kube-scheduler does not crowd the largest node"),
    Answer("Figs 14 and 15", "mean and variance after each deployment", "by nominal demands, not measured"),
    Answer("Table 7", "means over the runs", "by nominal demands, not measured, in a unit that is stated"),
)
_NOT_RUN = (
    ("Figs 12, 13", "replicas by an HPA that Prometheus feeds", "not part of this experiment"),
    ("etcd's disks, Velero, Traefik", "other products that an operator installs", "ruled out"),
)


class RunRecord(Struct, frozen=True, rename="camel"):
    arm: str
    weight: int
    repeat: int
    placement: Mapping[str, str]
    at: str
    p50_ms: float | None = None
    """Upper bounds by kube-scheduler's own histogram of its scheduling decisions, the extender included."""
    p99_ms: float | None = None


def write_report(folder: Path, records: Sequence[RunRecord], live: Live, *, partial: bool) -> Path:
    """index.html, the CSV files and summary.json; the path of the page."""
    if not records:
        raise InputError(f"{folder}: nothing was measured yet")
    reference = _reference()
    _write_csv(folder / "steps.csv", records)
    live.write_csv(folder)
    summary = {**_summary(records, reference), "live": live.summary()}
    (folder / "summary.json").write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")
    page = folder / "index.html"
    page.write_text(_page(records, reference, live, partial=partial).html(), encoding="utf-8")
    return page


def _reference() -> dict[str, Placement]:
    """Placements beside those of the runs."""
    return {
        "paper, default scheduler": PAPER_DEFAULT,
        "paper, BNIP": PAPER_BNIP,
        "planner network, pods in order": placed_by("network", {}, {}),
        "planner balance, from the paper's default": placed_by(
            "balance", {"weights": {"network": 1.0}, "confidence": 0.0}, PAPER_DEFAULT
        ),
        "best of all 3^9": best_of_all(),
    }


def _page(records: Sequence[RunRecord], reference: Mapping[str, Placement], live: Live, *, partial: bool) -> ReportPage:
    page = ReportPage("BNIP: nine pods on three links, and requests on real nodes", partial=partial)
    page.text(*_ABOUT)
    page.answers((*_ANSWERS, *LIVE_ANSWERS))
    page.heading("Placements (Table 6)")
    page.table(_placements(records, reference))
    page.heading("After each deployment (Figs 14 and 15)")
    page.figure(_figure(records, "mean", "mean use of the links, %"))
    page.figure(_figure(records, "variance", "variance of the use, %²"))
    page.heading("Means over the runs (Table 7)")
    page.table(_means(records))
    live.add_to(page)
    page.heading("What differs, and why")
    page.text(*_DIFFERENT)
    page.heading("What is not answered here")
    page.table(Table(("of the paper", "what", "here"), _NOT_RUN))
    page.heading("How it was run")
    page.facts(_facts(records))
    return page


def _placements(records: Sequence[RunRecord], reference: Mapping[str, Placement]) -> Table:
    rows = [(name, groups(each), *_figures(each)) for name, each in reference.items()]
    rows += [(f"{each.arm}, run {each.repeat}", groups(each.placement), *_figures(each.placement)) for each in records]
    return Table(("placed by", "pods", "mean %", "variance %²"), rows)


def _figures(placement: Placement) -> tuple[str, str]:
    use = use_of(placement)
    return f"{use.mean:.1f}", f"{use.variance:.2f}"


def _means(records: Sequence[RunRecord]) -> Table:
    rows = []
    for name, (mean, variance) in PAPER_MEASURED.items():
        rows.append((f"paper, {name}, measured", f"{mean:g}", f"{variance:g} (unit not stated)", "", ""))
    for arm, found in _by_arm(records).items():
        uses = [use_of(each.placement) for each in found]
        variances = [use.variance for use in uses]
        spread = f"{fmean(variances):.1f} ({min(variances):.1f} to {max(variances):.1f})"
        p99 = [each.p99_ms for each in found if each.p99_ms is not None]
        rows.append((arm, f"{fmean(use.mean for use in uses):.1f}", spread, str(len(found)), _longest(p99)))
    return Table(("arm", "mean %", "variance %²", "runs", "p99 of a decision, by kube-scheduler"), rows)


def _longest(bounds: Sequence[float]) -> str:
    return f"at most {max(bounds):g} ms" if bounds else ""


def _figure(records: Sequence[RunRecord], value: str, title: str) -> go.Figure:
    figure = go.Figure()
    lines = {arm: [steps_of(each.placement) for each in found] for arm, found in _by_arm(records).items()}
    lines["paper's default placement"] = [steps_of(PAPER_DEFAULT)]
    lines["paper's BNIP placement"] = [steps_of(PAPER_BNIP)]
    for name, found in lines.items():
        points = [fmean(getattr(run[step], value) for run in found) for step in range(len(DEMANDS))]
        dash = "dot" if name.startswith("paper") else "solid"
        figure.add_scatter(x=list(DEMANDS), y=points, name=name, mode="lines+markers", line={"dash": dash})
    figure.update_layout(height=380, yaxis_title=title, margin={"t": 20}, legend={"orientation": "h", "y": -0.2})
    return figure


def _by_arm(records: Sequence[RunRecord]) -> dict[str, list[RunRecord]]:
    found = {arm.name: [each for each in records if each.arm == arm.name] for arm in ARMS}
    return {name: each for name, each in found.items() if each}


def _write_csv(path: Path, records: Sequence[RunRecord]) -> None:
    with path.open("w", newline="", encoding="utf-8") as out:
        table = csv.writer(out)
        table.writerow(("arm", "weight", "run", "pod", "node", "mean_percent", "variance_percent2"))
        for each in records:
            for pod, use in zip(DEMANDS, steps_of(each.placement), strict=True):
                row = (each.arm, each.weight, each.repeat, pod, each.placement[pod])
                table.writerow((*row, f"{use.mean:.4f}", f"{use.variance:.4f}"))


def _summary(records: Sequence[RunRecord], reference: Mapping[str, Placement]) -> Mapping[str, object]:
    variances = {arm: [use_of(each.placement).variance for each in found] for arm, found in _by_arm(records).items()}
    return {
        **_facts(records),
        "reference": {
            name: {"placement": groups(each), "variance": use_of(each).variance} for name, each in reference.items()
        },
        "arms": {
            arm: {"runs": len(found), "variance": found, "mean variance": fmean(found)}
            for arm, found in variances.items()
        },
    }


def _facts(records: Sequence[RunRecord]) -> dict[str, object]:
    return {
        "world": "real control plane and kube-scheduler, fake nodes (KWOK)",
        "kube-scheduler": program("kube-scheduler").version,
        "links": {node.name: f"{node.mbit:g} Mbit/s" for node in NODES},
        "first run": min(each.at for each in records),
        "last run": max(each.at for each in records),
        "cores of the machine": os.cpu_count(),
    }
