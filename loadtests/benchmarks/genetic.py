"""GENETIC's experiments on small clusters: with and without the check dictionary, and with weights per node."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from loadtests.benchmarks.plots import save
from loadtests.small_clusters import GOOD_ENOUGH, METRICS, Convergence, convergence, weighted_use


def _draw(curves: Convergence, uses: dict[str, dict[str, list[float]]], path: Path) -> None:
    figure = Figure(figsize=(10, 3.6), layout="constrained")
    left, *others = figure.subplots(1, 1 + len(uses))
    left.semilogy(curves.plain, label="plain")
    left.semilogy(curves.checked, label="with the dictionary")
    left.set(xlabel="generation", ylabel="deviation of the loads and what is forbidden", title="check dictionary")
    left.legend(frameon=False)
    for axes, (title, use) in zip(others, uses.items(), strict=True):
        for at, (node, shares) in enumerate(use.items()):
            axes.bar(np.arange(len(METRICS)) + 0.27 * at, np.array(shares) * 100, 0.25, label=node)
        axes.set_xticks(np.arange(len(METRICS)) + 0.27, METRICS)
        axes.set(ylabel="use, %", ylim=(0, 100), title=title)
        axes.legend(frameon=False, ncols=3, fontsize="small")
    save(figure, path)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m loadtests.benchmarks.genetic", description=__doc__)
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--images", type=Path)
    given = parser.parse_args()
    curves = convergence(given.seeds)
    plain, checked = curves.needed
    print(f"generations until the deviation is below {GOOD_ENOUGH:g}: plain {plain}, with the dictionary {checked}")
    uses = {"weights 1, 1, 1": weighted_use(1.0), "weights 0.5, 1, 1": weighted_use(0.5)}
    for title, use in uses.items():
        shown = (f"{node} {'/'.join(f'{share:.0%}' for share in shares)}" for node, shares in use.items())
        print(f"{title} ({'/'.join(METRICS)}): {', '.join(shown)}")
    if given.images is not None:
        _draw(curves, uses, given.images / "genetic-figures.svg")


if __name__ == "__main__":
    main()
