"""The report of a tournament: one HTML page, and the same as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import fmean

import plotly.graph_objects as go

from loadtests.report_page import ReportPage, Table
from loadtests.tournament.goals import Goal, Played, goals, paired, rivals
from loadtests.tournament.policies import OURS, find_policy, is_settings_file, policies
from loadtests.tournament.results import Result
from loadtests.tournament.scenario import Scenario
from loadtests.tournament.statistics import Difference, difference
from loadtests.tournament.summary import HEADERS, by_scenario, row

_COLOURS = (
    "#7f7f7f",
    "#d62728",
    "#1f77b4",
    "#17becf",
    "#9467bd",
    "#8c564b",
    "#bcbd22",
    "#2ca02c",
    "#e377c2",
    "#ff7f0e",
)
_ABOUT = (
    "Every policy plays every drawn instance of a scenario in simulated time, from the same start and under the same"
    " load. Nodes share their CPU as a fluid; apps have workers, a backlog and clients that give up after 2 s; kubelets"
    " probe, kill and restart. Rematch is the real controller on a virtual clock.",
    "Availability is answered over sent, the mean of the apps. Unhappy are pods of whose recent probes more than a"
    " tenth failed, or that have no container or node. Lost are requests while a move had left an app without a Ready"
    " pod. A move is useless when the pods of its two nodes are in no less trouble after it, harmful when a pod of the"
    " target is in trouble that would not be without the moved pod.",
    "Differences are paired by seed. Their intervals come from the bootstrap; over the rivals of ours they are"
    " corrected by Holm's method, at 5 % in all. The clairvoyants know the load to come: they are bounds, not rivals.",
)


def write_report(
    folder: Path, results: Sequence[Result], scenarios: Sequence[Scenario], seeds: str, *, partial: bool
) -> Path:
    """index.html and summary.json; the path of the page."""
    played = by_scenario(results)
    judged = goals(played)
    page = _page(played, judged, scenarios, seeds, partial=partial)
    path = folder / "index.html"
    path.write_text(page.html(), encoding="utf-8")
    (folder / "summary.json").write_text(json.dumps(_summary(played, judged, seeds), indent=1) + "\n", encoding="utf-8")
    return path


_VERDICTS = {True: "reached", False: "not reached", None: "cannot be judged"}


def goal_rows(judged: Sequence[Goal]) -> list[tuple[str, ...]]:
    return [(each.scenario, each.text, _VERDICTS[each.reached], each.figure) for each in judged]


def _page(
    played: Mapping[str, Played], judged: Sequence[Goal], scenarios: Sequence[Scenario], seeds: str, *, partial: bool
) -> ReportPage:
    page = ReportPage("The tournament of Rematch")
    if partial:
        page.text("Partial: the tournament was stopped before its end; this is what was played until then.")
    page.text(*_ABOUT, f"Seeds: {seeds}.")
    page.heading("Goals for the default settings")
    page.table(Table(("scenario", "goal", "verdict", "figure"), goal_rows(judged)))
    page.heading("Availability compared with ours")
    page.figure(_differences(played))
    page.heading("Moves per run")
    page.figure(_moves(played))
    texts = {scenario.name: scenario.text for scenario in scenarios}
    for scenario, each in played.items():
        page.heading(scenario)
        page.text(texts.get(scenario, ""))
        page.table(Table(HEADERS, [tuple(row(policy, runs)) for policy, runs in each.items()]))
        page.table(_difference_table(each))
        if any(run.measures.parts for runs in each.values() for run in runs):
            page.figure(_steps(each))
    page.heading("Policies")
    page.table(Table(("policy", "what it does"), [(name, find_policy(name).text) for name in _names(played)]))
    return page


def _difference_table(played: Played) -> Table:
    """Rivals with Holm's correction, bounds without."""
    compared = rivals(played) if played.get(OURS) else {}
    rows = [(name, *_cells(each)) for name, each in compared.items()]
    for name in played:
        values, ours = paired(played, name)
        if name != OURS and name not in compared and values:
            rows.append((name, *_cells(difference(values, ours))))
    return Table(("availability less ours", "mean", "95 % interval", "seeds"), rows)


def _cells(each: Difference) -> tuple[str, str, str]:
    return (f"{each.mean:+.4f}", f"{each.low:+.4f} to {each.high:+.4f}", str(each.seeds))


def _differences(played: Mapping[str, Played]) -> go.Figure:
    figure = go.Figure()
    for number, name in enumerate(_names(played)):
        points = {scenario: paired(each, name) for scenario, each in played.items() if name != OURS}
        gaps = {scenario: difference(*both) for scenario, both in points.items() if both[0]}
        if gaps:
            figure.add_scatter(
                x=list(gaps),
                y=[each.mean for each in gaps.values()],
                error_y={
                    "type": "data",
                    "symmetric": False,
                    "array": [each.high - each.mean for each in gaps.values()],
                    "arrayminus": [each.mean - each.low for each in gaps.values()],
                    "thickness": 1,
                },
                mode="markers",
                name=name,
                marker={"color": _COLOURS[number % len(_COLOURS)], "symbol": number % 8},
            )
    figure.update_layout(
        height=460,
        margin={"t": 20},
        scattermode="group",
        yaxis_title="availability less ours (above 0: better)",
        template="simple_white",
    )
    figure.add_hline(0, line_dash="dot")
    return figure


def _moves(played: Mapping[str, Played]) -> go.Figure:
    figure = go.Figure()
    for number, name in enumerate(_names(played)):
        means = {
            scenario: fmean(run.measures.moves for run in each[name])
            for scenario, each in played.items()
            if each.get(name)
        }
        figure.add_bar(x=list(means), y=list(means.values()), name=name, marker_color=_COLOURS[number % len(_COLOURS)])
    figure.update_layout(
        height=420, margin={"t": 20}, barmode="group", yaxis_title="moves per run (log)", template="simple_white"
    )
    figure.update_yaxes(type="log")
    return figure


def _steps(played: Played) -> go.Figure:
    figure = go.Figure()
    for number, (name, runs) in enumerate(played.items()):
        parts = [run.measures.parts for run in runs if run.measures.parts]
        length = min(map(len, parts), default=0)
        if length and len({len(part) for part in parts}) == 1:
            means = [fmean(part[index] for part in parts) for index in range(length)]
            colour = _COLOURS[number % len(_COLOURS)]
            figure.add_scatter(
                x=list(range(1, length + 1)), y=means, name=name, line={"color": colour}, mode="lines+markers"
            )
    figure.update_layout(
        height=400, margin={"t": 20}, xaxis_title="step", yaxis_title="availability", template="simple_white"
    )
    return figure


def _names(played: Mapping[str, Played]) -> list[str]:
    every = dict.fromkeys(name for each in played.values() for name in each)
    return [*(name for name in policies() if name in every), *filter(is_settings_file, every)]


def _summary(played: Mapping[str, Played], judged: Sequence[Goal], seeds: str) -> dict[str, object]:
    return {
        "seeds": seeds,
        "goals": [asdict(each) for each in judged],
        "scenarios": {
            scenario: {
                name: {
                    "runs": len(runs),
                    **dict(zip(HEADERS[1:], row(name, runs)[1:], strict=True)),
                }
                for name, runs in each.items()
            }
            for scenario, each in played.items()
        },
        "less ours": {
            scenario: {name: asdict(each) for name, each in rivals(both).items()}
            for scenario, both in played.items()
            if both.get(OURS)
        },
    }
