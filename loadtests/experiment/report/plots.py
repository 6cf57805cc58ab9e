"""The report's figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from statistics import fmean
from typing import TypeAlias

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from loadtests.experiment.design import (
    CAPACITY_AT,
    KUBE_SCHEDULER,
    OUR_LIVE,
    PAPER,
    PAPER_RATES,
    STEPS,
    Arm,
    Phase,
)
from loadtests.experiment.records import StepRecord
from loadtests.experiment.report.worlds import World
from loadtests.experiment.statistics import NEAR_CAPACITY, interval_of

Figure: TypeAlias = go.Figure
_BY_THRESHOLD = {0.7: "#2ca02c", 0.8: "#1f77b4", 0.9: "#9467bd"}
_NODE_COLOURS = ("#d62728", "#ff7f0e", "#17becf")
_RATE = "step (the paper's rate per app; 125 = all nodes full)"
_HEIGHT = 420


def availability(worlds: Sequence[World], phase: Phase) -> Figure:
    def arms(world: World) -> list[Arm]:
        return [KUBE_SCHEDULER, *(arm for arm in world.results.arms() if arm.phase is phase)]

    return _by_rate(worlds, arms, lambda record: record.availability, "availability")


def latency(worlds: Sequence[World]) -> Figure:
    figure = _by_rate(worlds, lambda _: [KUBE_SCHEDULER, OUR_LIVE], lambda record: record.p95_ms, "p95, ms")
    return figure.update_yaxes(type="log")


def node_cpu(worlds: Sequence[World]) -> Figure:
    """Which nodes work and which idle, as shares of their quotas; the dotted lines are the default placement."""
    figure = _grid(worlds)
    for column, world in enumerate(worlds, start=1):
        for (node, cores), colour in zip(world.about.nodes.items(), _NODE_COLOURS, strict=False):
            for arm, dash in ((KUBE_SCHEDULER, "dot"), (OUR_LIVE, "solid")):
                shares = [_mean(world, arm, partial(_share_of, node, cores), rate) for rate in PAPER_RATES]
                name, line = f"{node} ({cores * 1000:g}m), {arm.name}", {"color": colour, "dash": dash}
                trace = go.Scatter(x=PAPER_RATES, y=shares, name=name, line=line, showlegend=column == 1)
                figure.add_trace(trace, row=1, col=column)
    return figure.update_yaxes(title_text="share of the node's CPU", col=1)


def _share_of(node: str, cores: float, record: StepRecord) -> float:
    return record.cpu.get(node, 0.0) / cores


def differences(worlds: Sequence[World]) -> Figure:
    """Ours live less the default, by step, with the 95 % interval over the seeds."""
    figure = _grid(worlds)
    for column, world in enumerate(worlds, start=1):
        means, errors = [], []
        for step in STEPS:
            values = list(world.results.differences(OUR_LIVE, [step]).values())
            interval = interval_of(values)
            means.append(fmean(values) if values else None)
            errors.append(interval.high - interval.mean if interval else 0.0)
        bars = {"type": "data", "array": errors}
        name = f"{OUR_LIVE.name} less kube-scheduler"
        line = {"color": _BY_THRESHOLD[0.8]}
        trace = go.Scatter(x=PAPER_RATES, y=means, error_y=bars, line=line, name=name, showlegend=column == 1)
        figure.add_trace(trace, row=1, col=column)
        figure.add_hline(y=0, line_color="#888", row=1, col=column)
    return figure.update_yaxes(title_text="difference of availability", col=1)


def _by_rate(
    worlds: Sequence[World], arms: Callable[[World], list[Arm]], value: Callable[[StepRecord], float], title: str
) -> Figure:
    figure = _grid(worlds)
    shown: set[str] = set()
    for column, world in enumerate(worlds, start=1):
        for arm in arms(world):
            values = [_mean(world, arm, value, rate) for rate in PAPER_RATES]
            trace = go.Scatter(x=PAPER_RATES, y=values, name=arm.name, legendgroup=arm.name, mode="lines+markers",
                               line=_line(arm), showlegend=arm.name not in shown)  # fmt: skip
            shown.add(arm.name)
            figure.add_trace(trace, row=1, col=column)
    return figure.update_yaxes(title_text=title, col=1)


def _line(arm: Arm) -> dict[str, object]:
    if arm.phase is Phase.DEFAULT:
        return {"color": "#d62728", "width": 3}
    return {"color": _BY_THRESHOLD.get(arm.threshold, "#555"), "dash": "dash" if arm.planner == PAPER else "solid"}


def _mean(world: World, arm: Arm, value: Callable[[StepRecord], float], rate: int) -> float | None:
    found = [value(record) for record in world.results.of_arm(arm) if record.paper_rate == rate]
    return fmean(found) if found else None


def _grid(worlds: Sequence[World]) -> Figure:
    """One column per world, with the same scale."""
    titles = [world.title for world in worlds]
    figure = make_subplots(rows=1, cols=len(worlds), subplot_titles=titles, shared_yaxes=True, horizontal_spacing=0.04)
    figure.update_layout(height=_HEIGHT, margin={"l": 60, "r": 20, "t": 40, "b": 50}, template="plotly_white",
                         legend={"orientation": "h", "y": -0.2})  # fmt: skip
    figure.update_xaxes(title_text=_RATE)
    for column in range(1, len(worlds) + 1):
        figure.add_vline(x=NEAR_CAPACITY * CAPACITY_AT, line_dash="dot", line_color="#aaa", row=1, col=column,
                         exclude_empty_subplots=False)  # fmt: skip
    return figure
