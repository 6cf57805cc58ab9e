"""Usage history: what pods and nodes use now and used lately, with the quality of each measurement."""

from __future__ import annotations

import math
from array import array
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import repeat

import numpy as np
from numpy.typing import NDArray

from predictors.protocol import PeakEstimator
from reactor.cluster.records import NodeUsageSample, Pod, PodUsageSample
from reactor.signals.measurements import (
    UNKNOWN_PEAK,
    DiskSample,
    LinkSample,
    Measurement,
    MetricsSource,
    NetworkSample,
    NodeRateSample,
    Peak,
    PressureSample,
    ThrottleSample,
    Usage,
)
from reactor.signals.minute_sums import MinuteUsage
from reactor.signals.usage_table import AXES, CPU, DISK, LINK, MEMORY, NETWORK, PRESSURE, THROTTLED, Rows, UsageTable
from reactor.signals.workloads import Workloads, workload_key

_FAST_CLOCK = 86400.0
"""Seconds by which the clock of a source may be ahead of ours."""
_MEASURED = 2
"""CPU and MEMORY are the first axes of a row."""

_MOST_DEPARTED = 10_000
"""Pods that went within a minute and are recorded; older ones are not if there are more."""


@dataclass(frozen=True, slots=True)
class UsageView:
    """The usage history at one moment, for a snapshot. It is immutable."""

    now: float
    freshness: float
    pods: Rows
    nodes: Rows
    peaks: NDArray[np.float64]
    known: NDArray[np.bool_]
    """By slot of a pod: whether CPU and memory are fresh."""
    created: NDArray[np.float64]
    """By slot of a pod."""
    cpu_window: float
    """Seconds over which CPU was averaged."""
    workload_ids: dict[str, int]
    remembered: dict[str, Peak]

    def usage(self, uid: str) -> Usage:
        return _usage(self.pods, uid, self.now, self.freshness)

    def node_usage(self, name: str) -> Usage:
        return _usage(self.nodes, name, self.now, self.freshness)

    def throttled(self, uid: str) -> Measurement:
        return self.pods.measurement(uid, THROTTLED, self.now, self.freshness)

    def waits_for_cpu(self, uid: str) -> Measurement:
        """The share of the time in which some task of the pod waited for a CPU (PSI)."""
        return self.pods.measurement(uid, PRESSURE, self.now, self.freshness)

    def network(self, uid: str) -> Measurement:
        return self.pods.measurement(uid, NETWORK, self.now, self.freshness)

    def link_speed(self, node: str) -> Measurement:
        return self.nodes.measurement(node, LINK, self.now, self.freshness)

    def node_network(self, node: str) -> Measurement:
        """All that goes over its links, its pods' traffic included."""
        return self.nodes.measurement(node, NETWORK, self.now, self.freshness)

    def disk(self, uid: str) -> Measurement:
        return self.pods.measurement(uid, DISK, self.now, self.freshness)

    def node_disk(self, node: str) -> Measurement:
        """All that is read from and written to its disks, by its pods and by itself."""
        return self.nodes.measurement(node, DISK, self.now, self.freshness)

    def peak(self, uid: str) -> Peak:
        slot = self.pods.slots.get(uid)
        if slot is None:
            return UNKNOWN_PEAK
        return _peak(float(self.peaks[slot, CPU]), float(self.peaks[slot, MEMORY]), self.usage(uid))

    def knows(self, uid: str) -> bool:
        """The same as `usage(uid).known`, but fast enough for very many pods."""
        slot = self.pods.slots.get(uid)
        return slot is not None and bool(self.known[slot])

    def knows_all(self, uids: Sequence[str]) -> NDArray[np.bool_]:
        """`knows` of many pods at once."""
        slots = _slots(self.pods, uids)
        known: NDArray[np.bool_] = (slots >= 0) & np.append(self.known, False)[slots]
        return known

    def needs(self, uids: Sequence[str]) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Usage and peak of many pods at once, a row of cores and bytes each, NaN where nothing fresh is known; and
        since when each pod's CPU was averaged, 0 or less for never."""
        slots = _slots(self.pods, uids)
        here = slots >= 0
        usage, peak = np.full((2, len(slots), _MEASURED), np.nan)
        at = np.zeros((len(slots), _MEASURED))
        at[here] = self.pods.at[slots[here], :_MEASURED]
        usage[here] = self.pods.values[slots[here], :_MEASURED]
        usage = np.where(_is_fresh(at, self.now, self.freshness), usage, np.nan)
        peak[here] = np.fmax(self.peaks[slots[here]], usage[here])
        return usage, peak, at[:, CPU] - self.cpu_window

    def of_nodes(self, names: Sequence[str]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Usage of many nodes at once, a row of cores and bytes each, NaN where nothing fresh is known; and when each
        node's CPU was measured, 0 for never."""
        slots = _slots(self.nodes, names)
        here = slots >= 0
        usage, at = np.full((len(slots), _MEASURED), np.nan), np.zeros((len(slots), _MEASURED))
        at[here] = self.nodes.at[slots[here], :_MEASURED]
        usage[here] = self.nodes.values[slots[here], :_MEASURED]
        return np.where(_is_fresh(at, self.now, self.freshness), usage, np.nan), at[:, CPU]

    def by_workload(self) -> dict[str, tuple[float, float, int]]:
        """Cores and bytes of all pods of each workload together, and their number; only where all of them are fresh. A
        pod that is younger than a measurement may be counts as nothing: an autoscaler has to know the load of the
        others while it adds pods."""
        number = 1 + max(self.workload_ids.values(), default=0)
        slots = np.fromiter(self.pods.slots.values(), np.intp, len(self.pods.slots))
        owner = self.pods.workloads[slots]
        pods = np.bincount(owner, minlength=number)
        young = ~self.known[slots] & (self.created[slots] > self.now - self.freshness)
        known, new = (np.bincount(owner, which, number) for which in (self.known[slots], young))
        values = np.where(young[:, np.newaxis], 0.0, self.pods.values[slots, :_MEASURED])
        cpu, memory = (np.bincount(owner, np.nan_to_num(values[:, axis]), number) for axis in (CPU, MEMORY))
        return {
            key: (float(cpu[at]), float(memory[at]), int(pods[at]))
            for key, at in self.workload_ids.items()
            if known[at] and known[at] + new[at] == pods[at]
        }

    def workload_peak(self, key: str) -> Peak:
        """The highest peak of its pods, else the peak of its last pod. Used for pods that have not run yet."""
        number = self.workload_ids.get(key)
        if number is not None:
            replicas = self.peaks[self.pods.workloads == number]
            highest = np.fmax.reduce(replicas, axis=0, initial=np.nan)
            if not np.isnan(highest).all():
                return _peak(float(highest[CPU]), float(highest[MEMORY]), Usage())
        return self.remembered.get(key, UNKNOWN_PEAK)


@dataclass(frozen=True, slots=True)
class DepartedPod:
    pod: Pod
    at: float
    usage: MinuteUsage
    """One row: its samples of the minute in which it went."""


class UsageHistory:
    """Samples name a pod; they count for the pod with this name, from its creation on."""

    def __init__(self, freshness: float, window: float, estimator: PeakEstimator) -> None:
        self.freshness = freshness
        self._estimator = estimator
        self._pods = UsageTable(window)
        self._nodes = UsageTable(window)
        self._workloads = Workloads()
        self._names: dict[str, dict[str, int]] = {}
        self._created: array[float] = array("d")
        self._cpu_window = 0.0
        self._aliases: dict[str, str] = {}
        self._peaks: NDArray[np.float64] | None = None
        self._new: list[int] = []
        """Slots of pods that were added after the peaks were estimated."""
        self._departed: deque[DepartedPod] = deque(maxlen=_MOST_DEPARTED)

    def configure(self, freshness: float, window: float) -> None:
        self.freshness = freshness
        self._pods.set_window(window)
        self._nodes.set_window(window)
        self._peaks = None

    def observe_pod(self, pod: Pod) -> None:
        if pod.uid not in self._pods.rows.slots:
            slot = self._pods.add(pod.uid, self._workloads.add_pod(workload_key(pod)))
            self._names.setdefault(pod.namespace, {})[pod.name] = slot
            self._created.extend([0.0] * (slot + 1 - len(self._created)))
            self._created[slot] = pod.created
            self._new.append(slot)

    def forget_pod(self, pod: Pod, at: float = 0.0) -> None:
        """`pod` may be any version of it: only its UID and name matter. Its owner may have let it go since. What it
        used in this minute is kept for the record."""
        slot = self._pods.rows.slots.get(pod.uid)
        if slot is None:
            return
        self._departed.append(DepartedPod(pod, at, self._pods.minute.row(slot)))
        self._workloads.remove_pod(int(self._pods.rows.workloads[slot]), self._history_peak(pod.uid))
        self._pods.drop(pod.uid)
        named = self._names[pod.namespace]
        if named.get(pod.name) == slot:
            del named[pod.name]

    def observe_node(self, name: str, addresses: Iterable[str] = ()) -> None:
        """`addresses`: host names and addresses by which a metric may call this node."""
        if name not in self._nodes.rows.slots:
            self._nodes.add(name)
        for alias in (name, *addresses):
            self._aliases[alias] = name

    def forget_node(self, name: str) -> None:
        self._nodes.drop(name)
        self._aliases = {alias: node for alias, node in self._aliases.items() if node != name}

    def record_pods(
        self, samples: Iterable[PodUsageSample], source: MetricsSource, now: float, *, cpu_window: float = 0.0
    ) -> None:
        """CPU taken over a longer time than the pod has lived is too low, so it is not taken over."""
        if source is MetricsSource.PROMETHEUS:
            self._cpu_window = cpu_window
        batch = _Batch(now)
        for sample in samples:
            slot = self._slot_of(sample.namespace, sample.pod, sample.at)
            if slot is not None:
                if sample.at >= self._created[slot] + cpu_window:
                    batch.take(CPU, slot, sample.cpu, sample.at)
                batch.take(MEMORY, slot, sample.memory, sample.at)
        self._write_pods(batch, source)

    def record_throttling(self, samples: Iterable[ThrottleSample], now: float) -> None:
        self._record(THROTTLED, ((each.namespace, each.pod, each.share, each.at) for each in samples), now)

    def record_pressure(self, samples: Iterable[PressureSample], now: float) -> None:
        self._record(PRESSURE, ((each.namespace, each.pod, each.share, each.at) for each in samples), now)

    def record_network(
        self,
        pods: Iterable[NetworkSample],
        nodes: Iterable[NodeRateSample],
        links: Iterable[LinkSample],
        now: float,
    ) -> None:
        self._record(NETWORK, ((each.namespace, each.pod, each.rate, each.at) for each in pods), now)
        self._record_nodes(NETWORK, ((each.node, each.rate, each.at) for each in nodes), now)
        self._record_nodes(LINK, ((each.node, each.speed, each.at) for each in links), now)

    def record_disk(self, pods: Iterable[DiskSample], nodes: Iterable[NodeRateSample], now: float) -> None:
        self._record(DISK, ((each.namespace, each.pod, each.rate, each.at) for each in pods), now)
        self._record_nodes(DISK, ((each.node, each.rate, each.at) for each in nodes), now)

    def _record_nodes(self, axis: int, samples: Iterable[tuple[str, float, float]], now: float) -> None:
        batch = _Batch(now)
        for alias, value, at in samples:
            name = self._node_of(alias)
            if name is not None:
                batch.take(axis, self._nodes.rows.slots[name], value, at)
        batch.write(self._nodes, MetricsSource.PROMETHEUS, self.freshness)

    def _record(self, axis: int, samples: Iterable[tuple[str, str, float | None, float]], now: float) -> None:
        """One axis that only Prometheus has: namespace, name, value and time of each pod."""
        batch = _Batch(now)
        for namespace, pod, value, at in samples:
            slot = self._slot_of(namespace, pod, at)
            if slot is not None:
                batch.take(axis, slot, value, at)
        self._write_pods(batch, MetricsSource.PROMETHEUS)

    def record_nodes(self, samples: Iterable[NodeUsageSample], source: MetricsSource, now: float) -> set[str]:
        """Returns the names that belong to no known node."""
        unknown: set[str] = set()
        batch = _Batch(now)
        for sample in samples:
            name = self._node_of(sample.node)
            if name is None:
                unknown.add(sample.node)
                continue
            slot = self._nodes.rows.slots[name]
            batch.take(CPU, slot, sample.cpu, sample.at)
            batch.take(MEMORY, slot, sample.memory, sample.at)
        batch.write(self._nodes, source, self.freshness)
        return unknown

    def take_minute(self) -> tuple[MinuteUsage, MinuteUsage]:
        """Samples of pods and of nodes since the last call, by slot."""
        return self._pods.minute.take(), self._nodes.minute.take()

    def take_departed(self) -> list[DepartedPod]:
        """The pods that were forgotten since the last call."""
        taken = list(self._departed)
        self._departed.clear()
        return taken

    def pod_slots(self) -> dict[str, int]:
        """By UID. Read-only."""
        return self._pods.rows.slots

    def node_slots(self) -> dict[str, int]:
        """By name. Read-only."""
        return self._nodes.rows.slots

    def node_history(self, name: str) -> tuple[NDArray[np.float64], NDArray[np.float32]]:
        """See `UsageTable.history`."""
        return self._nodes.history(name)

    def newest(self, uid: str, now: float) -> Usage:
        return _usage(self._pods.rows, uid, now, self.freshness)

    def network_of(self, uid: str, now: float) -> float | None:
        """Bits per second of one pod; None where nothing fresh is known."""
        return self._pods.rows.measurement(uid, NETWORK, now, self.freshness).fresh

    def newest_network(self, uids: Sequence[str], now: float) -> NDArray[np.float64]:
        """Bits per second of many pods, NaN where nothing fresh is known."""
        slots, rows = _slots(self._pods.rows, uids), self._pods.rows
        found = np.append(
            np.where(_is_fresh(rows.at[:, NETWORK], now, self.freshness), rows.values[:, NETWORK], np.nan), np.nan
        )
        rates: NDArray[np.float64] = found[slots]
        return rates

    def newest_links(self, names: Sequence[str]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """What goes over the links of many nodes, and their speed; and when both were measured, 0 for never."""
        slots, rows = _slots(self._nodes.rows, names), self._nodes.rows
        axes = [NETWORK, LINK]
        values = np.vstack([rows.values[:, axes], np.full((1, len(axes)), np.nan)])[slots]
        at = np.vstack([rows.at[:, axes], np.zeros((1, len(axes)))])[slots]
        return values, at

    def workload_network(self, key: str, now: float) -> float | None:
        """The mean of what its pods send and receive, for one that has not run yet."""
        number, rows = self._workloads.ids.get(key), self._pods.rows
        if number is None:
            return None
        replicas = (rows.workloads == number) & _is_fresh(rows.at[:, NETWORK], now, self.freshness)
        rates = rows.values[replicas, NETWORK]
        rates = rates[~np.isnan(rates)]
        return float(rates.mean()) if len(rates) else None

    def freeze(self, now: float) -> UsageView:
        """Changes nothing that a later call would show."""
        pods = self._pods.freeze()
        fresh = _is_fresh(pods.at[:, :_MEASURED], now, self.freshness)
        return UsageView(
            now=now,
            freshness=self.freshness,
            pods=pods,
            nodes=self._nodes.freeze(),
            peaks=self._estimated(),
            known=np.all(fresh & ~np.isnan(pods.values[:, :_MEASURED]), axis=1),
            created=np.array(self._created, dtype=np.float64),
            cpu_window=self._cpu_window,
            workload_ids=dict(self._workloads.ids),
            remembered=dict(self._workloads.remembered),
        )

    def fresh_nodes(self, now: float) -> dict[str, tuple[float, float]]:
        """Cores and bytes in use by node, only where both are freshly measured."""
        rows = self._nodes.rows
        values = rows.values[:, :_MEASURED]
        known = np.all(_is_fresh(rows.at[:, :_MEASURED], now, self.freshness) & ~np.isnan(values), axis=1).tolist()
        used = values.tolist()
        return {name: (used[slot][CPU], used[slot][MEMORY]) for name, slot in rows.slots.items() if known[slot]}

    def estimate(self) -> None:
        """Estimate the peaks now, so that the next `freeze` does not have to."""
        self._estimated()

    def _estimated(self) -> NDArray[np.float64]:
        """Estimates all peaks after new measurements. A pod that was only added has no peak yet."""
        if self._peaks is None:
            self._peaks = self._pods.peaks(self._estimator)
        elif self._new:
            known, self._peaks = self._peaks, np.full((len(self._pods.rows.values), _MEASURED), np.nan)
            self._peaks[: len(known)] = known
            self._peaks[self._new] = np.nan
        self._new.clear()
        return self._peaks

    def _write_pods(self, batch: _Batch, source: MetricsSource) -> None:
        """Every write may move the window of the history, so the peaks are estimated again."""
        batch.write(self._pods, source, self.freshness)
        self._peaks = None

    def node_called(self, name: str) -> str | None:
        """The node that a metric calls so."""
        return self._node_of(name)

    def _node_of(self, name: str) -> str | None:
        return self._aliases.get(name) or self._aliases.get(name.partition(".")[0])

    def _slot_of(self, namespace: str, name: str, at: float) -> int | None:
        slot = self._names.get(namespace, {}).get(name)
        return None if slot is None or at < self._created[slot] else slot

    def _history_peak(self, uid: str) -> Peak:
        slot = self._pods.rows.slots.get(uid)
        if slot is None:
            return UNKNOWN_PEAK
        cpu, memory = (self._pods.peak(slot, axis, self._estimator) for axis in (CPU, MEMORY))
        return _peak(cpu, memory, Usage())


class _Batch:
    """The samples of one round by axis, to be written together."""

    def __init__(self, now: float) -> None:
        self._now = now
        self._slots: tuple[list[int], ...] = tuple([] for _ in range(AXES))
        self._values: tuple[list[float], ...] = tuple([] for _ in range(AXES))
        self._at: tuple[list[float], ...] = tuple([] for _ in range(AXES))

    def take(self, axis: int, slot: int, value: float | None, at: float) -> None:
        if value is not None:
            self._slots[axis].append(slot)
            self._values[axis].append(value)
            self._at[axis].append(at)

    def write(self, table: UsageTable, source: MetricsSource, protects: float) -> None:
        """NaN, infinite and negative values are all invalid (NaN). A time in the future is taken as now, or is no clock
        that is a bit fast: then the sample is left out."""
        table.advance_to(self._now)
        for axis, slots in enumerate(self._slots):
            if slots:
                raw, stated = np.array(self._values[axis]), np.array(self._at[axis])
                values = np.where((raw >= 0) & (raw < np.inf), raw, np.nan)
                sane = stated <= self._now + _FAST_CLOCK
                table.minute.refuse(int((~sane | np.isnan(values)).sum()))
                batch = (np.array(slots)[sane], values[sane], np.minimum(stated, self._now)[sane])
                table.write(axis, batch, source, protects=protects)


def _slots(rows: Rows, keys: Sequence[str]) -> NDArray[np.intp]:
    """-1 for a key without a row."""
    return np.fromiter(map(rows.slots.get, keys, repeat(-1)), np.intp, len(keys))


def _usage(rows: Rows, key: str, now: float, freshness: float) -> Usage:
    return Usage(rows.measurement(key, CPU, now, freshness), rows.measurement(key, MEMORY, now, freshness))


def _is_fresh(at: NDArray[np.float64], now: float, freshness: float) -> NDArray[np.bool_]:
    """A time of 0 means never measured."""
    fresh: NDArray[np.bool_] = (at > 0) & (now - at <= freshness)
    return fresh


def _peak(cpu: float, memory: float, usage: Usage) -> Peak:
    """Never below what is used now."""
    return Peak(_highest(cpu, usage.cpu.fresh), _highest(memory, usage.memory.fresh))


def _highest(estimate: float, used: float | None) -> float | None:
    if math.isnan(estimate):
        return used
    return estimate if used is None else max(estimate, used)
