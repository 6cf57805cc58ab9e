"""One minute of the live state as minutes of the usage history: pods, the workloads that they belong to, and nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from reactor.cluster.kinds import Kind
from reactor.cluster.records import Node, Pod
from reactor.history.codes import Floats
from reactor.history.levels import MINUTES, Axis
from reactor.history.minute import Measured, Minute
from reactor.history.series import SeriesIndex
from reactor.signals.minute_sums import MinuteUsage
from reactor.signals.usage import DepartedPod
from reactor.signals.usage_table import CPU, DISK, MEMORY, NETWORK, THROTTLED
from reactor.signals.workloads import workload_key
from reactor.state.live_state import State
from reactor.work_queue import BATCH

_OF_PODS = (
    (Axis.CPU, CPU),
    (Axis.MEMORY, MEMORY),
    (Axis.NETWORK, NETWORK),
    (Axis.DISK, DISK),
    (Axis.THROTTLED, THROTTLED),
)
_OF_NODES = ((Axis.CPU, CPU), (Axis.MEMORY, MEMORY))
_BOUNDED = {Axis.CPU: "cpu", Axis.MEMORY: "memory"}
_IMPOSSIBLE = 1.1
"""Times the capacity of its node: more is no usage but a mistake in units."""


@dataclass(frozen=True, slots=True)
class MinutePods:
    """The pods of a minute. One entry per pod, in one order; a name stands there once."""

    slots: NDArray[np.intp]
    names: Sequence[str]
    workloads: Sequence[str]
    nodes: Sequence[str]
    ready: Floats
    successes: Floats
    failures: Floats
    """Liveness probes of the minute; NaN for a pod without."""


@dataclass(frozen=True, slots=True)
class StateMinute:
    """`refused` names what has a value that cannot be true; these values are left out."""

    minutes: tuple[Minute, ...]
    refused: tuple[str, ...]


async def pods_of_minute(
    state: State, start: int, failures: Mapping[str, float], departed: Sequence[DepartedPod], first_slot: int
) -> MinutePods:
    """Those that run, and those that went: their rows of usage begin at `first_slot`. Pods that came since the rows
    were taken are of the next minute. In batches: a cycle that is due goes first."""
    end = start + MINUTES.step
    slots = list(state.usage.pod_slots().items())
    found: list[tuple[int, str, str, str, bool, float, float]] = []
    for begin in range(0, len(slots), BATCH):
        if begin:
            await state.yield_to_cycle()
        for uid, slot in slots[begin : begin + BATCH]:
            pod = state.mirror.pod(uid)
            if pod is not None and pod.node is not None and not pod.finished and slot < first_slot:
                found.append((slot, *_described(pod, failures.get(uid, 0.0), start, end)))
    names = {row[1] for row in found}
    for number, each in enumerate(departed):
        pod, failed = each.pod, failures.get(each.pod.uid, 0.0)
        if pod.node is not None and pod.key not in names and (failed or each.usage.counts.any()):
            names.add(pod.key)
            found.append((first_slot + number, *_described(pod, failed, start, each.at)))
    columns = list(zip(*found, strict=True)) if found else [()] * 7
    numbers = [np.array(column, np.float64) for column in columns[4:]]
    return MinutePods(np.array(columns[0], np.intp), *columns[1:4], *numbers)


def _described(pod: Pod, failed: float, start: float, end: float) -> tuple[str, str, str, bool, float, float]:
    """`start` and `end`: of the minute, or of the pod in it."""
    seconds = max(0.0, end - max(start, pod.started or pod.created))
    probes = sum(seconds / each.liveness.period for each in pod.containers if each.liveness is not None)
    if not probes or pod.phase != "Running":
        return pod.key, workload_key(pod), pod.node or "", pod.ready, np.nan, np.nan
    return pod.key, workload_key(pod), pod.node or "", pod.ready, max(0.0, probes - failed), failed


def state_minute(
    state: State, start: int, series: SeriesIndex, pods: MinutePods, measured: tuple[MinuteUsage, MinuteUsage]
) -> StateMinute:
    """`measured`: the samples of the minute, of pods and of nodes."""
    of_pods, of_nodes = measured
    nodes = {name: slot for name, slot in state.usage.node_slots().items() if slot < len(of_nodes.counts)}
    records = cast("Mapping[str, Node]", state.mirror.records(Kind.NODES))
    node_series = series.assign("node", list(nodes), start)
    numbers = {row.name: row.id for row in node_series}
    pod_axes = {axis: _measured(of_pods, pods.slots, column) for axis, column in _OF_PODS}
    node_axes = {axis: _measured(of_nodes, np.fromiter(nodes.values(), np.intp), column) for axis, column in _OF_NODES}
    refused = [
        *_refuse_impossible(pod_axes, pods.names, [records.get(name) for name in pods.nodes]),
        *_refuse_impossible(node_axes, list(nodes), [records.get(name) for name in nodes]),
    ]
    pod_axes |= {
        Axis.SUCCESSES: Measured.once(pods.successes),
        Axis.FAILURES: Measured.once(pods.failures),
        Axis.READY: Measured.once(pods.ready),
    }
    node_axes[Axis.READY] = Measured.once(np.array([_ready(records.get(name)) for name in nodes], np.float64))
    on = np.array([numbers.get(name, 0) for name in pods.nodes], np.uint32)
    names, replicas = np.unique(np.array(pods.workloads, dtype=object), return_inverse=True)
    workload_axes = {axis: by_workload(each, replicas, len(names)) for axis, each in pod_axes.items()}
    minutes = (
        Minute(start, node_series, np.zeros(len(nodes), np.uint32), node_axes),
        Minute(start, series.assign("pod", pods.names, start), on, pod_axes),
        Minute(start, series.assign("workload", names.tolist(), start), np.zeros(len(names), np.uint32), workload_axes),
    )
    return StateMinute(minutes, tuple(refused))


def _measured(minute: MinuteUsage, slots: NDArray[np.intp], column: int) -> Measured:
    """Copies, from which impossible values can be taken."""
    return Measured(minute.counts[slots, column], minute.means[slots, column], minute.maxima[slots, column])


def _ready(node: Node | None) -> float:
    return np.nan if node is None else float(node.ready)


def _refuse_impossible(
    axes: Mapping[Axis, Measured], names: Sequence[str], nodes: Sequence[Node | None]
) -> Iterator[str]:
    for axis, resource in _BOUNDED.items():
        capacity = np.array([_capacity(node, resource) for node in nodes], np.float64)
        measured = axes[axis]
        for row in np.flatnonzero(measured.maxima > _IMPOSSIBLE * capacity).tolist():
            yield f"{names[row]}: {axis.label} {measured.maxima[row]:g} on a node with {capacity[row]:g}"
            measured.counts[row], measured.means[row], measured.maxima[row] = 0, np.nan, np.nan


def _capacity(node: Node | None, resource: str) -> float:
    """NaN, with which nothing compares, where it is not known."""
    return np.nan if node is None else node.capacity.get(resource) or np.nan


def by_workload(measured: Measured, replicas: NDArray[np.intp], number: int) -> Measured:
    """Mean and maximum over the samples of its replicas."""
    counts = np.bincount(replicas, measured.counts, number).astype(np.int64)
    totals = np.bincount(replicas, np.nan_to_num(measured.means) * measured.counts, number)
    maxima = np.full(number, np.nan)
    np.fmax.at(maxima, replicas, measured.maxima)
    with np.errstate(invalid="ignore"):
        return Measured(counts, totals / counts, maxima)
