"""GENETIC's small clusters: how the search converges with and without the check dictionary, and weights per node."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

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
    seeds: int

    @property
    def needed(self) -> tuple[int, int]:
        return _first_below(self.plain), _first_below(self.checked)


class Curve(Struct, frozen=True):
    """Cost of the best individual by generation, of one search."""

    seed: int
    dictionary: bool
    costs: list[float]

    @property
    def key(self) -> tuple[int, bool]:
        return (self.seed, self.dictionary)


def curve(seed: int, *, dictionary: bool) -> Curve:
    planner: Any = load_planner("genetic", {"seed": seed, "generations": GENERATIONS, "dictionary": dictionary})
    return Curve(seed, dictionary, np.asarray(planner.evolve(constrained(seed)).cost).tolist())


def mean_curves(curves: Iterable[Curve]) -> Convergence | None:
    """Of the seeds that were run with and without the dictionary."""
    found = {each.key: each.costs for each in curves}
    seeds = [seed for seed, dictionary in found if dictionary and (seed, False) in found]
    if not seeds:
        return None
    plain, checked = (np.mean([found[seed, way] for seed in seeds], axis=0) for way in (False, True))
    return Convergence(plain, checked, len(seeds))


def convergence(seeds: int) -> Convergence:
    found = mean_curves(curve(seed, dictionary=way) for seed in range(seeds) for way in (False, True))
    assert found is not None
    return found


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


def _first_below(costs: Floats) -> int:
    return int(np.argmax(costs <= GOOD_ENOUGH)) if (costs <= GOOD_ENOUGH).any() else len(costs) - 1
