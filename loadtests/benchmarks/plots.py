"""Plots of the benchmarks. Only they need matplotlib."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from loadtests.plots.figure_file import save

if TYPE_CHECKING:
    from loadtests.benchmarks.real_load_data import Row

_MARKS = ("o", "s", "^", "v")


def plot_growth(curves: Mapping[str, Sequence[tuple[int, float]]], folder: Path) -> None:
    """Both axes logarithmic: a slope of one is linear."""
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    for planner, curve in curves.items():
        axes.loglog(*zip(*curve, strict=True), marker="o", label=planner)
    first = next(iter(curves.values()))
    pods = [first[0][0], first[-1][0]]
    axes.loglog(pods, [first[-1][1] * each / pods[1] for each in pods], ":", color="0.5", label="linear")
    axes.set_xlabel("pods (30 per node)")
    axes.set_ylabel("seconds to find the placement")
    axes.grid(alpha=0.3, which="both")
    axes.legend(frameon=False)
    save(figure, folder / "planners-growth.svg")


def plot_all(rows: Sequence[Row], curves: Mapping[str, Sequence[tuple[float, float]]], folder: Path) -> None:
    _planners(rows, folder / "planners-real-load.svg")
    _inertia(curves, folder / "stable-inertia.svg")


def _planners(rows: Sequence[Row], path: Path) -> None:
    """How even the next steps were against the moves that it took; towards the lower left is better."""
    figure = Figure(figsize=(11, 4), layout="constrained")
    sources = list(dict.fromkeys(row.source for row in rows))
    titles = list(dict.fromkeys(row.title for row in rows))
    for axes, source in zip(figure.subplots(1, len(sources), sharey=True), sources, strict=True):
        mine = [row for row in rows if row.source == source]
        axes.axhline(1.0, color="0.6", linewidth=1)
        for row in mine:
            figures = row.figures
            colour = f"C{titles.index(row.title)}"
            axes.plot(figures.moves, figures.after_next / figures.before_next, "o", color=colour, label=row.title)
        axes.set_title(source)
        axes.set_xlabel("moves")
        axes.set_xscale("symlog", linthresh=10)
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.3)
    figure.axes[0].set_ylabel("deviation of the next 15 steps, after / before")
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    save(figure, path)


def _inertia(curves: Mapping[str, Sequence[tuple[float, float]]], path: Path) -> None:
    figure = Figure(figsize=(6, 3.5), layout="constrained")
    axes = figure.subplots()
    for mark, (source, curve) in zip(_MARKS, curves.items(), strict=False):
        axes.plot(*zip(*curve, strict=True), marker=mark, label=source)
    axes.set_xlabel("inertia")
    axes.set_ylabel("moves of 300 pods (mean)")
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    save(figure, path)
