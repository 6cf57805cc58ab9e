"""Who likes whom: the pods' lists of nodes, and the one ranking of the pods that all nodes share.

Pods prefer the node whose available room (allocatable less what cannot move) is nearest to their usage, by
Euclidean distance in shares of capacity; distances are compared to nine decimals, ties go by node name. Rooms lie
between 0 and 1, so two nodes' distances from one pod differ by at most sqrt(axes): an inertia above that (and above
`soft_weight` more, which unmet soft wishes can add) keeps every happy pod where it fits. With `availability: after` the
room at a pod's turn is meant: less the usage of those that were matched before it.

An unhappy pod looks at load first, because its usage was measured while it starved and nearness would send it right
back: nodes that as things stand at its turn would, with it, be less loaded than its own by at least `relief` come
first, then its own node, then the others; distance decides within each group. When its node was overloaded and no
longer is, because pods that rank above it left, its own node comes first: not everybody has to leave.

Nodes prefer the pod that uses more CPU (axis 0). Pods that have no node come after all running ones, by priority,
then CPU: a newcomer never drives out what runs.
"""

from __future__ import annotations

import numpy as np

from matching.arrays import NOWHERE, Arrays, Floats, Ints, Mask, sum_by_node
from matching.problem import Availability
from matching.standing import Standing

DECIMALS = 9
_BLOCK_CELLS = 1 << 15


def ranking(arrays: Arrays) -> Ints:
    """All pods, the one that every node likes best first."""
    return ranking_by(arrays, np.array([pod.usage[0] for pod in arrays.pods], dtype=np.float64))


def ranking_by(arrays: Arrays, sizes: Floats) -> Ints:
    """Running pods by size; then those without a node, by priority and size: a newcomer never drives out what runs."""
    newcomer = arrays.home == NOWHERE
    priority = np.array([pod.priority for pod in arrays.pods], dtype=np.int64) * newcomer
    return np.lexsort((-sizes, -priority, newcomer)).astype(np.int64)


class Preferences:
    """A pod's list depends on the problem and on what pods that rank above it have chosen, on nothing else."""

    def __init__(self, arrays: Arrays, movable: Mask, ranked: Ints) -> None:
        self._arrays = arrays
        nodes = len(arrays.nodes)
        staying = np.where(movable, NOWHERE, arrays.home)
        taken = arrays.background + sum_by_node(arrays.usage, staying, nodes)
        self.untouched: Floats = np.where(arrays.hard_only[:, None], 0.0, arrays.allocatable - taken)
        """Room before anybody is matched; below 0 where what cannot move takes more than there is."""
        self.room: Floats = self.untouched.clip(min=0.0)
        self._after = arrays.options.availability is Availability.AFTER
        self._ranked = ranked
        self._place = np.empty_like(ranked)
        self._place[ranked] = np.arange(len(ranked))
        self._block_size = max(1, _BLOCK_CELLS // max(1, len(arrays.nodes)))
        self._block_start = -1
        self._block = np.empty((0, 0))

    def room_at(self, standing: Standing | None) -> Floats:
        """What distances are taken to, by axis and node; not to be written to."""
        if standing is None or not self._after:
            return self.room
        left: Floats = (self.untouched - standing.used).clip(min=0.0)
        return left

    def distances(self, pod: int, standing: Standing | None = None) -> Floats:
        """To every node, without inertia. Where lists do not change rows are made in blocks, since pods are asked for
        in rank order."""
        row: Floats
        if self._after and standing is not None:
            row = self.distances_of(np.array([pod]), standing)[0]
            return row
        place = int(self._place[pod])
        start = place - place % self._block_size
        if start != self._block_start:
            self._block = self.distances_of(self._ranked[start : start + self._block_size])
            self._block_start = start
        row = self._block[place - start]
        return row

    def distances_of(self, pods: Ints, standing: Standing | None = None) -> Floats:
        """One row per pod."""
        squares = np.zeros((len(pods), len(self._arrays.nodes)))
        for room, usage in zip(self.room_at(standing), self._arrays.usage[:, pods], strict=True):
            squares += np.square(room[None, :] - usage[:, None])
        distances = np.sqrt(squares, out=squares)
        wishes = self._arrays.wishes
        if wishes is not None:
            for row in np.flatnonzero(wishes.has_any[pods]).tolist():
                distances[row] += self._arrays.options.soft_weight * wishes.unmet(int(pods[row]))
        rounded: Floats = distances.round(DECIMALS, out=distances)
        return rounded

    def choose(self, pod: int, among: Mask, standing: Standing) -> int:
        """The node the pod likes best among those; `among` must not be empty."""
        wishes = self.wishes(pod, standing)
        if not self._arrays.unhappy[pod]:
            return int(np.where(among, wishes, np.inf).argmin())
        for group in self._groups(pod, standing):
            wanted = among & group
            if wanted.any():
                return int(np.where(wanted, wishes, np.inf).argmin())
        return NOWHERE

    def order(self, pod: int, among: Mask, standing: Standing) -> Ints:
        """Those nodes, the one the pod likes best first."""
        wishes = self.wishes(pod, standing)
        groups = self._groups(pod, standing) if self._arrays.unhappy[pod] else (among,)
        parts = []
        for group in groups:
            wanted = np.flatnonzero(among & group)
            parts.append(wanted[np.argsort(wishes[wanted], kind="stable")])
        return np.concatenate(parts)

    def wishes(self, pod: int, standing: Standing | None = None) -> Floats:
        """Distances less the inertia of a happy pod at home; smaller is better."""
        home = self._arrays.home[pod]
        distances = self.distances(pod, standing)
        if home == NOWHERE or self._arrays.unhappy[pod] or self._arrays.options.inertia == 0:
            return distances
        wishes = distances.copy()
        wishes[home] = round(wishes[home] - self._arrays.options.inertia, DECIMALS)
        return wishes

    def _groups(self, pod: int, standing: Standing) -> tuple[Mask, ...]:
        """Of an unhappy pod, the best first."""
        own = np.zeros(len(self._arrays.nodes), dtype=bool)
        own[self._arrays.home[pod]] = True
        relieving = standing.relieving(pod) & ~own
        others = ~relieving & ~own
        return (own, relieving, others) if standing.cured(pod) else (relieving, own, others)
