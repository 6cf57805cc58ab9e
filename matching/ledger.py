"""What every node has left while pods are put on it and taken away: requests, peaks, slots."""

from __future__ import annotations

import numpy as np

from matching.arrays import NOWHERE, Arrays, Floats, Ints, Mask, share_of_room, sum_by_node
from matching.constraints import peaks, pod_count, requests
from matching.constraints.between_pods import BetweenPods


class Ledger:
    def __init__(self, arrays: Arrays, at: Ints) -> None:
        """`at` says for each pod which node it is on, or NOWHERE."""
        self._arrays = arrays
        nodes = len(arrays.nodes)
        self.free = arrays.allocatable - sum_by_node(arrays.request, at, nodes)
        self.load = arrays.background + sum_by_node(arrays.peak, at, nodes)
        self._least_free = requests.least_free(arrays.request)
        self._least_spare = peaks.least_spare(arrays.peak)
        self.slots = arrays.max_pods - np.bincount(at[at != NOWHERE], minlength=nodes)
        self.between = BetweenPods(arrays.neighbours, nodes, arrays.home, at)
        """Rules that look at other pods; a pod that `at` has nowhere counts at home until it is put somewhere."""

    def put(self, pod: int, node: int) -> None:
        self.free[:, node] -= self._arrays.request[:, pod]
        self.load[:, node] += self._arrays.peak[:, pod]
        self.slots[node] -= 1
        self.between.put(pod, node)

    def take(self, pod: int, node: int) -> None:
        self.free[:, node] += self._arrays.request[:, pod]
        self.load[:, node] -= self._arrays.peak[:, pod]
        self.slots[node] += 1
        self.between.take(pod)

    def fits(self, pod: int) -> Mask:
        """By requests, number of pods and rules between pods: what kube-scheduler would look at."""
        return self.fits_requests(pod) & pod_count.fits(self.slots) & self.between.allows(pod)

    def fits_requests(self, pod: int) -> Mask:
        return requests.fits(self.free, self._least_free[:, pod])

    def fits_on(self, pod: int, node: int) -> bool:
        """The same for one node."""
        return self.has_room_on(pod, node) and bool(self.between.allows(pod)[node])

    def has_room_on(self, pod: int, node: int) -> bool:
        """By requests and number of pods alone."""
        only = [node]
        enough = requests.fits(self.free[:, only], self._least_free[:, pod]) & pod_count.fits(self.slots[only])
        return bool(enough[0])

    def fits_peak(self, pod: int, headroom: float) -> Mask:
        spare = peaks.quota(self._arrays.allocatable, headroom) - self.load
        return peaks.fits(spare, self._least_spare[:, pod])

    def shares_with(self, pod: int) -> Floats:
        """Peak load of every node and axis as a share of its room, if the pod came."""
        return share_of_room(self.load + self._arrays.peak[:, pod, None], self._arrays.allocatable)

    def shares(self) -> Floats:
        """Peak load of every node and axis as a share of its room."""
        return share_of_room(self.load, self._arrays.allocatable)

    def shares_of(self, nodes: list[int]) -> Floats:
        return share_of_room(self.load[:, nodes], self._arrays.allocatable[:, nodes])
