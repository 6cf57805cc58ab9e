"""The nodes and pods of the test, what the paper found, and the arms that are compared."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, pvariance

from matching.problem import Node, Pod, Problem
from matching.registry import planner_class

Placement = Mapping[str, str]
"""By the name of a pod: its node."""

MBIT = 1e6
DEMANDS: Mapping[str, float] = {f"pod{number}": rate for number, rate in enumerate((2, 2, 2, 5, 5, 5, 10, 10, 10), 1)}
"""Mbit/s, in the order of deployment."""
CPU, MEMORY = "100m", "160Mi"


@dataclass(frozen=True, slots=True)
class TestNode:
    name: str
    cores: int
    gigabytes: int
    mbit: float


NODES = (TestNode("node1", 2, 4, 50.0), TestNode("node2", 4, 4, 75.0), TestNode("node3", 8, 8, 125.0))


@dataclass(frozen=True, slots=True)
class Arm:
    """`weight` of the extender in kube-scheduler's configuration; 0: without it."""

    name: str
    weight: int


ARMS = (
    Arm("kube-scheduler", 0),
    Arm("with the extender, weight 1", 1),
    Arm("with the extender, weight 10", 10),
)
PAPER_DEFAULT: Placement = {name: "node2" if name == "pod8" else "node3" for name in DEMANDS}
PAPER_BNIP: Placement = dict(zip(DEMANDS, (f"node{node}" for node in (3, 1, 2, 3, 2, 1, 3, 2, 3)), strict=True))
PAPER_MEASURED = {"default": (12.3, 4.3), "BNIP": (11.3, 0.8)}
"""Its Table 7: mean use in percent and variance, in a unit that it does not state."""


@dataclass(frozen=True, slots=True)
class Use:
    """Of the nodes' links, by nominal demands: the mean in percent, the variance in square percent."""

    mean: float
    variance: float


def use_of(placement: Placement) -> Use:
    shares = [
        100 * sum(DEMANDS[pod] for pod, where in placement.items() if where == node.name) / node.mbit for node in NODES
    ]
    return Use(fmean(shares), pvariance(shares))


def steps_of(placement: Placement) -> list[Use]:
    """After each deployment."""
    order = list(DEMANDS)
    return [use_of({pod: placement[pod] for pod in order[: number + 1]}) for number in range(len(order))]


def best_of_all() -> Placement:
    """Of the 3^9 placements."""
    names = [node.name for node in NODES]
    every = itertools.product(names, repeat=len(DEMANDS))
    return min((dict(zip(DEMANDS, nodes, strict=True)) for nodes in every), key=lambda each: use_of(each).variance)


def placed_by(planner: str, parameters: Mapping[str, object], start: Placement) -> Placement:
    """Where a planner of ours puts the pods; those in `start` run there already."""
    axes = ("cpu", "memory", "network")
    nodes = tuple(Node(each.name, (each.cores, each.gigabytes * 1e9, each.mbit)) for each in NODES)
    pods = tuple(_pod(name, rate, start.get(name)) for name, rate in DEMANDS.items())
    plan = planner_class(planner)(**parameters).plan(Problem(axes, pods, nodes))
    moved = {move.pod.partition("/")[2]: move.target for move in plan.moves}
    return {name: moved.get(name) or start[name] for name in DEMANDS}


def _pod(name: str, rate: float, node: str | None) -> Pod:
    use = (0.1, 160e6, rate)
    return Pod(f"bnip/{name}", name, use, (0.1, 160e6, 0.0), use, node=node)


def groups(placement: Placement) -> str:
    """As the paper writes it: node1 {2, 6}, ..."""
    found = {
        node.name: [pod.removeprefix("pod") for pod in DEMANDS if placement.get(pod) == node.name] for node in NODES
    }
    return ", ".join(f"{node} {{{', '.join(pods)}}}" for node, pods in found.items())


def runs(repeats: int) -> Sequence[tuple[Arm, int]]:
    return [(arm, repeat) for arm in ARMS for repeat in range(1, repeats + 1)]
