"""What no setting changes: which pods lived when, what their workloads wanted, and what else ran on the nodes.

A *replica* is a place in a workload: the pods that follow each other there. It is placed as recorded when it begins, at
a rollout, and when its node goes. All other changes of its node were moves, which a replay makes itself or does not.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reactor.cluster.records import Node, Pod
from reactor.cluster.view import ClusterView
from reactor.errors import InputError
from reactor.history.levels import Axis
from reactor.replay.recorded import DAY, STEP, Grid, Recorded
from reactor.signals.workloads import workload_key
from reactor.state.snapshot import MEASURED

CROWDED = 0.85
"""From this share on a node may give a pod less than it wants."""
THROTTLED = 0.05
"""From this share of throttled periods on its own limit may."""
_ROLLOUT = 1500.0
"""Seconds after its event in which pods are replaced by a rollout."""
_OVERLAP = 2
"""Steps in which a pod and its replacement may both be recorded."""
_USUAL_PROBES = 6.0

Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]
Ints = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Placed:
    """A replica that is put onto a node, whatever the settings are."""

    step: int
    replica: int
    node: int


@dataclass(frozen=True, slots=True)
class Given:
    begin: int
    day: int
    """Seconds of the blocks of time by which results are counted and drawn again."""
    nodes: tuple[Node, ...]
    sizes: tuple[NodeSizes, NodeSizes]
    """Cores and bytes."""
    cluster: ClusterView
    workloads: tuple[str, ...]
    templates: tuple[Pod, ...]
    """A pod of each workload."""
    demand: tuple[Grid, Grid]
    """Cores and bytes that one replica wants, by workload and step."""
    imputed: Flags
    """Where nobody saw what the workload wanted."""
    probes: Floats
    """Liveness probes per minute of one replica, by workload; 0 without."""
    background: tuple[Grid, Grid]
    """What else uses a node, by node and step."""
    node_ready: Flags
    workload: Ints
    """Of each replica."""
    recorded_node: Ints
    """By replica and step, -1 while it did not exist."""
    observed: tuple[Grid, Grid]
    """Liveness probes and failures per minute by replica and step, NaN where nothing is known."""
    placed: tuple[Placed, ...]
    measured: Flags
    """By step: whether anything was."""
    notes: tuple[str, ...]

    @property
    def steps(self) -> int:
        return len(self.measured)

    @property
    def days(self) -> int:
        return self.day_of(self.steps - 1) + 1

    def day_of(self, step: int) -> int:
        return step * STEP // self.day

    def used(self, on: Ints, step: int) -> tuple[Floats, Floats]:
        """Cores and bytes that the replicas want of each node, when they are there (-1: nowhere)."""
        here = on >= 0
        at, of = on[here], self.workload[here]
        cpu, memory = (np.bincount(at, demand[of, step], len(self.nodes)).astype(np.float64) for demand in self.demand)
        return cpu, memory

    def loads(self, on: Ints, step: int) -> Floats:
        """Of the nodes, on their worst axis."""
        pairs = zip(self.sizes, self.used(on, step), self.background, strict=True)
        return np.maximum(*(size.loads(used, other[:, step]) for size, used, other in pairs))


@dataclass(frozen=True, slots=True)
class NodeSizes:
    """On one axis."""

    allocatable: Floats
    kept_back: Floats

    @classmethod
    def of(cls, nodes: Sequence[Node], axis: str) -> NodeSizes:
        allocatable = [max(node.allocatable.get(axis, 0.0), 1e-9) for node in nodes]
        return cls(np.array(allocatable), np.array([node.kept_back(axis) for node in nodes]))

    def loads(self, used: Floats, background: Grid | Floats) -> Floats:
        """What pods use, and daemons beyond what is kept back for them, as shares of what pods can have."""
        loads: Floats = np.maximum(used, used + background - self.kept_back) / self.allocatable
        return loads


def given_by(recorded: Recorded, cluster: ClusterView, day: int = DAY) -> Given:
    """`cluster`: as it is now. Its pods show what the workloads are like."""
    templates = {workload_key(pod): pod for pod in cluster.pods.values() if pod.node is not None and pod.active}
    nodes = [cluster.nodes[name] for name in recorded.nodes if name in cluster.nodes]
    on = _on_known(recorded, [node.name for node in nodes])
    keys = list(_workloads_of(recorded.pods, cluster, templates))
    workloads = tuple(sorted({key for key in keys if key in templates}))
    if not nodes or not workloads:
        raise InputError("no recorded pod belongs to a workload of this cluster: is it the store of another one?")
    row = {key: at for at, key in enumerate(workloads)}
    of = np.array([row.get(key, -1) for key in keys], np.int32)
    background, loads = _nodes_over_time(recorded, nodes, of, on)
    unseen = _unseen(recorded, on, loads)
    (cpu, imputed), (memory, _) = (_demand(recorded.of_pods[axis], of, unseen, len(workloads)) for axis in _AXES)
    replicas = [each for at in range(len(workloads)) for each in _replicas(at, np.flatnonzero(of == at), on)]
    ready = _ready(recorded, nodes)
    recorded_node, observed = _lives(replicas, recorded, on)
    workload = np.array([each.workload for each in replicas], np.int32)
    here = recorded_node >= 0
    notes = [
        *recorded.notes,
        f"what was wanted was not seen for {imputed[workload][here].mean():.1%} of the pod-minutes (a node above"
        f" {CROWDED:.0%}, or throttled): there it is imputed",
    ]
    if (of < 0).any():
        notes.append(f"{int((of < 0).sum())} recorded pods are of workloads that are gone; they count as background")
    return Given(
        begin=recorded.begin,
        day=day,
        nodes=tuple(nodes),
        sizes=(NodeSizes.of(nodes, "cpu"), NodeSizes.of(nodes, "memory")),
        cluster=cluster,
        workloads=workloads,
        templates=tuple(templates[key] for key in workloads),
        demand=(cpu, memory),
        imputed=imputed,
        probes=_probes(recorded, of, len(workloads)),
        background=background,
        node_ready=ready,
        workload=workload,
        recorded_node=recorded_node,
        observed=observed,
        placed=tuple(_placed(replicas, recorded, workloads, recorded_node, ready)),
        measured=_measured(recorded),
        notes=tuple(notes),
    )


_AXES = (Axis.CPU, Axis.MEMORY)


def _measured(recorded: Recorded) -> Flags:
    measured: Flags = np.any(~np.isnan(recorded.of_pods[Axis.CPU]), axis=0)
    return measured


def _on_known(recorded: Recorded, names: Sequence[str]) -> Ints:
    """Rows of nodes that are still there; what ran on others is nowhere."""
    row = {name: at for at, name in enumerate(names)}
    new = np.array([*(row.get(name, -1) for name in recorded.nodes), -1], np.int32)
    return new[recorded.on]


def _workloads_of(pods: Sequence[str], cluster: ClusterView, templates: Mapping[str, Pod]) -> Iterator[str]:
    """By the pods that still exist, else by their names: owners put theirs in front."""
    now = {pod.key: workload_key(pod) for pod in cluster.pods.values()}
    named: dict[tuple[str, str], str] = {}
    for key in templates:
        namespace, _, name = key.split("/")
        named[namespace, name] = key
    for pod in pods:
        namespace, _, name = pod.partition("/")
        parts = name.split("-")
        beginnings = ("-".join(parts[:number]) for number in range(len(parts) - 1, 0, -1))
        found = (named[namespace, each] for each in beginnings if (namespace, each) in named)
        yield now.get(pod) or next(found, "")


def _nodes_over_time(recorded: Recorded, nodes: Sequence[Node], of: Ints, on: Ints) -> tuple[tuple[Grid, Grid], Floats]:
    """What is not of our workloads, cores and bytes; and the measured loads."""
    rows = [recorded.nodes.index(node.name) for node in nodes]
    steps = np.broadcast_to(np.arange(recorded.steps), on.shape)
    ours = (on >= 0) & (of >= 0)[:, np.newaxis]
    background, loads = [], []
    for axis, name in zip(_AXES, MEASURED, strict=True):
        used = np.zeros((len(nodes), recorded.steps))
        np.add.at(used, (on[ours], steps[ours]), np.nan_to_num(recorded.of_pods[axis][ours]))
        total = recorded.of_nodes[axis][rows].astype(np.float64)
        other = _held(np.maximum(total - used, 0.0))
        background.append(other.astype(np.float32))
        loads.append(NodeSizes.of(nodes, name).loads(used.T, other.T).T)
    return (background[0], background[1]), np.maximum(*loads)


def _held(values: Floats) -> Floats:
    """The last known value where there is none, 0 before the first."""
    known = ~np.isnan(values)
    at = np.maximum.accumulate(np.where(known, np.arange(values.shape[1]), -1), axis=1)
    held: Floats = np.where(at >= 0, np.take_along_axis(values, np.maximum(at, 0), axis=1), 0.0)
    return held


def _unseen(recorded: Recorded, on: Ints, loads: Floats) -> Flags:
    """By pod and step: whether it may have wanted more than it got."""
    steps = np.broadcast_to(np.arange(recorded.steps), on.shape)
    crowded = (on >= 0) & (loads[on, steps] >= CROWDED)
    with np.errstate(invalid="ignore"):
        unseen: Flags = crowded | (recorded.of_pods[Axis.THROTTLED] >= THROTTLED)
    return unseen


def _demand(used: Grid, of: Ints, unseen: Flags, number: int) -> tuple[Grid, Flags]:
    """Of one replica of each workload; and where it is imputed."""
    demand, imputed = np.zeros((number, used.shape[1]), np.float32), np.zeros((number, used.shape[1]), np.bool_)
    for at in range(number):
        mine = of == at
        known = ~np.isnan(used[mine])
        seen = known & ~unseen[mine]
        least = _mean(used[mine], known)
        found = _mean(used[mine], seen)
        imputed[at] = np.isnan(found)
        demand[at] = np.where(imputed[at], np.fmax(least, _usual(found)), found)
    return np.nan_to_num(demand), imputed


def _mean(values: Grid, counted: Flags) -> Floats:
    """By column; NaN where nothing counts."""
    number = counted.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean: Floats = np.where(counted, values, 0.0).sum(axis=0) / number
    return np.where(number > 0, mean, np.nan)


def _usual(seen: Floats) -> Floats:
    """The median at this time of the other days, else what was seen before and after."""
    known = ~np.isnan(seen)
    if not known.any():
        return seen
    steps = np.arange(len(seen))
    between = np.interp(steps, steps[known], seen[known])
    per_day = DAY // STEP
    days = -(-len(seen) // per_day)
    table = np.full(days * per_day, np.nan)
    table[: len(seen)] = seen
    by_time = table.reshape(days, per_day)
    some = ~np.isnan(by_time).all(axis=0)
    usual = np.full(per_day, np.nan)
    usual[some] = np.nanmedian(by_time[:, some], axis=0)
    at_this_time = np.tile(usual, days)[: len(seen)]
    return np.where(np.isnan(at_this_time), between, at_this_time)


def _probes(recorded: Recorded, of: Ints, number: int) -> Floats:
    """The median of what was counted per minute."""
    counted = recorded.of_pods[Axis.SUCCESSES] + recorded.of_pods[Axis.FAILURES]
    found = np.zeros(number)
    for at in range(number):
        mine = counted[of == at]
        mine = mine[~np.isnan(mine)]
        found[at] = float(np.median(mine)) if len(mine) else 0.0
    return found


@dataclass(frozen=True, slots=True)
class _Life:
    """A pod in the life of a replica: from one step to before another."""

    pod: int
    first: int
    end: int


@dataclass(slots=True)
class _Replica:
    workload: int
    lives: list[_Life]


def _replicas(workload: int, pods: NDArray[np.intp], on: Ints) -> list[_Replica]:
    """Pods in the order in which they began; each follows one that ended about then, if there is one."""
    lives = []
    for pod in pods.tolist():
        steps = np.flatnonzero(on[pod] >= 0)
        if len(steps):
            lives.append(_Life(pod, int(steps[0]), int(steps[-1]) + 1))
    found: list[_Replica] = []
    for life in sorted(lives, key=lambda each: (each.first, each.end)):
        ended = [each for each in found if abs(each.lives[-1].end - life.first) <= _OVERLAP]
        if ended:
            ended[0].lives.append(life)
        else:
            found.append(_Replica(workload, [life]))
    return found


def _lives(replicas: Sequence[_Replica], recorded: Recorded, on: Ints) -> tuple[Ints, tuple[Grid, Grid]]:
    where = np.full((len(replicas), recorded.steps), -1, np.int32)
    probes, failures = (np.full(where.shape, np.nan, np.float32) for _ in range(2))
    failed = recorded.of_pods[Axis.FAILURES]
    counted = recorded.of_pods[Axis.SUCCESSES] + failed
    for at, replica in enumerate(replicas):
        for life in replica.lives:
            here = slice(life.first, life.end)
            where[at, here] = _carried(on[life.pod, here])
            probes[at, here], failures[at, here] = counted[life.pod, here], failed[life.pod, here]
        begin, end = replica.lives[0].first, replica.lives[-1].end
        where[at, begin:end] = _carried(where[at, begin:end])
    return where, (probes, failures)


def _carried(nodes: Ints) -> Ints:
    """A gap in the record is no gap in a life."""
    at = np.maximum.accumulate(np.where(nodes >= 0, np.arange(len(nodes)), 0))
    return nodes[at]


def _ready(recorded: Recorded, nodes: Sequence[Node]) -> Flags:
    """A node is there while it is measured; in a gap of the whole record, as before."""
    rows = [recorded.nodes.index(node.name) for node in nodes]
    ready = recorded.of_nodes[Axis.READY][rows].astype(np.float64)
    seen = ~np.isnan(recorded.of_nodes[Axis.CPU][rows])
    state = np.where(np.isnan(ready), seen.astype(np.float64), ready)
    state[:, ~seen.any(axis=0)] = np.nan
    held: Flags = _held(state) >= 0.5
    return held


def _placed(
    replicas: Sequence[_Replica], recorded: Recorded, workloads: Sequence[str], where: Ints, ready: Flags
) -> Iterator[Placed]:
    rollouts: defaultdict[str, list[float]] = defaultdict(list)
    for event in recorded.events:
        if event.kind == "workload" and event.text.startswith("rolled out"):
            rollouts[event.name].append(event.at)
    for at, replica in enumerate(replicas):
        yield Placed(replica.lives[0].first, at, int(where[at, replica.lives[0].first]))
        for before, life in zip(replica.lives, replica.lives[1:], strict=False):
            begins = recorded.begin + life.first * STEP
            rolled = any(-STEP <= begins - each <= _ROLLOUT for each in rollouts[workloads[replica.workload]])
            left = int(where[at, before.end - 1])
            gone = left >= 0 and not ready[left, min(life.first, ready.shape[1] - 1)]
            if rolled or gone:
                yield Placed(life.first, at, int(where[at, life.first]))
