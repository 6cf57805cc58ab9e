"""Writes the report from the data folder, complete or not."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from loadtests.experiments.stable.design import LEAST_SEEDS, SHORT, STEPS, Arm, Phase
from loadtests.experiments.stable.findings import counts, judge_findings, mean_availability
from loadtests.experiments.stable.goal import LEAST_VALID, Item, judge
from loadtests.experiments.stable.records import DataFolder, write_csv
from loadtests.experiments.stable.report import plots, tables
from loadtests.experiments.stable.results import World, worlds_in
from loadtests.report_page import Answer, ReportPage
from reactor.errors import InputError

_ABOUT = (
    "Three nodes of 600, 250 and 400 millicores and 1536, 1024 and 2048 MiB (the ratios of the paper's 12, 5 and 8"
    " cores and 12, 8 and 16 GB),"
    " fifteen web apps that all ask for the same little CPU and need between 2 and 32 ms of it per request,"
    " every app under the same rate, which rises in eleven steps."
    " A step has the name of the paper's rate; the rate itself is scaled so that 125 fills all"
    " nodes. Availability is the success ratio averaged over the apps.",
    "Live: the controller acts while the rate rises (phase A). Frozen: the last placement up to the end of 120 in which"
    " nothing was being moved and every app had a node, left alone at all rates (phase B)."
    " kube-scheduler: the default placement, left alone. The dotted line is nine tenths"
    " of the capacity.",
    "Steps in which the machine was saturated are invalid and left out. A hollow marker is a point of fewer seeds than"
    " the arm was measured with, in tables n is how many it is of. A line with gaps runs mostly along another, which"
    " shows through.",
)
_ANSWERS = (
    Answer(
        "Table: rematches until stable, dumped pods",
        "phase A",
        "the paper's nodes and rates, scaled; its rematches are counted by step of the same name",
    ),
    Answer("Findings of phase B", "the paper's findings", "draws of the apps that overload the weak node were chosen"),
    Answer("Fig. 7: CPU and memory of the pods", "pods at 110", "memory is assumed in simulated time"),
    Answer("Fig. 8: CPU and memory of the nodes", "nodes at all steps", "memory is assumed in simulated time"),
)
_COUNTING = (
    f"A seed counts when at least {LEAST_VALID} of the range's steps are valid in both arms, and all in which a move"
    f" of the live arm ended are among them. {LEAST_SEEDS} such seeds are needed for a verdict."
)
_REMATCHES = (
    "Per step, means over the valid seeds. Rematches are plans that moved somebody; in brackets, as in the paper, the"
    " pods that they left without a node. Rematches count in the step in which they were planned, moves in the step in"
    " which they ended, so a step may have moves without a rematch."
)
_TIMEOUT = (
    f"A request is given up after {SHORT.timeout:g} s: that is the highest p95 there can be, and the dotted line across"
    " the figure."
)
_USAGE = (
    "In the figures of the nodes, the wide pale lines are the default placement's. In simulated time a pod is assumed"
    " to hold 12 MB under any load, so memory follows the number of pods; on real nodes memory is not"
    " measured."
)
_SHOWN = STEPS[6]
"""110: the last step at which the nodes together have room."""
_FINDINGS = (
    "stable-paper is the paper's planner as the paper runs it: no limits, all pods of a rematch are made pending at"
    " once and then bound, and a dumped pod stays without a node (pods that keep their node are left running). With"
    " +raw its distances are in the paper's cores and GB. stable is ours. The paper's findings are of phase B."
)
_DIFFER = (
    "The model shares a node's CPU as a fluid, where the kernel gives quotas out every 100 ms; it has no network, no"
    " kernel work but a constant per request, and kubelets whose probes are exactly periodic. Ties of the scheduler are"
    " broken by chance on real nodes, so the apps of one seed are not on the same nodes in both worlds."
)


def write_report(data: DataFolder, *, partial: bool = False) -> Path:
    """index.html, steps.csv and summary.json in the data folder; the path of the page."""
    worlds = worlds_in(data)
    if not worlds:
        raise InputError(f"{data.folder}: nothing was measured yet")
    write_csv([record for world in worlds for record in world.records], data.folder / "steps.csv")
    (data.folder / "summary.json").write_text(json.dumps(_summary(worlds), indent=1) + "\n", encoding="utf-8")
    page = data.folder / "index.html"
    page.write_text(_page(worlds, partial=partial).html(), encoding="utf-8")
    return page


def verdict_lines(data: DataFolder) -> list[str]:
    """What was found, for who does not open the page."""
    worlds = worlds_in(data)
    rows = [*tables.goal_table(worlds).rows, *tables.findings_table(worlds).rows]
    return [f"{where}: {verdict}: {what} ({why})" for where, what, verdict, why in rows]


def _page(worlds: Sequence[World], *, partial: bool) -> ReportPage:
    page = ReportPage("STABLE's experiment with Rematch", partial=partial)
    page.text(*_ABOUT)
    for world in worlds:
        page.text(*(f"{world.title}: {note}." for note in world.about.notes))
    page.heading("The goal")
    page.table(tables.goal_table(worlds))
    page.text(_COUNTING)
    page.table(tables.invalid_table(worlds))
    page.answers(_ANSWERS)
    page.heading("The paper's findings")
    page.text(_FINDINGS)
    page.table(tables.findings_table(worlds))
    page.heading("Availability live, moves included")
    page.figure(plots.availability(worlds, Phase.LIVE))
    page.figure(plots.differences(worlds))
    page.heading("Phase A: rematches until stable, next to the paper's")
    page.text(_REMATCHES)
    for world in worlds:
        page.text(f"{world.title.capitalize()}:")
        page.table(tables.paper_table(world))
    page.heading("Phase B: placements of step 120, frozen")
    page.figure(plots.availability(worlds, Phase.FROZEN))
    page.table(tables.frozen_table(worlds))
    page.heading("Response times")
    page.text(_TIMEOUT)
    page.figure(plots.latency(worlds))
    page.heading("CPU and memory of the pods (the paper's Fig. 7) and of the nodes (its Fig. 8)")
    page.text(_USAGE)
    for world in worlds:
        if any(record.app_cpu for record in world.records):
            page.figure(plots.app_usage(world, _SHOWN))
        else:
            page.text(f"{world.title.capitalize()}: the pods' own usage was not measured.")
    page.figure(plots.node_cpu(worlds))
    with_memory = [world for world in worlds if any(record.memory for record in world.records)]
    if with_memory:
        page.figure(plots.node_memory(with_memory))
    page.heading("Simulated and real")
    _agreement(page, worlds)
    page.heading("All arms")
    page.table(tables.availability_table(worlds))
    for world in worlds:
        page.heading(f"Settings and versions: {world.title}")
        page.facts(_facts(world))
    return page


def _facts(world: World) -> dict[str, object]:
    about = world.about
    return {
        "load by": about.tool,
        "started": about.started,
        "form": about.form,
        "requests per second and app that fill all nodes (measured)": round(about.capacity, 3),
        "nodes (cores)": dict(about.nodes),
        "versions": dict(about.versions),
        "settings of our default arm": dict(about.settings),
    }


def _agreement(page: ReportPage, worlds: Sequence[World]) -> None:
    if len({world.about.form for world in worlds}) > 1:
        page.text("The two worlds were measured with steps of different length, so they are not compared.")
    elif len(worlds) > 1:
        page.text(_DIFFER)
        page.table(tables.agreement_table(worlds))
    elif worlds[0].about.world == "simulated":
        page.text("Only simulated time was measured: run with --real as root to compare.")
    else:
        page.text("Only real nodes were measured: run with --simulated to compare.")


def _summary(worlds: Sequence[World]) -> dict[str, Any]:
    return {
        world.about.world: {
            "steps": len(world.records),
            "invalidSteps": world.results.invalid,
            "capacityPerApp": world.about.capacity,
            "form": world.about.form,
            "tool": world.about.tool,
            "goal": _items(judge(world.results)),
            "findings": _items(judge_findings(world.results)),
            "arms": {arm.name: _arm(world, arm) for arm in world.results.arms()},
        }
        for world in worlds
    }


def _items(items: Sequence[Item]) -> list[dict[str, str]]:
    return [{"what": item.what, "verdict": item.verdict.value, "figures": item.why} for item in items]


def _arm(world: World, arm: Arm) -> dict[str, Any]:
    """Means over the valid seeds; the shares of the nodes are those at the step that the figures show."""
    results, shown = world.results, world.results.at(arm, _SHOWN)
    count = counts(results, arm)
    assert count is not None
    shares = {
        node: [record.cpu.get(node, 0.0) / cores for record in shown] for node, cores in world.about.nodes.items()
    }
    return {
        "seeds": len(results.seeds(arm)),
        "meanAvailability": mean_availability(results, arm),
        "availability": {str(step.paper_rate): results.availability(arm, step) for step in STEPS},
        "rematchesPerRun": count.rematches,
        "leftOutPerRun": count.left_out,
        "movesPerRun": count.moves,
        f"nodeCpuShareAt{_SHOWN.paper_rate}": {node: fmean(found) for node, found in shares.items() if found},
    }
