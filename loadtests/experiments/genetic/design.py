"""The workload, which the paper does not state, and what is measured on a placement of it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

import numpy as np
from numpy.typing import NDArray

from matching.problem import Node, Options, Pod, Problem
from matching.registry import load_planner

Floats = NDArray[np.float64]
Placement = Mapping[str, str]

AXES = ("cpu", "memory", "disk", "network")
SECONDS = 120
"""Of the traces."""
PAPER_RATIOS = {"all": 3.42 / 1.10, "network": 0.305 / 0.139, "disk": 0.263 / 0.174}
"""Default scheduler over genetic: its Figs 3 to 5."""
PAPER_TABLE = (
    ("cpu", "62.8 / 50.7 / 38.2", "73.2 / 37.9 / 37.5"),
    ("memory", "70.1 / 39.6 / 39.8", "78.5 / 35.3 / 35.0"),
    ("network", "72.8 / 47.8 / 45.6", "73.9 / 43.9 / 38.6"),
    ("disk", "76.5 / 52.4 / 45.2", "81.7 / 41.5 / 40.9"),
)
"""Its Table 3: use of the strong and the two weak nodes in percent, with equal weights and with 0.5 on the strong
one."""
_NOISE = 0.15
_PODS = 36


@dataclass(frozen=True, slots=True)
class TestNode:
    name: str
    cores: int
    gigabytes: int
    disk: float
    """MB/s."""
    network: float
    """Mbit/s."""

    @property
    def room(self) -> tuple[float, ...]:
        return (float(self.cores), float(self.gigabytes), self.disk, self.network)


NODES = (
    TestNode("strong", 8, 16, 400.0, 1000.0),
    TestNode("weak1", 4, 8, 200.0, 500.0),
    TestNode("weak2", 4, 8, 200.0, 500.0),
)


@dataclass(frozen=True, slots=True)
class TestPod:
    """What it uses on each axis, and what it asks for: CPU and memory, and often too little or too much of it."""

    name: str
    use: tuple[float, ...]
    request: tuple[float, float]


def draw_pods(seed: int) -> list[TestPod]:
    """They use about half of the nodes; one in three is heavy on one axis, and requests are 0.5 to 1.5 of the use."""
    pick = Random(seed)
    total = [sum(node.room[axis] for node in NODES) for axis in range(len(AXES))]
    pods = []
    for number in range(1, _PODS + 1):
        heavy = pick.randrange(3 * len(AXES))
        shares = [pick.uniform(0.2, 1.0) * (3.0 if axis == heavy else 1.0) for axis in range(len(AXES))]
        use = tuple(0.75 * share * whole / _PODS for share, whole in zip(shares, total, strict=True))
        pods.append(
            TestPod(f"pod-{number:02}", use, (use[0] * pick.uniform(0.5, 1.5), use[1] * pick.uniform(0.5, 1.5)))
        )
    return pods


@dataclass(frozen=True, slots=True)
class Planned:
    placement: Placement
    cpu_seconds: float
    """Of the search."""
    moves: int


def plan(planner: str, parameters: Mapping[str, object], pods: list[TestPod], start: Placement) -> Planned:
    nodes = tuple(Node(node.name, node.room) for node in NODES)
    problem = Problem(AXES, tuple(_pod(pod, start[pod.name]) for pod in pods), nodes, Options(headroom=0.0))
    chosen = load_planner(planner, dict(parameters))
    began = time.process_time()
    found = chosen.plan(problem)
    took = time.process_time() - began
    moved = {move.pod.partition("/")[2]: move.target for move in found.moves}
    return Planned({pod.name: moved.get(pod.name) or start[pod.name] for pod in pods}, took, len(moved))


def _pod(pod: TestPod, node: str) -> Pod:
    return Pod(f"lab/{pod.name}", pod.name, pod.use, (*pod.request, 0.0, 0.0), pod.use, node=node)


def loads(pods: list[TestPod], placement: Placement) -> Floats:
    """(nodes, axes), as shares of what the node has."""
    used = [[sum(pod.use[axis] for pod in pods if placement[pod.name] == node.name) for axis in range(len(AXES))]
            for node in NODES]  # fmt: skip
    shares: Floats = np.array(used) / np.array([node.room for node in NODES])
    return shares


def deviations(pods: list[TestPod], placement: Placement) -> dict[str, float]:
    """The standard deviation of the nodes' loads in percentage points: of the mean over the axes, and of each axis."""
    found = 100 * loads(pods, placement)
    each = {axis: float(found[:, number].std()) for number, axis in enumerate(AXES)}
    return {"all": float(found.mean(axis=1).std()), **each}


def traces(pods: list[TestPod], placement: Placement, axis: str, seed: int) -> dict[str, list[float]]:
    """Use of each node in percent for 120 seconds, while each pod's use wanders about its mean."""
    generator, number = np.random.default_rng(seed), AXES.index(axis)
    found = {}
    for node in NODES:
        amounts = np.array([pod.use[number] for pod in pods if placement[pod.name] == node.name])
        steps = generator.normal(0.0, _NOISE, (SECONDS, len(amounts)))
        wander = np.cumsum(steps, axis=0) / np.sqrt(np.arange(1, SECONDS + 1))[:, None]
        found[node.name] = (100 * (amounts * (1 + wander).clip(min=0.0)).sum(axis=1) / node.room[number]).tolist()
    return found
