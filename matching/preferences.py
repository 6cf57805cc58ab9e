"""Who likes whom: the pods' lists of nodes, and the one ranking of the pods that all nodes share.

Pods prefer the node whose available room (allocatable less what cannot move) is nearest to their usage, by
Euclidean distance in shares of capacity; distances are compared to nine decimals, ties go by node name. Rooms lie
between 0 and 1, so two nodes' distances from one pod differ by at most sqrt(axes): an inertia above that (and above
`soft_weight` more, which unmet soft wishes can add) keeps every happy pod where it fits.

An unhappy pod looks at load first, because its usage was measured while it starved and nearness would send it right
back: nodes that as things stand would, with it, be less loaded than its own by at least `relief` come first, then
its own node, then the others; distance decides within each group.

Nodes prefer the pod that uses more CPU (axis 0). Pods that have no node come after all running ones, by priority,
then CPU: a newcomer never drives out what runs.
"""

from __future__ import annotations

import numpy as np

from matching.arrays import NOWHERE, TOLERANCE, Arrays, Floats, Ints, Mask, share_of_room, sum_by_node

DECIMALS = 9
_BLOCK_CELLS = 1 << 20


def ranking(arrays: Arrays) -> Ints:
    """All pods, the one that every node likes best first."""
    cpu = np.array([pod.usage[0] for pod in arrays.pods], dtype=np.float64)
    newcomer = arrays.home == NOWHERE
    priority = np.array([pod.priority for pod in arrays.pods], dtype=np.int64) * newcomer
    return np.lexsort((-cpu, -priority, newcomer)).astype(np.int64)


class Preferences:
    """Fixed before the matching begins: rooms and loads are those of the problem, not of a half-made plan."""

    def __init__(self, arrays: Arrays, movable: Mask, ranked: Ints) -> None:
        self._arrays = arrays
        nodes = len(arrays.nodes)
        staying = np.where(movable, NOWHERE, arrays.home)
        taken = arrays.background + sum_by_node(arrays.usage, staying, nodes)
        self._room = np.where(arrays.hard_only[:, None], 0.0, (arrays.allocatable - taken).clip(min=0.0))
        self._load = arrays.background + sum_by_node(arrays.peak, arrays.home, nodes)
        self._ranked = ranked
        self._place = np.empty_like(ranked)
        self._place[ranked] = np.arange(len(ranked))
        self._block_size = max(1, _BLOCK_CELLS // max(1, len(arrays.nodes)))
        self._block_start = -1
        self._block = np.empty((0, 0))

    def distances(self, pod: int) -> Floats:
        """To every node, without inertia. Rows are made in blocks, since pods are asked for in rank order."""
        place = int(self._place[pod])
        start = place - place % self._block_size
        if start != self._block_start:
            self._block = self._distances_of(self._ranked[start : start + self._block_size])
            self._block_start = start
        row: Floats = self._block[place - start]
        return row

    def choose(self, pod: int, among: Mask) -> int:
        """The node the pod likes best among those; `among` must not be empty."""
        for group in self._groups(pod):
            wanted = among & group
            if wanted.any():
                return int(np.where(wanted, self._wishes(pod), np.inf).argmin())
        return NOWHERE

    def order(self, pod: int, among: Mask) -> Ints:
        """Those nodes, the one the pod likes best first."""
        wishes = self._wishes(pod)
        parts = []
        for group in self._groups(pod):
            wanted = np.flatnonzero(among & group)
            parts.append(wanted[np.argsort(wishes[wanted], kind="stable")])
        return np.concatenate(parts)

    def held_by_inertia(self, pod: int, among: Mask) -> bool:
        """Would the pod like another node better if it were not used to its own?"""
        if self._arrays.unhappy[pod]:
            return False
        return bool(np.where(among, self.distances(pod), np.inf).argmin() != self._arrays.home[pod])

    def _wishes(self, pod: int) -> Floats:
        home = self._arrays.home[pod]
        distances = self.distances(pod)
        if home == NOWHERE or self._arrays.unhappy[pod]:
            return distances
        wishes = distances.copy()
        wishes[home] = round(wishes[home] - self._arrays.options.inertia, DECIMALS)
        return wishes

    def _groups(self, pod: int) -> tuple[Mask, ...]:
        if not self._arrays.unhappy[pod]:
            return (np.ones(len(self._arrays.nodes), dtype=bool),)
        home = self._arrays.home[pod]
        own = np.zeros(len(self._arrays.nodes), dtype=bool)
        own[home] = True
        relieving = self._relieving(pod) & ~own
        return relieving, own, ~relieving & ~own

    def _relieving(self, pod: int) -> Mask:
        arrays = self._arrays
        here = share_of_room(self._load, arrays.allocatable)[:, arrays.home[pod]].max()
        there = share_of_room(self._load + arrays.peak[:, pod, None], arrays.allocatable).max(axis=0)
        enough: Mask = there <= here - arrays.options.relief + TOLERANCE
        return enough

    def _distances_of(self, pods: Ints) -> Floats:
        squares = np.zeros((len(pods), len(self._arrays.nodes)))
        for room, usage in zip(self._room, self._arrays.usage[:, pods], strict=True):
            squares += (room[None, :] - usage[:, None]) ** 2
        distances = np.sqrt(squares)
        wishes = self._arrays.wishes
        if wishes is not None:
            for row in np.flatnonzero(wishes.has_any[pods]).tolist():
                distances[row] += self._arrays.options.soft_weight * wishes.unmet(int(pods[row]))
        rounded: Floats = distances.round(DECIMALS)
        return rounded
