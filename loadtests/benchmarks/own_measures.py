"""`balance` against each other planner on that planner's own measure, at the moment of the sample.

    python -m loadtests.benchmarks.own_measures --data FOLDER

Both look at the same axes of the same clusters (those of `real_load`). `balance` runs as it is set by default and with
every caution off, as the others are: no noise, no price, no regard for peaks.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import numpy as np

from loadtests.benchmarks.real_load import ends_of, shares_of_nodes
from loadtests.benchmarks.real_load_data import HELD_OUT, SOURCES, Floats, Instance, Size, draw, read_series
from matching.plan import Planner
from matching.registry import load_planner

Measure = Callable[[Floats], float]
"""Of the shares (axes, nodes) that the nodes use; the smaller the better."""


@dataclass(frozen=True, slots=True)
class Rival:
    planner: str
    measure: Measure
    words: str
    parameters: tuple[tuple[str, object], ...] = ()
    one_axis: bool = True
    """It is asked for CPU alone, and so is `balance`."""


def imbalance(shares: Floats) -> float:
    return float(100 * np.ptp(shares[0]))


def fullest(shares: Floats) -> float:
    return float(shares[0].max() / shares[0].mean())


def deviation_of_means(shares: Floats) -> float:
    return float(100 * shares.mean(axis=0).std())


def variance(shares: Floats) -> float:
    return float(1e4 * shares[0].var())


RIVALS = (
    Rival("greedy", imbalance, "largest - smallest CPU share, %"),
    Rival("refine", imbalance, "largest - smallest CPU share, %"),
    Rival("refine", fullest, "fullest node / mean CPU"),
    Rival("genetic", deviation_of_means, "deviation of the mean of the axes, %", one_axis=False),
    Rival("network", variance, "variance of one axis (CPU), %²", (("axis", "cpu"),)),
)


@dataclass(frozen=True, slots=True)
class Row:
    source: str
    rival: Rival
    before: float
    ends: tuple[tuple[float, float], ...]
    """Measure and moves: of the rival, of `balance` by default, of `balance` without caution."""


def compare(source: str, instances: Sequence[Instance]) -> Iterator[Row]:
    for rival in RIVALS:
        weights = {"cpu": 1.0} if rival.one_axis else {}
        planners: tuple[Planner, ...] = (
            load_planner(rival.planner, dict(rival.parameters)),
            load_planner("balance", {"weights": weights}),
            load_planner("balance", {"weights": weights, "confidence": 0.0, "outage": 0.0, "overload": 0.0}),
        )
        before = fmean(rival.measure(_shares(each, [pod.node for pod in each.problem.pods])) for each in instances)
        yield Row(source, rival, before, tuple(_end(planner, rival.measure, instances) for planner in planners))


def _end(planner: Planner, measure: Measure, instances: Sequence[Instance]) -> tuple[float, float]:
    found = []
    for each in instances:
        plan = planner.plan(each.problem)
        ends = ends_of(plan)
        found.append((measure(_shares(each, [ends[pod.key] for pod in each.problem.pods])), len(plan.moves)))
    return fmean(value for value, _ in found), fmean(moves for _, moves in found)


def _shares(instance: Instance, at: Sequence[str | None]) -> Floats:
    now = np.array([pod.usage for pod in instance.problem.pods]).T[:, :, None]
    shares: Floats = shares_of_nodes(instance, at, now)[:, :, 0]
    return shares


def table(rows: Sequence[Row]) -> str:
    head = "| planner | its measure | load | before | itself (moves) | balance (moves) | balance, no caution (moves) |"
    lines = [head, "|---" * 7 + "|"]
    for row in sorted(rows, key=lambda row: RIVALS.index(row.rival)):
        ends = " | ".join(f"{value:.3g} ({moves:.0f})" for value, moves in row.ends)
        lines.append(f"| `{row.rival.planner}` | {row.rival.words} | {row.source} | {row.before:.3g} | {ends} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--data", type=Path, required=True, help="folder with the series that docs/planners/measurements.md names"
    )
    parser.add_argument("--instances", type=int, default=5, help="per source")
    arguments = parser.parse_args()
    rows: list[Row] = []
    for source in (*SOURCES, HELD_OUT):
        series = read_series(arguments.data, source)
        rows += compare(source.name, [draw(series, Size(), seed) for seed in range(arguments.instances)])
    print(table(rows))


if __name__ == "__main__":
    main()
