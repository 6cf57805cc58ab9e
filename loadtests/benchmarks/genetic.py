"""GENETIC's experiments on small clusters: with and without the check dictionary, and with weights per node."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure

from loadtests.benchmarks.plots import save
from matching.problem import Node, Options, Pod, Problem, Rules
from matching.registry import load_planner

Floats = npt.NDArray[np.float64]

METRICS = ("cpu", "memory", "disk", "network")
GENERATIONS = 200
GOOD_ENOUGH = 0.1
"""Standard deviation of the node loads, what is not permitted added."""
NODES = (Node("strong", (32.0,) * 4), Node("weak1", (24.0,) * 4), Node("weak2", (24.0,) * 4))


@dataclass(frozen=True, slots=True)
class Convergence:
    plain: Floats
    checked: Floats
    """Mean cost of the best individual by generation."""

    @property
    def needed(self) -> tuple[int, int]:
        return _first_below(self.plain), _first_below(self.checked)


def convergence(seeds: int) -> Convergence:
    return Convergence(_costs(seeds, dictionary=False), _costs(seeds, dictionary=True))


def weighted_use(strong: float) -> dict[str, list[float]]:
    """Use of each node by metric when the strong node weighs that much and the weak ones 1."""
    pick = Random(3)
    pods = tuple(random_pod(at, pick, pick.choice(NODES).name) for at in range(36))
    planner = load_planner("genetic", {"node_weights": {"strong": dict.fromkeys(METRICS, strong)}})
    moved = {move.pod: move.target for move in planner.plan(Problem(METRICS, pods, NODES, Options(headroom=0.0))).moves}
    return {
        node.name: [
            sum(pod.usage[axis] for pod in pods if moved.get(pod.key, pod.node) == node.name) / node.allocatable[axis]
            for axis in range(len(METRICS))
        ]
        for node in NODES
    }


def constrained(seed: int) -> Problem:
    """Most pods ask for one of four labels that half of the nodes have."""
    pick = Random(seed)
    labels = [{f"l{at}": "y" for at in range(4) if pick.random() < 0.5} for _ in range(10)]
    nodes = tuple(Node(f"n{at}", (16.0,) * 4, labels=each) for at, each in enumerate(labels))
    rules = [*(Rules(node_selector=((f"l{at}", "y"),)) for at in range(4)), Rules()]
    return Problem(METRICS, tuple(random_pod(at, pick, None, pick.choice(rules)) for at in range(50)), nodes)


def random_pod(at: int, pick: Random, node: str | None, rules: Rules | None = None) -> Pod:
    need = tuple(pick.uniform(0.2, 2.0) for _ in METRICS)
    request = tuple(amount / 4 for amount in need)
    return Pod(f"d/p{at:03d}", f"{at}", need, request, need, node=node, rules=rules or Rules())


def _costs(seeds: int, *, dictionary: bool) -> Floats:
    runs = []
    for seed in range(seeds):
        planner: Any = load_planner("genetic", {"seed": seed, "generations": GENERATIONS, "dictionary": dictionary})
        runs.append(planner.evolve(constrained(seed)).cost)
    mean: Floats = np.mean(runs, axis=0)
    return mean


def _first_below(costs: Floats) -> int:
    return int(np.argmax(costs <= GOOD_ENOUGH)) if (costs <= GOOD_ENOUGH).any() else len(costs) - 1


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
