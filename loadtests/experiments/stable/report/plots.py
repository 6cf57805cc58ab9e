"""The report's figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean
from typing import TypeAlias

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from loadtests.experiments.stable.design import (
    CAPACITY_AT,
    KUBE_SCHEDULER,
    OUR_LIVE,
    PAPER,
    PAPER_RATES,
    SHORT,
    STEPS,
    Arm,
    Phase,
    Step,
)
from loadtests.experiments.stable.records import StepRecord
from loadtests.experiments.stable.results import NEAR_CAPACITY, Results, World, interval_of

_BY_THRESHOLD = {0.7: "#2ca02c", 0.8: "#1f77b4", 0.9: "#9467bd"}
_OF_PAPER = {0.7: "#8c564b", 0.8: "#ff7f0e", 0.9: "#e377c2"}
_COINCIDING = ("solid", "8px,8px", "4px,12px", "2px,14px")
"""Of lines that run together each later one has wider gaps, through which the others are seen."""
_NODE_COLOURS = ("#d62728", "#ff7f0e", "#17becf")
_RATE = "step (the paper's rate per app; 125 = all nodes full)"
_HEIGHT = 420
_NO_BAR = "none"
"""Not a number: plotly.js takes null for zero and draws a bar of no length."""
_TIMEOUT_MS = SHORT.timeout * 1000


@dataclass(frozen=True, slots=True)
class Point:
    mean: float | None
    valid: int
    """Seeds that the mean is of."""
    half: float | None = None
    """Of the 95 % interval; None where there is none."""


@dataclass(frozen=True, slots=True)
class Curve:
    points: Sequence[Point]
    seeds: int
    """That the arm was measured with."""

    @property
    def means(self) -> list[float | None]:
        return [point.mean for point in self.points]

    @property
    def valid(self) -> list[int]:
        return [point.valid for point in self.points]

    @property
    def symbols(self) -> list[str]:
        """Hollow where seeds are missing: a neighbour of more seeds may be higher for that alone."""
        return ["circle" if point.valid == self.seeds else "circle-open" for point in self.points]


def curve(results: Results, arm: Arm, value: Callable[[StepRecord], float]) -> Curve:
    found = ([value(record) for record in results.at(arm, step)] for step in STEPS)
    return Curve([_point(values) for values in found], len(results.seeds(arm)))


def difference_curve(results: Results, arm: Arm) -> Curve:
    found = (list(results.differences(arm, step).values()) for step in STEPS)
    return Curve([_point(values) for values in found], len(results.seeds(arm)))


def _point(values: Sequence[float]) -> Point:
    if not values:
        return Point(None, 0)
    interval = interval_of(values)
    return Point(fmean(values), len(values), interval.high - interval.mean if interval else None)


Figure: TypeAlias = go.Figure


def availability(worlds: Sequence[World], phase: Phase) -> Figure:
    def arms(world: World) -> list[Arm]:
        return [KUBE_SCHEDULER, *(arm for arm in world.results.arms() if arm.phase is phase)]

    return _by_rate(worlds, arms, lambda record: record.availability, "availability")


def latency(worlds: Sequence[World]) -> Figure:
    figure = _by_rate(worlds, lambda _: [KUBE_SCHEDULER, OUR_LIVE], lambda record: record.p95_ms, "p95, ms (log)")
    figure.add_hline(y=_TIMEOUT_MS, line_dash="dot", line_color="#aaa", exclude_empty_subplots=False)
    return figure.update_yaxes(type="log", dtick=1)


def node_cpu(worlds: Sequence[World]) -> Figure:
    """Which nodes work and which idle, as shares of their quotas; the wide pale lines are the default placement's."""
    figure = _grid(worlds)
    for column, world in enumerate(worlds, start=1):
        nodes = {f"{node} ({cores * 1000:g}m)": partial(_share, "cpu", node, cores)
                 for node, cores in world.about.nodes.items()}  # fmt: skip
        _add_nodes(figure, world, column, nodes)
    return figure.update_yaxes(title_text="share of the node's CPU", col=1)


def node_memory(worlds: Sequence[World]) -> Figure:
    """As `node_cpu`, for the memory that pods hold."""
    figure = _grid(worlds)
    for column, world in enumerate(worlds, start=1):
        nodes = {f"{node} ({held / 2**20:g} MiB)": partial(_share, "memory", node, held)
                 for node, held in world.about.memory.items()}  # fmt: skip
        _add_nodes(figure, world, column, nodes)
    return figure.update_yaxes(title_text="share of the node's memory", col=1)


