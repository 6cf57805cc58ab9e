"""What the links of the nodes carry and can carry, in arrays that are kept up to date between the questions of
kube-scheduler.

A pod's demand is stated by an annotation, else measured. What a node carries is measured as a whole: its own traffic
and that of pods that nobody measured is in it. Stated demands take the place of the measured rates of their pods. Pods
that came after the measurement are added to it. What is neither stated nor freshly measured is unknown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat

import numpy as np
from numpy.typing import NDArray

from reactor.cluster.decoding.quantity import parse_quantity
from reactor.cluster.records import Node, Pod
from reactor.signals.usage import UsageHistory
from reactor.signals.workloads import workload_key

Floats = NDArray[np.float64]

POD_ANNOTATION = "rematch.io/network-bps"
NODE_ANNOTATION = "rematch.io/bandwidth-bps"
_BLOCK = 1024
_BANDWIDTH, _LINK, _LINK_AT, _TOTAL, _TOTAL_AT, _MEASURED, _ADDED, _UNKNOWN, _PODS = range(9)
"""The rows of the table. BANDWIDTH is the stated one; MEASURED what is measured of the pods whose demand is in ADDED;
UNKNOWN counts pods that came after the measurement and that nothing is known about."""


def stated_demand(annotations: Mapping[str, str]) -> float | None:
    return stated(annotations, POD_ANNOTATION)


def stated_bandwidth(node: Node) -> float | None:
    return stated(node.annotations, NODE_ANNOTATION)


def stated(annotations: Mapping[str, str], name: str) -> float | None:
    """A quantity by annotation. None also for a value that is not a quantity: then the measurement counts."""
    try:
        amount = parse_quantity(annotations[name])
    except (KeyError, ValueError):
        return None
    return amount if amount >= 0 else None


@dataclass(frozen=True, slots=True)
class NetworkShares:
    """Of the nodes at one moment: `use` as a share of `bandwidth`. Both have a number only where `known`."""

    use: Floats
    bandwidth: Floats
    known: NDArray[np.bool_]


@dataclass(slots=True)
class _Placed:
    """What a pod adds to what was measured of its node."""

    slot: int
    demand: float | None
    """None: unknown."""
    measured: float
    until_measured: bool
    """Only until the node is measured with it."""
    since: float


class NetworkUse:
    def __init__(self, usage: UsageHistory) -> None:
        self._usage = usage
        self._slots: dict[str, int] = {}
        self._nodes: set[str] = set()
        self._free: list[int] = []
        self._table = np.zeros((_PODS + 1, 0))
        self._placed: dict[str, _Placed] = {}

    @property
    def nodes(self) -> int:
        return len(self._nodes)

    def node_changed(self, old: Node | None, new: Node | None) -> None:
        if new is not None:
            self._nodes.add(new.name)
            slot, given = self._slot(new.name), stated_bandwidth(new)
            self._table[_BANDWIDTH, slot] = np.nan if given is None else given
        elif old is not None:
            self._nodes.discard(old.name)
            self._release(old.name)

    def pod_changed(self, old: Pod | None, new: Pod | None, now: float) -> None:
        """A pod in the network of its host is part of the node's own traffic."""
        before = old if old is not None and _sends(old) else None
        after = new if new is not None and _sends(new) else None
        if before and after and (before.node, before.annotations) == (after.node, after.annotations):
            return
        if before is not None:
            self._take(before)
        if after is not None:
            self._put(after, now)

    def measured(self, now: float) -> None:
        """After new measurements: everything that was added up since is added up again."""
        names, slots = list(self._slots), np.fromiter(self._slots.values(), np.intp, len(self._slots))
        values, at = self._usage.newest_links(names)
        table = self._table
        table[_TOTAL, slots], table[_LINK, slots] = values[:, 0], values[:, 1]
        table[_TOTAL_AT, slots], table[_LINK_AT, slots] = at[:, 0], at[:, 1]
        seen = [uid for uid, each in self._placed.items() if self._is_in_total(each)]
        for uid in seen:
            table[_PODS, self._placed.pop(uid).slot] -= 1
        uids = list(self._placed)
        rates = np.nan_to_num(self._usage.newest_network(uids, now))
        for uid, rate in zip(uids, rates.tolist(), strict=True):
            placed = self._placed[uid]
            if not placed.until_measured:
                placed.measured = rate
        self._add_up()

    def demand_of(self, pod: Pod, now: float) -> float | None:
        """Of a pod that has not run yet: stated, else what its workload's pods send and receive."""
        given = stated_demand(pod.annotations)
        if given is not None or pod.host_network:
            return given
        return self._usage.workload_network(workload_key(pod), now)

    def slots_of(self, names: Sequence[str]) -> NDArray[np.intp]:
        """-1 for a node that is not known."""
        return np.fromiter(map(self._slots.get, names, repeat(-1)), np.intp, len(names))

    def shares(self, now: float) -> NetworkShares:
        """By slot. Measurements that are not fresh any more are unknown."""
        table, freshness = self._table, self._usage.freshness
        fresh_link = (table[_LINK_AT] > 0) & (now - table[_LINK_AT] <= freshness)
        bandwidth = np.where(np.isnan(table[_BANDWIDTH]), np.where(fresh_link, table[_LINK], np.nan), table[_BANDWIDTH])
        fresh = (table[_TOTAL_AT] > 0) & (now - table[_TOTAL_AT] <= freshness)
        carried = (table[_TOTAL] - table[_MEASURED]).clip(min=0.0) + table[_ADDED]
        known = fresh & (bandwidth > 0) & ~np.isnan(carried) & (table[_UNKNOWN] == 0)
        use = np.divide(carried, bandwidth, out=np.zeros_like(carried), where=known)
        return NetworkShares(use, bandwidth, known)

    def _put(self, pod: Pod, now: float) -> None:
        slot = self._slot(pod.node or "")
        since = pod.scheduled or pod.created
        given, rate = stated_demand(pod.annotations), self._usage.network_of(pod.uid, now)
        if given is None:
            placed = _Placed(slot, rate, 0.0, True, since)
            if self._is_in_total(placed):
                return
            if rate is None and self._table[_TOTAL_AT, slot]:  # before the first measurement nothing can be judged
                placed.demand = self._usage.workload_network(workload_key(pod), now)
        else:
            placed = _Placed(slot, given, rate or 0.0, False, since)
        self._table[_PODS, slot] += 1
        self._placed[pod.uid] = placed
        self._count(placed, 1.0)

    def _take(self, pod: Pod) -> None:
        placed = self._placed.pop(pod.uid, None)
        if placed is not None:
            self._table[_PODS, placed.slot] -= 1
            self._count(placed, -1.0)
            self._release(pod.node or "")

    def _is_in_total(self, placed: _Placed) -> bool:
        return placed.until_measured and bool(self._table[_TOTAL_AT, placed.slot] >= placed.since)

    def _count(self, placed: _Placed, sign: float) -> None:
        column = self._table[:, placed.slot]
        column[_UNKNOWN] += sign * (placed.demand is None)
        column[_ADDED] += sign * (placed.demand or 0.0)
        column[_MEASURED] += sign * placed.measured

    def _add_up(self) -> None:
        """Anew, so that rounding errors do not add up."""
        placed, width = self._placed.values(), self._table.shape[1]
        slots = np.fromiter((each.slot for each in placed), np.intp, len(placed))
        columns = {
            _UNKNOWN: (float(each.demand is None) for each in placed),
            _ADDED: (each.demand or 0.0 for each in placed),
            _MEASURED: (each.measured for each in placed),
        }
        for row, amounts in columns.items():
            weights = np.fromiter(amounts, np.float64, len(placed))
            self._table[row] = np.bincount(slots, weights=weights, minlength=width)

    def _slot(self, name: str) -> int:
        """A pod may be seen before its node."""
        slot = self._slots.get(name)
        if slot is None:
            if not self._free:
                width = self._table.shape[1]
                self._table = np.hstack([self._table, np.zeros((len(self._table), _BLOCK))])
                self._free.extend(range(width + _BLOCK - 1, width - 1, -1))
            slot = self._slots[name] = self._free.pop()
            self._table[:, slot] = 0.0
            self._table[_BANDWIDTH, slot] = np.nan
        return slot

    def _release(self, name: str) -> None:
        slot = self._slots.get(name)
        if slot is not None and name not in self._nodes and self._table[_PODS, slot] == 0:
            del self._slots[name]
            self._table[:, slot] = 0.0
            self._free.append(slot)


def _sends(pod: Pod) -> bool:
    return pod.node is not None and not pod.finished and not pod.host_network
