"""Preferences: how pods order nodes, and the one ranking of the pods that all nodes share.

Pods prefer the node whose available room (allocatable less what cannot move) is nearest to their usage, by Euclidean
distance in shares of capacity. Distances are compared to nine decimals; ties go by node name. Rooms are between 0 and
1, so two nodes' distances from one pod differ by at most sqrt(axes). An inertia above that (plus `soft_weight`, which
soft constraints can add) keeps every happy pod where it fits. With `availability: after` the room is what remains at
the pod's turn: less the usage of the pods that were matched before it.

An unhappy pod looks at load first, because its usage was measured while it starved, and distance would send it right
back. Nodes that, with the pod, would at its turn be less loaded than its current node by at least `relief` come first,
then its current node, then the others; distance decides within each group. When its node was overloaded and is no
longer, because pods that rank above it left, its current node comes first: not all pods have to leave.

A pending or unhappy pod also looks at where the replicas of its workload are (`matching.constraints.default_spread`).

Usage is the mean over the pod's history where there is enough of it, and current usage otherwise (`Pod.usual`).

Nodes prefer the pod that uses more CPU (axis 0), or that needs more of it while unloaded (`Pod.rank_cpu`). Pods
without a node come after all running ones, by priority, then by CPU: they never displace a running pod.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from matching.array_types import NOWHERE, Floats, Ints, Mask
from matching.model.arrays import Arrays, share_of_room, sum_by_node
from matching.model.candidates import Candidates
from matching.problem import TOLERANCE, Availability

DECIMALS = 9
_BLOCK_CELLS = 1 << 15
_RANK_CELLS = 1 << 18


class MatchedLoads:
    """The nodes while pods are matched: what a pod sees when its turn comes.

    Unhappy pods see loads: matched pods count on their new node, the others on their current one. Usage is for
    `availability: after`. So what a pod sees depends only on pods that rank above it. With inertia 0, as in the paper,
    preferences are made once: the loads stay as they were before the matching.
    """

    def __init__(self, arrays: Arrays, where: Ints | None = None) -> None:
        """`where` has the node of each pod before the matching, if that is not the current one for all."""
        self._arrays = arrays
        self._after = arrays.options.availability is Availability.AFTER
        self.where: Ints = (arrays.current if where is None else where).copy()
        """The node of each pod: of matched pods the new one, for the spread of replicas."""
        self.load: Floats = arrays.background + arrays.taken_now.peak
        """Peaks by axis and node, as an unhappy pod sees them."""
        self.used: Floats = np.zeros_like(arrays.allocatable)
        """Usage of the matched pods, by axis and node; only with `availability: after`."""
        limit = 1 - arrays.options.headroom
        self._overloaded_before = share_of_room(self.load, arrays.allocatable).max(axis=0) > limit + TOLERANCE

    def put(self, pod: int, node: int) -> None:
        self.where[pod] = node
        if self._after:
            self.used[:, node] += self._arrays.usual[:, pod]
        current = int(self._arrays.current[pod])
        if node == current or self._arrays.options.inertia == 0:
            return
        self.load[:, node] += self._arrays.peak[:, pod]
        if current != NOWHERE:
            self.load[:, current] -= self._arrays.peak[:, pod]

    def put_all(self, pods: Ints, nodes: Ints) -> None:
        """Several pods, one after the other."""
        current, moved = self._arrays.current[pods], nodes != self._arrays.current[pods]
        self.where[pods] = nodes
        for axis in range(len(self.load)):
            if self._after:
                np.add.at(self.used[axis], nodes, self._arrays.usual[axis, pods])
            if self._arrays.options.inertia > 0:
                peak = self._arrays.peak[axis, pods]
                np.add.at(self.load[axis], nodes[moved], peak[moved])
                running = moved & (current != NOWHERE)
                np.subtract.at(self.load[axis], current[running], peak[running])

    def drop(self, pod: int) -> None:
        """The pod got no node and no longer counts on its current one."""
        self.where[pod] = NOWHERE
        current = int(self._arrays.current[pod])
        if current != NOWHERE and self._arrays.options.inertia > 0:
            self.load[:, current] -= self._arrays.peak[:, pod]

    def own_node_load(self, pod: int) -> float:
        """Load of the pod's current node, the pod included, as a share of the node's room; the fullest axis."""
        current = [int(self._arrays.current[pod])]
        return float(share_of_room(self.load[:, current], self._arrays.allocatable[:, current]).max())

    def own_node_relieved(self, pod: int) -> bool:
        """Whether the current node was overloaded and is no longer, because pods that rank above this one left."""
        if not self._overloaded_before[self._arrays.current[pod]]:
            return False
        return self.own_node_load(pod) < 1 - self._arrays.options.headroom - TOLERANCE

    def relieving(self, pod: int) -> Mask:
        """Nodes that, with the pod, would be less loaded than its current node by at least `relief`."""
        there = share_of_room(self.load + self._arrays.peak[:, pod, None], self._arrays.allocatable).max(axis=0)
        enough: Mask = there <= self.own_node_load(pod) - self._arrays.options.relief + TOLERANCE
        return enough


def ranking(arrays: Arrays) -> Ints:
    """All pods, the one that every node prefers first."""
    return ranking_by(arrays, arrays.rank_cpu)


def ranking_by(arrays: Arrays, sizes: Floats) -> Ints:
    """Running pods by size; then pods without a node, by priority and size: these never displace running pods."""
    without_node = arrays.current == NOWHERE
    return np.lexsort((-sizes, -arrays.priority * without_node, without_node)).astype(np.int64)


class Preferences:
    """A pod's preferences depend only on the problem and on the choices of pods that rank above it."""

    def __init__(self, arrays: Arrays, movable: Mask, ranked: Ints) -> None:
        self._arrays = arrays
        nodes = len(arrays.nodes)
        staying = np.where(movable, NOWHERE, arrays.current)
        taken = arrays.background + sum_by_node(arrays.usual, staying, nodes)
        self.untouched: Floats = np.where(arrays.hard_only[:, None], 0.0, arrays.allocatable - taken)
        """Room before any pod is matched; below 0 where what cannot move takes more than there is."""
        self.room: Floats = self.untouched.clip(min=0.0)
        self._after = arrays.options.availability is Availability.AFTER
        self._ranked = ranked
        self._position = np.empty_like(ranked)
        self._position[ranked] = np.arange(len(ranked))
        self._block_size = max(1, _BLOCK_CELLS // max(1, len(arrays.nodes)))
        self._block_start = self._read_start = -1
        self._block = np.empty((0, 0))

    def room_at(self, matched: MatchedLoads | None) -> Floats:
        """The room that distances are measured to, by axis and node. Read-only."""
        if matched is None or not self._after:
            return self.room
        left: Floats = (self.untouched - matched.used).clip(min=0.0)
        return left

    def distances(self, pod: int, matched: MatchedLoads | None = None) -> Floats:
        """To every node, without inertia. Rows that do not change are computed in blocks of pods in rank order, if
        that is the order in which they are read."""
        row: Floats
        if self._after and matched is not None:
            row = self.distances_of(np.array([pod]), matched)[0]
            return row
        position = int(self._position[pod])
        start = position - position % self._block_size
        if start != self._block_start:
            in_order, self._read_start = start == self._read_start, start
            if not in_order:  # the pods of one node, say, are anywhere in the ranking
                row = self.distances_of(np.array([pod]))[0]
                return row
            self._block = self.distances_of(self._ranked[start : start + self._block_size])
            self._block_start = start
        row = self._block[position - start]
        return row

    def distances_of(self, pods: Ints, matched: MatchedLoads | None = None) -> Floats:
        """One row per pod."""
        squares = np.zeros((len(pods), len(self._arrays.nodes)))
        for room, usage in zip(self.room_at(matched), self._arrays.usual[:, pods], strict=True):
            squares += np.square(room[None, :] - usage[:, None])
        distances = np.sqrt(squares, out=squares)
        soft = self._arrays.soft
        if soft is not None:
            for row in np.flatnonzero(soft.has_any[pods]).tolist():
                distances[row] += self._arrays.options.soft_weight * soft.unmet(int(pods[row]))
        rounded: Floats = distances.round(DECIMALS, out=distances)
        return rounded

    def choose(self, pod: int, among: Mask, matched: MatchedLoads) -> int:
        """The node that the pod prefers among those; `among` must not be empty."""
        costs = self.costs(pod, matched)
        if not self._arrays.unhappy[pod]:
            return int(np.where(among, costs, np.inf).argmin())
        for group in self._preference_groups(pod, matched):
            wanted = among & group
            if wanted.any():
                return int(np.where(wanted, costs, np.inf).argmin())
        return NOWHERE

    def order(self, pod: int, among: Mask, matched: MatchedLoads) -> Ints:
        """Those nodes, the one that the pod prefers first."""
        costs = self.costs(pod, matched)
        groups = self._preference_groups(pod, matched) if self._arrays.unhappy[pod] else (among,)
        parts = []
        for group in groups:
            wanted = np.flatnonzero(among & group)
            parts.append(wanted[np.argsort(costs[wanted], kind="stable")])
        return np.concatenate(parts)

    def costs(self, pod: int, matched: MatchedLoads | None = None) -> Floats:
        """Distances, less the inertia for a happy pod's current node, and with the replicas of a pod that is spread;
        smaller is better."""
        return self._costs(pod, self.distances(pod, matched), matched)

    def costs_each(self, pods: Ints, matched: MatchedLoads) -> Floats:
        """`costs` of several pods that are anywhere in the ranking, one row each."""
        distances = self.distances_of(pods, matched if self._after else None)
        rows = [self._costs(pod, row, matched) for pod, row in zip(pods.tolist(), distances, strict=True)]
        return np.array(rows)

    def _costs(self, pod: int, distances: Floats, matched: MatchedLoads | None) -> Floats:
        current, spread = self._arrays.current[pod], self._arrays.default_spread
        if spread is not None and spread.applies[pod] and matched is not None:
            spread_out: Floats = (distances + spread.cost(pod, matched.where[None])[0]).round(DECIMALS)
            return spread_out
        if current == NOWHERE or self._arrays.unhappy[pod] or self._arrays.options.inertia == 0:
            return distances
        costs = distances.copy()
        costs[current] = round(costs[current] - self._arrays.options.inertia, DECIMALS)
        return costs

    def _preference_groups(self, pod: int, matched: MatchedLoads) -> tuple[Mask, ...]:
        """The groups of nodes of an unhappy pod, the best first."""
        own = np.zeros(len(self._arrays.nodes), dtype=bool)
        own[self._arrays.current[pod]] = True
        relieving = matched.relieving(pod) & ~own
        others = ~relieving & ~own
        return (own, relieving, others) if matched.own_node_relieved(pod) else (relieving, own, others)


@dataclass(frozen=True, slots=True)
class OwnNodeRanks:
    """How running pods that may stay rank their current node; entries of other pods mean nothing."""

    by_inertia: Mask
    """Prefers its current node only because of the inertia."""
    rank: Ints
    """Of the current node among all that the pod may use, from 1."""


def preferred_nodes(arrays: Arrays, allowed: Callable[[Ints], Mask], preferences: Preferences, asked: Mask) -> Ints:
    """By pod the node that it prefers among those that are `allowed` (one row for each of some pods). NOWHERE when
    there is none or the pod is not `asked`. `asked` pods must not be unhappy, and `availability` must be `before`."""
    nodes = np.full(len(arrays.pods), NOWHERE)
    for pods in _pod_blocks(arrays, asked):
        costs = np.where(allowed(pods), preferences.distances_of(pods), np.inf)
        running = np.flatnonzero(arrays.current[pods] != NOWHERE)
        current = arrays.current[pods[running]]
        costs[running, current] = np.round(costs[running, current] - arrays.options.inertia, DECIMALS)
        best = costs.argmin(axis=1)
        nodes[pods] = np.where(np.isfinite(costs[np.arange(len(pods)), best]), best, NOWHERE)
    return nodes


def own_node_ranks(arrays: Arrays, candidates: Candidates, preferences: Preferences, asked: Mask) -> OwnNodeRanks:
    """`asked` pods must not be unhappy, and `availability` must be `before`."""
    ranks = no_ranks(arrays)
    for pods in _pod_blocks(arrays, asked & (arrays.current != NOWHERE)):
        far = np.where(candidates.rows(pods), preferences.distances_of(pods), np.inf)
        current = arrays.current[pods]
        plain = far[np.arange(len(pods)), current]
        own = np.round(plain - arrays.options.inertia, DECIMALS)
        rank = _better(far, own, current).sum(axis=1) + 1
        staying = np.isfinite(own)
        ranks.rank[pods] = np.where(staying, rank, 0)
        ranks.by_inertia[pods] = staying & (rank == 1) & _better(far, plain, current).any(axis=1)
    return ranks


def no_ranks(arrays: Arrays) -> OwnNodeRanks:
    return OwnNodeRanks(np.zeros(len(arrays.pods), dtype=bool), np.zeros(len(arrays.pods), dtype=np.int64))


def _pod_blocks(arrays: Arrays, asked: Mask) -> Iterator[Ints]:
    pods = np.flatnonzero(asked)
    size = max(1, _RANK_CELLS // max(1, len(arrays.nodes)))
    for start in range(0, len(pods) if arrays.nodes else 0, size):
        yield pods[start : start + size]


def _better(costs: Floats, own: Floats, current: Ints) -> Mask:
    """Which nodes come before the current one, if that costs `own`."""
    earlier = np.arange(costs.shape[1]) < current[:, None]
    better: Mask = (costs < own[:, None]) | ((costs == own[:, None]) & earlier)
    better[np.arange(len(current)), current] = False
    return better
