"""Clusters for the planners' benches: the same numbers for the same seed, placed the way requests would place them.

The realistic mix: 150 workloads, each with a node selector (a zone, a pool, a disk, or only the operating system); one
node in twenty is tainted and one workload in twenty tolerates that; one workload in fifty spreads its replicas by
required anti-affinity. What the pods will need at peak is (1 - slack) of what the nodes offer beside their headroom,
over the cluster and, because selectors are drawn in proportion, nearly so in every zone and pool.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from matching.problem import (
    Node,
    Options,
    Pod,
    PodTerm,
    Problem,
    Requirement,
    Rules,
    Selector,
    Taint,
    Toleration,
)

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

AXES = ("cpu", "memory")
GIB = float(2**30)
ZONES = ("a", "b", "c")
HOSTNAME = "kubernetes.io/hostname"
DEDICATED = Taint("dedicated", "NoSchedule", "special")

_POOLS = (("general", 0.7, 32.0, 4.0), ("compute", 0.2, 48.0, 2.0), ("memory", 0.1, 32.0, 8.0))
"""Name, share of the nodes, cores, GiB per core."""
_SELECTIONS = (("os",), ("zone",), ("pool",), ("zone", "disk"))
_SELECTION_SHARES = (0.4, 0.25, 0.25, 0.1)
_CHUNKS = 8


@dataclass(frozen=True, slots=True)
class Mix:
    pods: int
    nodes: int
    workloads: int = 150
    tainted: float = 0.05
    anti_affinity: float = 0.02
    slack: float = 0.20
    unhappy: int = 0
    """So many pods of the fullest nodes are unhappy."""
    seed: int = 1


def realistic(mix: Mix, options: Options | None = None) -> Problem:
    """A cluster of that mix. `options` are what the planner will be asked; their headroom sizes the pods."""
    options = options or Options()
    rng = np.random.default_rng(mix.seed)
    nodes = _nodes(mix, rng)
    room = np.array([node.allocatable for node in nodes])
    workloads = _Workloads(mix, nodes, rng)
    usage, request, peak = _needs(mix, workloads, room, options.headroom, rng)
    at = _placed_by_requests(workloads, request, room, rng)
    load = np.zeros_like(room)
    np.add.at(load, at, peak)
    fullest = np.argsort(-(load / room).max(axis=1)[at], kind="stable")[: mix.unhappy]
    unhappy = set(fullest.tolist())
    pods = tuple(
        Pod(
            key=f"team-{workload % 10}/app-{workload:03}-{pod:06}",
            uid=f"uid-{pod:06}",
            usage=_amounts(usage[pod]),
            request=_amounts(request[pod]),
            peak=_amounts(peak[pod]),
            node=nodes[at[pod]].name,
            workload=f"app-{workload:03}",
            happy=pod not in unhappy,
            rules=workloads.rules[workload],
            labels=workloads.labels[workload],
        )
        for pod, workload in enumerate(workloads.of_pod.tolist())
    )
    return Problem(AXES, pods, nodes, options)


class _Workloads:
    """Which pods belong together, and where they may run."""

    def __init__(self, mix: Mix, nodes: tuple[Node, ...], rng: np.random.Generator) -> None:
        number = min(mix.workloads, mix.pods)
        self.of_pod: Ints = np.sort(np.arange(mix.pods, dtype=np.int64) % number)
        tolerant = set(rng.choice(number, round(number * mix.tainted), replace=False).tolist())
        self.labels = [{"app": f"app-{at:03}"} for at in range(number)]
        self.rules = [_rules(nodes, at in tolerant, rng) for at in range(number)]
        self.allowed: Mask = np.array([[_may_run(rules, node) for node in nodes] for rules in self.rules])
        replicas = np.bincount(self.of_pod, minlength=number)
        roomy = np.flatnonzero(self.allowed.sum(axis=1) > 2 * replicas)
        for at in rng.permutation(roomy)[: round(number * mix.anti_affinity)].tolist():
            self.rules[at] = replace(self.rules[at], pod_anti_affinity=(_apart(self.labels[at]),))


def _nodes(mix: Mix, rng: np.random.Generator) -> tuple[Node, ...]:
    pools = rng.choice(len(_POOLS), mix.nodes, p=[share for _, share, _, _ in _POOLS])
    tainted = set(rng.choice(mix.nodes, round(mix.nodes * mix.tainted), replace=False).tolist())
    nodes = []
    for at, pool in enumerate(pools.tolist()):
        name, _, cores, per_core = _POOLS[pool]
        labels = {"os": "linux", "zone": ZONES[at % len(ZONES)], "pool": name, "disk": ("ssd", "hdd")[at // 3 % 2]}
        taints = (DEDICATED,) if at in tainted else ()
        labels[HOSTNAME] = f"node-{at:04}"
        nodes.append(Node(f"node-{at:04}", (cores, cores * per_core * GIB), max_pods=250, labels=labels, taints=taints))
    return tuple(nodes)


def _rules(nodes: tuple[Node, ...], tolerant: bool, rng: np.random.Generator) -> Rules:
    """A selector that a node drawn at random satisfies, so that bigger pools are asked for more often."""
    keys = _SELECTIONS[int(rng.choice(len(_SELECTIONS), p=_SELECTION_SHARES))]
    model = nodes[int(rng.integers(len(nodes)))]
    selector = tuple((key, model.labels[key]) for key in keys)
    return Rules((Toleration(DEDICATED.key, "Equal", DEDICATED.value),) if tolerant else (), selector)


def _apart(labels: dict[str, str]) -> PodTerm:
    """Not two of them on one node."""
    mine = tuple(Requirement(key, "In", (value,)) for key, value in labels.items())
    return PodTerm(HOSTNAME, Selector(mine))


def _may_run(rules: Rules, node: Node) -> bool:
    tolerated = not node.taints or bool(rules.tolerations)
    return tolerated and all(node.labels.get(key) == value for key, value in rules.node_selector)


def _needs(
    mix: Mix, workloads: _Workloads, room: Floats, headroom: float, rng: np.random.Generator
) -> tuple[Floats, Floats, Floats]:
    """Usage, request and peak, one row per pod. Replicas are alike within a fifth; requests are wrong both ways."""
    number = len(workloads.rules)
    typical = rng.lognormal(0.0, 0.5, (number, len(AXES)))[workloads.of_pod]
    usage = typical * rng.uniform(0.8, 1.2, (mix.pods, len(AXES)))
    peak = usage * rng.uniform(1.1, 1.8, (mix.pods, 1))
    offered = room.sum(axis=0) * (1 - headroom) * (1 - mix.slack)
    scale = offered / peak.sum(axis=0)
    usage, peak = usage * scale, peak * scale
    request = usage * rng.uniform(0.7, 1.5, number)[workloads.of_pod][:, None]
    return usage, request, peak


def _placed_by_requests(workloads: _Workloads, request: Floats, room: Floats, rng: np.random.Generator) -> Ints:
    """Workload by workload in random order, replicas in a few chunks, each chunk over the least requested nodes; those
    that keep apart go in one chunk, so that each of them has a node of its own."""
    at = np.zeros(len(request), dtype=np.int64)
    asked = np.zeros_like(room)
    for workload in rng.permutation(len(workloads.rules)).tolist():
        members = np.flatnonzero(workloads.of_pod == workload)
        allowed = np.flatnonzero(workloads.allowed[workload])
        for chunk in np.array_split(members, 1 if workloads.rules[workload].pod_anti_affinity else _CHUNKS):
            emptiest = allowed[np.argsort((asked[allowed] / room[allowed]).max(axis=1), kind="stable")]
            at[chunk] = emptiest[np.arange(len(chunk)) % len(emptiest)]
            np.add.at(asked, at[chunk], request[chunk])
    return at


def _amounts(row: Floats) -> tuple[float, ...]:
    return tuple(float(value) for value in row)
