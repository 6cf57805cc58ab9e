"""The plot of the report on lost requests."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from matplotlib.figure import Figure

from loadtests.plots.figure_file import save


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
