"""How the nodes stand while a matching is being made, which is what a pod may look at when its turn comes.

Loads are for unhappy pods: those that have chosen count where they went, all others where they are. Usage is for the
option that takes a node's room after those that were matched already. So what a pod sees depends only on pods that
rank above it. With inertia 0, as in the paper, lists are made once: the loads stay what they were before the matching.
"""

from __future__ import annotations

import numpy as np

from matching.arrays import NOWHERE, TOLERANCE, Arrays, Floats, Ints, Mask, share_of_room
from matching.problem import Availability


class Standing:
    def __init__(self, arrays: Arrays) -> None:
        self._arrays = arrays
        self._after = arrays.options.availability is Availability.AFTER
        self.load: Floats = arrays.background + arrays.at_home.peak
        """Peaks by axis and node, as an unhappy pod sees them."""
        self.used: Floats = np.zeros_like(arrays.allocatable)
        """Usage of the pods that have chosen, by axis and node; kept up only where availability asks for it."""
        limit = 1 - arrays.options.headroom
        self._overloaded_before = share_of_room(self.load, arrays.allocatable).max(axis=0) > limit + TOLERANCE

    def went(self, pod: int, node: int) -> None:
        if self._after:
            self.used[:, node] += self._arrays.usage[:, pod]
        home = int(self._arrays.home[pod])
        if node == home or self._arrays.options.inertia == 0:
            return
        self.load[:, node] += self._arrays.peak[:, pod]
        if home != NOWHERE:
            self.load[:, home] -= self._arrays.peak[:, pod]

    def went_all(self, pods: Ints, nodes: Ints) -> None:
        """The same for several, one after the other."""
        home, moved = self._arrays.home[pods], nodes != self._arrays.home[pods]
        for axis in range(len(self.load)):
            if self._after:
                np.add.at(self.used[axis], nodes, self._arrays.usage[axis, pods])
            if self._arrays.options.inertia > 0:
                peak = self._arrays.peak[axis, pods]
                np.add.at(self.load[axis], nodes[moved], peak[moved])
                running = moved & (home != NOWHERE)
                np.subtract.at(self.load[axis], home[running], peak[running])

    def left(self, pod: int) -> None:
        """The pod got no node; where it was it counts no longer."""
        home = int(self._arrays.home[pod])
        if home != NOWHERE and self._arrays.options.inertia > 0:
            self.load[:, home] -= self._arrays.peak[:, pod]

    def worst_at_home(self, pod: int) -> float:
        """Load of the pod's own node, with it, as a share of the node's room; the fullest axis."""
        home = [int(self._arrays.home[pod])]
        return float(share_of_room(self.load[:, home], self._arrays.allocatable[:, home]).max())

    def cured(self, pod: int) -> bool:
        """Was the pod's own node overloaded, and have those before it left enough for it to stay?"""
        if not self._overloaded_before[self._arrays.home[pod]]:
            return False
        return self.worst_at_home(pod) < 1 - self._arrays.options.headroom - TOLERANCE

    def relieving(self, pod: int) -> Mask:
        """Nodes that would, with the pod, be less loaded than its own is by at least the relief."""
        there = share_of_room(self.load + self._arrays.peak[:, pod, None], self._arrays.allocatable).max(axis=0)
        enough: Mask = there <= self.worst_at_home(pod) - self._arrays.options.relief + TOLERANCE
        return enough
