"""The room that every node has left while a planner puts pods on nodes and takes them away.

Headroom is for choosing a new node. With inertia, a happy pod needs none on its current node: that has room for it as
long as the peaks fit at all.
"""

from __future__ import annotations

import numpy as np

from matching.array_types import NOWHERE, Floats, Ints, Mask
from matching.constraints import resources
from matching.constraints.inter_pod import InterPodState
from matching.model.arrays import Arrays, Taken, share_of_room, sum_by_node, taken
from matching.problem import TOLERANCE

_FEW = 100


class Ledger:
    """Free requests, peaks and pod slots of every node while a planner puts and takes pods."""

    def __init__(self, arrays: Arrays, at: Ints) -> None:
        """`at` has the node of each pod, or NOWHERE."""
        self._arrays = arrays
        nodes = len(arrays.nodes)
        there = _taken(arrays, at)
        self.free = arrays.requestable - there.request
        self.load = arrays.background + there.peak
        self.slots = arrays.max_pods - there.slots
        self._least_free, self._least_spare = arrays.least_free, arrays.least_spare
        self._axes = range(len(arrays.axes))
        self._full = arrays.options.headroom
        self._quotas: dict[float, Floats] = {}
        self.inter_pod = InterPodState(arrays.inter_pod, nodes, arrays.current, at)
        """A pod that is NOWHERE in `at` counts on its current node until it is put somewhere."""

    def put(self, pod: int, node: int) -> None:
        self.free[:, node] -= self._arrays.request[:, pod]
        self.load[:, node] += self._arrays.peak[:, pod]
        self.slots[node] -= 1
        self.inter_pod.put(pod, node)

    def put_all(self, pods: Ints, nodes: Ints) -> None:
        """Several pods without inter-pod constraints."""
        for axis, (request, peak) in enumerate(zip(self._arrays.request, self._arrays.peak, strict=True)):
            np.subtract.at(self.free[axis], nodes, request[pods])
            np.add.at(self.load[axis], nodes, peak[pods])
        np.subtract.at(self.slots, nodes, 1)
        self.inter_pod.put_unconstrained(pods, nodes)

    def take(self, pod: int, node: int) -> None:
        self.free[:, node] += self._arrays.request[:, pod]
        self.load[:, node] -= self._arrays.peak[:, pod]
        self.slots[node] += 1
        self.inter_pod.take(pod)

    def shift(self, pod: int, source: int, target: int) -> None:
        """From one node to another; either may be NOWHERE."""
        if source != NOWHERE:
            self.take(pod, source)
        if target != NOWHERE:
            self.put(pod, target)
        else:
            self.inter_pod.remove(pod)

    def fits(self, pod: int) -> Mask:
        """By requests, pod count and inter-pod constraints: the part of kube-scheduler's filters that changes with
        moves."""
        return self.fits_requests(pod) & resources.fits_pod_count(self.slots) & self.inter_pod.allows(pod)

    def fits_requests(self, pod: int) -> Mask:
        return resources.fits_requests(self.free, self._least_free[:, pod])

    def fits_each(self, pods: Ints) -> Mask:
        """`fits` for several pods, one row each."""
        fitting: Mask = np.repeat(resources.fits_pod_count(self.slots)[None], len(pods), axis=0)
        for free, least in zip(self.free, self._least_free[:, pods], strict=True):
            fitting &= free >= least[:, None]
        if self.inter_pod.constrains:
            for row, pod in enumerate(pods.tolist()):
                fitting[row] &= self.inter_pod.allows(pod)
        return fitting

    def fits_on(self, pod: int, node: int) -> bool:
        """The same for one node, which is faster without arrays."""
        return self.has_room_on(pod, node) and self.inter_pod.allows_on(pod, node)

    def has_room_on(self, pod: int, node: int) -> bool:
        """By requests and pod count."""
        enough = all(self.free[axis, node] >= self._least_free[axis, pod] for axis in self._axes)
        return enough and bool(self.slots[node] >= 1)

    def fits_peak(self, pod: int, headroom: float) -> Mask:
        fitting = resources.fits_peaks(self.quota(headroom) - self.load, self._least_spare[:, pod])
        if self._arrays.headroom_exempt[pod]:
            current = int(self._arrays.current[pod])
            fitting[current] = self._peak_fits_on(pod, current, 0.0)
        return fitting

    def takes(self, pod: int, node: int) -> bool:
        """Whether one node has room by requests, pod count and peaks, with the full headroom."""
        return self.fits_on(pod, node) and self._peak_fits_on(pod, node, self.headroom(pod, node))

    def takes_each(self, pods: Ints) -> Mask:
        """`takes` for all nodes, one row per pod, whatever inter-pod constraints say."""
        whole, spare = self.quota(0.0) - self.load, self.quota(self._full) - self.load
        exempt = np.flatnonzero(self._arrays.headroom_exempt[pods])
        current = self._arrays.current[pods[exempt]]
        fitting: Mask = np.repeat(resources.fits_pod_count(self.slots)[None], len(pods), axis=0)
        for axis in self._axes:
            peak = self._least_spare[axis, pods]
            roomy = spare[axis] > peak[:, None]
            roomy[exempt, current] = whole[axis, current] > peak[exempt]
            fitting &= roomy & (self.free[axis] >= self._least_free[axis, pods][:, None])
        return fitting

    def takes_all(self, pods: Ints, nodes: Ints) -> bool:
        """Whether those nodes have room for all those pods, so that none is refused in whatever order they come. False
        where it is a matter of rounding. Without inter-pod constraints."""
        number = len(self.slots)
        entered = np.bincount(nodes, minlength=number)
        strict = ~self._arrays.headroom_exempt[pods] | (nodes != self._arrays.current[pods])
        full = np.bincount(nodes[strict], minlength=number) > 0
        quota = np.where(full, self.quota(self._full), self.quota(0.0))
        free = self.free - sum_by_node(self._arrays.request[:, pods], nodes, number)
        spare = quota - self.load - sum_by_node(self._arrays.peak[:, pods], nodes, number)
        fitting = (self.slots >= entered) & (free >= 0).all(axis=0) & (spare > 2 * TOLERANCE).all(axis=0)
        return bool(fitting[entered > 0].all())

    def headroom(self, pod: int, node: int) -> float:
        """The share of its room that the node has to leave free for this pod to come or to stay."""
        return 0.0 if node == self._arrays.current[pod] and self._arrays.headroom_exempt[pod] else self._full

    def shares_with(self, pod: int) -> Floats:
        """Peak load of every node and axis as a share of its room, if the pod came."""
        return share_of_room(self.load + self._arrays.peak[:, pod, None], self._arrays.allocatable)

    def shares_with_each(self, pods: Ints) -> Floats:
        """The same for several pods: by axis, pod and node."""
        load = self.load[:, None, :] + self._arrays.peak[:, pods, None]
        return share_of_room(load, self._arrays.allocatable[:, None, :])

    def shares_without_each(self, pods: Ints, nodes: Ints) -> Floats:
        """By axis and pod: of the node where the pod is, if it left."""
        return share_of_room(self.load[:, nodes] - self._arrays.peak[:, pods], self._arrays.allocatable[:, nodes])

    def shares(self) -> Floats:
        """Peak load of every node and axis as a share of its room."""
        return share_of_room(self.load, self._arrays.allocatable)

    def shares_of(self, nodes: list[int]) -> Floats:
        return share_of_room(self.load[:, nodes], self._arrays.allocatable[:, nodes])

    def quota(self, headroom: float) -> Floats:
        """What peaks have to stay below, by axis and node."""
        quota = self._quotas.get(headroom)
        if quota is None:
            quota = self._quotas[headroom] = resources.peak_quota(self._arrays.allocatable, headroom)
        return quota

    def _peak_fits_on(self, pod: int, node: int, headroom: float) -> bool:
        quota = self.quota(headroom)
        return all(quota[axis, node] - self.load[axis, node] > self._least_spare[axis, pod] for axis in self._axes)


