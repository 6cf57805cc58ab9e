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

from matching.failure_curve import FailureCurve
from reactor.cluster.records import Node, Pod
from reactor.cluster.view import ClusterView
from reactor.errors import InputError
from reactor.history.levels import Axis
from reactor.replay.recorded import DAY, STEP, Grid, Recorded
from reactor.replay.sharing import LEAST_WEIGHT, Shared, share_out
from reactor.signals.workloads import workload_key
from reactor.state.snapshot import MEASURED

CROWDED = 0.85
"""From this share on a node may give a pod less than it wants."""
FULL = 0.95
"""A pod that feels this load, by what is used, may have wanted more."""
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
class Loads:
    """By replica, or by replica and step."""

    felt: Floats
    """See `Shared`."""
    node: Floats

    def seen(self, common: float) -> Floats:
        """`common`: the part of what its neighbours feel that a replica feels, too."""
        found: Floats = self.felt + common * (self.node - self.felt)
        return found


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
    peaks: Grid
    """Cores that it wants in the worst minute of a step."""
    imputed: Flags
    """Where nobody saw what the workload wanted."""
    weight: Floats
    """By workload: its pods' part of a node's CPU when it does not suffice, in cores that they request."""
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
    curve: FailureCurve
    """What the controller expects of loads."""
    notes: tuple[str, ...]

    @property
    def steps(self) -> int:
        return len(self.measured)

    @property
    def days(self) -> int:
        return self.day_of(self.steps - 1) + 1

    def day_of(self, step: int) -> int:
        return step * STEP // self.day

    def loads(self, on: Ints, step: int) -> Loads:
        """That each replica has in its worst minute on these nodes (-1: nowhere, and NaN). All pods of a node that is
        short of memory feel that."""
        here = on >= 0
        at, of = on[here], self.workload[here]
        held = np.bincount(at, self.demand[1][of, step], len(self.nodes)).astype(np.float64)
        memory = self.sizes[1].loads(held, self.background[1][:, step])
        found = self._shared(at, of, self.peaks, step).felt
        wanted = np.bincount(at, self.peaks[of, step], len(self.nodes)).astype(np.float64)
        highest = np.maximum(self.sizes[0].loads(wanted, self.background[0][:, step]), memory)
        felt, node = (np.full(len(on), np.nan) for _ in range(2))
        felt[here], node[here] = np.maximum(found, memory[at]), highest[at]
        return Loads(felt, node)

    def got(self, on: Ints, step: int) -> Floats:
        """Cores of each replica that is on a node, in the worst minute: needs are peaks of minutes."""
        here = on >= 0
        return self._shared(on[here], self.workload[here], self.peaks, step).got

    def _shared(self, at: Ints, of: Ints, wanted: Grid, step: int) -> Shared:
        size = self.sizes[0]
        cores, beyond = wanted[of, step].astype(np.float64), size.beyond(self.background[0][:, step])
        return share_out(at, cores, self.weight[of], size.allocatable, beyond)


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
        loads: Floats = (used + self.beyond(background)) / self.allocatable
        return loads

    def beyond(self, background: Grid | Floats) -> Floats:
        """What daemons take from pods."""
        found: Floats = np.maximum(background - self.kept_back, 0.0)
        return found


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
    requested = [templates[key].requests.get("cpu", 0.0) for key in workloads]
    weight = np.maximum(np.array([*requested, 0.0]), LEAST_WEIGHT)
    unseen = _unseen(recorded, on, loads)
    size = NodeSizes.of(nodes, "cpu")
    held_back = unseen & _held_back(recorded, on, weight[of], size, background[0])
    (cpu, imputed), (memory, _) = (
        _demand(recorded.of_pods[axis], of, unseen, held_back, len(workloads)) for axis in _AXES
    )
    peaks, _ = _demand(recorded.peaks, of, unseen, held_back, len(workloads))
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
        sizes=(size, NodeSizes.of(nodes, "memory")),
        cluster=cluster,
        workloads=workloads,
        templates=tuple(templates[key] for key in workloads),
        demand=(cpu, memory),
        peaks=np.maximum(peaks, cpu),
        imputed=imputed,
        weight=weight[: len(workloads)],
        probes=_probes(recorded, of, len(workloads)),
        background=background,
        node_ready=ready,
        workload=workload,
        recorded_node=recorded_node,
        observed=observed,
        placed=tuple(_placed(replicas, recorded, workloads, recorded_node, ready)),
        measured=_measured(recorded),
        curve=recorded.curve,
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


def _held_back(recorded: Recorded, on: Ints, weight: Floats, size: NodeSizes, background: Grid) -> Flags:
    """By pod and step: whether others, or its own limit, probably took from it. One that used less for its weight than
    another pod of its node had all that it wanted."""
    found: Flags = recorded.of_pods[Axis.THROTTLED] >= THROTTLED
    used = np.nan_to_num(recorded.of_pods[Axis.CPU]).astype(np.float64)
    for step in range(recorded.steps):
        here = np.flatnonzero(on[:, step] >= 0)
        other = size.beyond(background[:, step])
        shared = share_out(on[here, step], used[here, step], weight[here], size.allocatable, other)
        found[here, step] |= shared.felt >= FULL
    return found


def _demand(used: Grid, of: Ints, unseen: Flags, held_back: Flags, number: int) -> tuple[Grid, Flags]:
    """Of one replica of each workload; and where it is imputed: what was measured of pods that were not held back, else
    at least what was measured."""
    demand, imputed = np.zeros((number, used.shape[1]), np.float32), np.zeros((number, used.shape[1]), np.bool_)
    for at in range(number):
        mine = of == at
        known = ~np.isnan(used[mine])
        found = _mean(used[mine], known & ~unseen[mine])
        free = _mean(used[mine], known & ~held_back[mine])
        imputed[at] = np.isnan(found)
        guess = np.where(np.isnan(free), np.fmax(_mean(used[mine], known), _usual(free)), free)
        demand[at] = np.where(imputed[at], guess, found)
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
