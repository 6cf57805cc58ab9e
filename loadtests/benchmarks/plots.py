"""Plots of the benchmarks. Only they need matplotlib."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib as mpl
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from loadtests.benchmarks.real_load_data import Row

_MARKS = ("o", "s", "^", "v")


def save(figure: Figure, path: Path) -> None:
    """The same numbers make the same file, so that a figure changes in the history only when they do."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context({"svg.hashsalt": "rematch"}):
        figure.savefig(path, metadata={"Date": None})


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


def plot_zero_loss(figures: Mapping[tuple[str, str], tuple[float, float]], path: Path) -> None:
    """By way of moving and app: failed requests per move, and the longest gap in milliseconds."""
    ways, apps = (list(dict.fromkeys(key[part] for key in figures)) for part in (0, 1))
    figure = Figure(figsize=(12, 4.5), layout="constrained")
    width = 0.8 / len(ways)
    titles = ("failed requests per move, timeouts included", "longest time without a success, ms")
    for which, (axes, title) in enumerate(zip(figure.subplots(1, 2), titles, strict=True)):
        for number, way in enumerate(ways):
            found = [(place, figures[way, app][which]) for place, app in enumerate(apps) if (way, app) in figures]
            bars = axes.bar(
                [place + number * width for place, _ in found], [each for _, each in found], width, label=way
            )
            axes.bar_label(bars, [f"{each:.3g}" for _, each in found], fontsize=6)
        axes.set_title(title)
        axes.set_xticks([place + 0.4 - width / 2 for place in range(len(apps))], apps)
        axes.grid(alpha=0.3, axis="y")
        axes.legend(frameon=False)
    save(figure, path)