def app_usage(world: World, step: Step) -> Figure:
    """CPU and memory of every app at one step, in the default placement and live."""
    titles = (f"CPU at {step.paper_rate}, millicores", f"memory at {step.paper_rate}, MB")
    figure = make_subplots(rows=1, cols=2, subplot_titles=titles)
    figure.update_layout(height=_HEIGHT, template="plotly_white", legend={"orientation": "h", "y": -0.2})
    for arm in (KUBE_SCHEDULER, OUR_LIVE, Arm(Phase.LIVE, PAPER, OUR_LIVE.threshold)):
        found = world.results.at(arm, step)
        apps = sorted({app for record in found for app in record.app_cpu})
        for column, (name, unit) in enumerate((("app_cpu", 1e-3), ("app_memory", 1e6)), start=1):
            means = [fmean(getattr(record, name).get(app, 0.0) for record in found) / unit for app in apps]
            colour = str(_line(arm)["color"])
            bar = go.Bar(x=apps, y=means, name=arm.name, marker_color=colour, legendgroup=arm.name,
                         showlegend=column == 1)  # fmt: skip
            figure.add_trace(bar, row=1, col=column)
    return figure


def _add_nodes(figure: Figure, world: World, column: int, nodes: Mapping[str, Callable[[StepRecord], float]]) -> None:
    for (node, value), colour in zip(nodes.items(), _NODE_COLOURS, strict=False):
        for arm, width, opacity in ((KUBE_SCHEDULER, 7, 0.35), (OUR_LIVE, 2, 1.0)):
            name, line = f"{node}, {arm.name}", {"color": colour, "width": width}
            shares = curve(world.results, arm, value)
            trace = _trace(shares, name, line, opacity=opacity, legendgroup=name, showlegend=column == 1)
            figure.add_trace(trace, row=1, col=column)


def _share(what: str, node: str, of: float, record: StepRecord) -> float:
    used: Mapping[str, float] = getattr(record, what)
    return used.get(node, 0.0) / of


def differences(worlds: Sequence[World]) -> Figure:
    """Ours live less the default, by step, with the 95 % interval over the seeds; of one seed there is none."""
    figure = _grid(worlds)
    for column, world in enumerate(worlds, start=1):
        gains = difference_curve(world.results, OUR_LIVE)
        trace = _trace(gains, f"{OUR_LIVE.name} less kube-scheduler", _line(OUR_LIVE), showlegend=column == 1)
        trace.update(
            mode="lines+markers+text",
            error_y={"type": "data", "array": [_NO_BAR if one.half is None else one.half for one in gains.points]},
            text=["n=1" if valid == 1 else "" for valid in gains.valid],
            textposition="top center",
        )
        figure.add_trace(trace, row=1, col=column)
        figure.add_hline(y=0, line_color="#888", row=1, col=column, exclude_empty_subplots=False)
    return figure.update_yaxes(title_text="difference of availability", col=1)


def _by_rate(
    worlds: Sequence[World], arms: Callable[[World], list[Arm]], value: Callable[[StepRecord], float], title: str
) -> Figure:
    figure = _grid(worlds)
    shown: set[str] = set()
    for column, world in enumerate(worlds, start=1):
        drawn: list[list[float | None]] = []
        for arm in arms(world):
            values = curve(world.results, arm, value)
            line = _line(arm, sum(_mostly_equal(values.means, other) for other in drawn))
            trace = _trace(values, arm.name, line, legendgroup=arm.name, showlegend=arm.name not in shown)
            drawn.append(values.means)
            shown.add(arm.name)
            figure.add_trace(trace, row=1, col=column)
    return figure.update_yaxes(title_text=title, col=1)


def _trace(values: Curve, name: str, line: dict[str, object], **more: object) -> go.Scatter:
    """Hovering tells how many seeds a point is of."""
    return go.Scatter(
        x=PAPER_RATES,
        y=values.means,
        name=name,
        mode="lines+markers",
        line=line,
        marker={"symbol": values.symbols, "size": 7},
        customdata=values.valid,
        hovertemplate=f"%{{y:.4g}} at %{{x}}, n=%{{customdata}} of {values.seeds}",
        **more,
    )


def _mostly_equal(one: Sequence[float | None], other: Sequence[float | None]) -> bool:
    """At low rates all arms are equal; one that is so for longer would hide the other."""
    same = sum(mine is not None and mine == yours for mine, yours in zip(one, other, strict=True))
    return same > len(one) / 2


def _line(arm: Arm, equal: int = 0) -> dict[str, object]:
    """`equal`: lines of mostly the same values that are drawn already."""
    if arm.phase is Phase.DEFAULT:
        return {"color": "#d62728", "width": 3}
    colours = _OF_PAPER if arm.planner == PAPER else _BY_THRESHOLD
    return {"color": colours.get(arm.threshold, "#555"), "dash": _COINCIDING[min(equal, len(_COINCIDING) - 1)]}


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
