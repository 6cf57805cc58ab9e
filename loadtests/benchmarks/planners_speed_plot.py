"""The growth curve of `planners_speed`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.figure import Figure

from loadtests.benchmarks.drawing import save


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