def peak_loads(arrays: Arrays, at: Ints) -> Floats:
    """By node: the load at peak on its fullest axis, as a share of its room."""
    loads: Floats = Ledger(arrays, at).shares().max(axis=0, initial=0.0)
    return loads


def before_the_moves(arrays: Arrays, at: Ints) -> Ledger:
    """All pods on their current nodes, without those that `at` dumps: they are gone before the first move."""
    return without_dumped(arrays, np.where(at == NOWHERE, NOWHERE, arrays.current))


def without_dumped(arrays: Arrays, at: Ints) -> Ledger:
    """As in `at`; running pods that are NOWHERE there count nowhere for inter-pod constraints, too."""
    ledger = Ledger(arrays, at)
    for pod in np.flatnonzero((at == NOWHERE) & (arrays.current != NOWHERE)).tolist():
        ledger.inter_pod.remove(pod)
    return ledger


def headroom_steps(full: float) -> tuple[float, ...]:
    """What a pod tries in turn; the last step is none."""
    return (full, full / 2, 0.0) if full > 0 else (0.0,)


def _taken(arrays: Arrays, at: Ints) -> Taken:
    """When few pods are not on their current node, only the nodes that they left or entered are summed again."""
    changed = np.flatnonzero(at != arrays.current)
    if len(changed) * _FEW > len(at):
        return taken(arrays, at)
    touched = np.zeros(len(arrays.nodes) + 1, dtype=bool)
    touched[arrays.current[changed]] = touched[at[changed]] = True
    touched[NOWHERE] = False
    there = taken(arrays, np.where(touched[at], at, NOWHERE))
    before, again = arrays.taken_now, touched[:-1]
    return Taken(
        np.where(again, there.request, before.request),
        np.where(again, there.peak, before.peak),
        np.where(again, there.slots, before.slots),
    )
