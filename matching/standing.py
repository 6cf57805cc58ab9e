"""How the nodes stand while a matching is being made, which is what an unhappy pod looks at when its turn comes.

Pods that have chosen count where they went, all others where they are. So what a pod sees depends only on pods that
rank above it. With inertia 0, as in the paper, lists are made once: the loads stay what they were before the matching.
"""

from __future__ import annotations

from matching.arrays import NOWHERE, TOLERANCE, Arrays, Mask, share_of_room, sum_by_node


class Standing:
    def __init__(self, arrays: Arrays) -> None:
        self._arrays = arrays
        self._load = arrays.background + sum_by_node(arrays.peak, arrays.home, len(arrays.nodes))
        limit = 1 - arrays.options.headroom
        self._overloaded_before = share_of_room(self._load, arrays.allocatable).max(axis=0) > limit + TOLERANCE

    def went(self, pod: int, node: int) -> None:
        home = int(self._arrays.home[pod])
        if node == home or self._arrays.options.inertia == 0:
            return
        self._load[:, node] += self._arrays.peak[:, pod]
        if home != NOWHERE:
            self._load[:, home] -= self._arrays.peak[:, pod]

    def worst_at_home(self, pod: int) -> float:
        """Load of the pod's own node, with it, as a share of the node's room; the fullest axis."""
        home = [int(self._arrays.home[pod])]
        return float(share_of_room(self._load[:, home], self._arrays.allocatable[:, home]).max())

    def cured(self, pod: int) -> bool:
        """Was the pod's own node overloaded, and have those before it left enough for it to stay?"""
        if not self._overloaded_before[self._arrays.home[pod]]:
            return False
        return self.worst_at_home(pod) < 1 - self._arrays.options.headroom - TOLERANCE

    def relieving(self, pod: int) -> Mask:
        """Nodes that would, with the pod, be less loaded than its own is by at least the relief."""
        there = share_of_room(self._load + self._arrays.peak[:, pod, None], self._arrays.allocatable).max(axis=0)
        enough: Mask = there <= self.worst_at_home(pod) - self._arrays.options.relief + TOLERANCE
        return enough
