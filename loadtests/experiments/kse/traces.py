"""The nodes over time, one plot per arm."""

from __future__ import annotations

from collections.abc import Iterable

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from loadtests.experiments.kse.arms import ARMS
from loadtests.experiments.kse.design import NODES, Scenario
from loadtests.experiments.kse.results import Run

_COLOURS = ("#d62728", "#ff7f0e", "#17becf", "#2ca02c")


def trace_figure(title: str, scenario: Scenario, runs: Iterable[Run]) -> go.Figure:
    """Of the first of the runs of each arm on this scenario."""
    first: dict[str, Run] = {}
    for run in runs:
        if run.scenario == scenario.name:
            first.setdefault(run.arm, run)
    figure = make_subplots(rows=1, cols=len(ARMS), shared_yaxes=True, subplot_titles=list(ARMS))
    for column, arm in enumerate(ARMS, 1):
        for index, node in enumerate(NODES) if arm in first else ():
            snapshots = list(range(1, len(first[arm].trace) + 1))
            values = [nodes[index] for nodes in first[arm].trace]
            line = {"color": _COLOURS[index]}
            figure.add_scatter(
                x=snapshots, y=values, name=node, line=line, showlegend=column == 1, row=1, col=column, mode="lines"
            )
    figure.update_layout(height=360, title=title, yaxis_title=scenario.unit)
    return figure
