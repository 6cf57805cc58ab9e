"""Every planner on clusters made of real load: how even the nodes are after its plan, now and in the steps that follow.

python -m loadtests.benchmarks.real_load --data FOLDER [--images docs/images] [-o json]
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from statistics import fmean

import numpy as np

from loadtests.benchmarks.real_load_data import (
    HELD_OUT,
    SOURCES,
    Figures,
    Floats,
    Instance,
    Row,
    Size,
    draw,
    read_series,
)
from matching.plan import Plan
from matching.registry import load_planner

INERTIAS = (0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5)


@dataclass(frozen=True, slots=True)
class Entry:
    """A planner with its parameters; `weights` asks it for all axes alike."""

    title: str
    planner: str
    parameters: tuple[tuple[str, object], ...] = ()
    weigh_all: bool = False


ENTRIES = (
    Entry("stable", "stable"),
    Entry("greedy", "greedy", weigh_all=True),
    Entry("refine", "refine", weigh_all=True),
    Entry("genetic", "genetic"),
    Entry("network (axis cpu)", "network", (("axis", "cpu"),)),
    Entry("balance", "balance"),
    Entry("balance, confidence 0", "balance", (("confidence", 0.0),)),
    Entry("balance, confidence 0, outage 0", "balance", (("confidence", 0.0), ("outage", 0.0))),
)


def compare(source: str, instances: Sequence[Instance]) -> Iterator[Row]:
    for entry in ENTRIES:
        yield Row(source, entry.title, _mean([_figures(entry, each) for each in instances]))


def moves_by_inertia(instances: Sequence[Instance]) -> list[tuple[float, float]]:
    """Mean number of moves of the stable matching itself, whether it is worth them or not."""
    planner = load_planner("stable")
    curve = []
    for inertia in INERTIAS:
        plans = [
            planner.plan(
                replace(each.problem, options=replace(each.problem.options, inertia=inertia, only_if_better=False))
            )
            for each in instances
        ]
        curve.append((inertia, fmean(len(plan.moves) for plan in plans)))
    return curve


def _figures(entry: Entry, instance: Instance) -> Figures:
    problem = instance.problem
    parameters = dict(entry.parameters)
    if entry.weigh_all:
        parameters["weights"] = dict.fromkeys(problem.axes, 1.0)
    planner = load_planner(entry.planner, parameters)
    started = time.perf_counter()
    plan = planner.plan(problem)
    took = time.perf_counter() - started
    current, ends = [pod.node for pod in problem.pods], ends_of(plan)
    at = [ends[pod.key] for pod in problem.pods]
    now = np.array([pod.usage for pod in problem.pods]).T[:, :, None]
    limit = 1 - problem.options.headroom
    return Figures(
        before=_deviation(instance, current, now),
        after=_deviation(instance, at, now),
        before_next=_deviation(instance, current, instance.future),
        after_next=_deviation(instance, at, instance.future),
        overloaded_before=float((shares_of_nodes(instance, current, instance.future).max(axis=(0, 2)) > limit).sum()),
        overloaded=float((shares_of_nodes(instance, at, instance.future).max(axis=(0, 2)) > limit).sum()),
        moves=float(len(plan.moves)),
        blocking_pairs=float(plan.certificate.blocking_pairs),
        milliseconds=took * 1000,
    )


def ends_of(plan: Plan) -> dict[str, str | None]:
    ends: dict[str, str | None] = {stay.pod: stay.node for stay in plan.stays}
    ends.update({move.pod: move.target for move in plan.moves})
    return ends


def shares_of_nodes(instance: Instance, at: Sequence[str | None], used: Floats) -> Floats:
    """(axes, nodes, steps)"""
    nodes = instance.problem.nodes
    on_node = np.array([[node.name == where for where in at] for node in nodes], dtype=np.float64)
    shares: Floats = (
        np.einsum("np,aps->ans", on_node, used) / np.array([node.allocatable for node in nodes]).T[:, :, None]
    )
    return shares


def _deviation(instance: Instance, at: Sequence[str | None], used: Floats) -> float:
    variances = shares_of_nodes(instance, at, used).var(axis=1)
    return float(np.sqrt(variances.mean(axis=0)).mean())


def _mean(every: Sequence[Figures]) -> Figures:
    return Figures(*(fmean(getattr(each, field.name) for each in every) for field in fields(Figures)))


def table(rows: Sequence[Row]) -> str:
    lines = [
        "| load | planner | deviation now, % | next 15 steps, % | overloaded nodes | moves | blocking pairs | ms |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        one = row.figures
        spreads = f"{one.before:.1%} → {one.after:.1%} | {one.before_next:.1%} → {one.after_next:.1%}".replace("%", "")
        rest = f"{one.moves:.0f} | {one.blocking_pairs:.0f} | {one.milliseconds:.0f}"
        overloaded = f"{one.overloaded_before:.1f} → {one.overloaded:.1f}"
        lines.append(f"| {row.source} | {row.title} | {spreads} | {overloaded} | {rest} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--data", type=Path, required=True, help="folder with the series that docs/planners/measurements.md names"
    )
    parser.add_argument("--instances", type=int, default=10, help="per source")
    parser.add_argument("--nodes", type=int, default=Size().nodes)
    parser.add_argument("--pods", type=int, default=Size().pods)
    parser.add_argument("--images", type=Path, help="folder for the plots (needs matplotlib)")
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table")
    arguments = parser.parse_args()
    size = Size(arguments.nodes, arguments.pods)
    rows: list[Row] = []
    curves: dict[str, list[tuple[float, float]]] = {}
    for source in (*SOURCES, HELD_OUT):
        series = read_series(arguments.data, source)
        instances = [draw(series, size, seed) for seed in range(arguments.instances)]
        rows += compare(source.name, instances)
        curves[source.name] = moves_by_inertia(instances)
        print(f"{source.name}: done", file=sys.stderr)
    if arguments.output == "json":
        print(json.dumps({"rows": [asdict(row) for row in rows], "movesByInertia": curves}, indent=1))
    else:
        print(table(rows))
        for name, curve in curves.items():
            print(f"{name}, moves by inertia: " + ", ".join(f"{inertia:g}: {moves:.0f}" for inertia, moves in curve))
    if arguments.images:
        from loadtests.benchmarks.plots import plot_all

        plot_all(rows, curves, arguments.images)


if __name__ == "__main__":
    main()
