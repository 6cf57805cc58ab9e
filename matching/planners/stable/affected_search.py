"""The search of the scope `affected` on clusters of any size: one node with unhappy pods after the other.

For each such node it takes the cheapest relief that it finds: one pod leaves (rather an unhappy one than a happy one),
or it replaces a pod that moves on to another node (a chain of at most three), or several leave until the node is
relieved. At the end every move that turns out not to be needed is undone. Every step keeps the budget and the hard
constraints at its turn. The number of attempts is bounded.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from matching.array_types import NOWHERE, Floats, Ints, Mask
from matching.model.arrays import Arrays, movable, share_of_room
from matching.model.ledger import Ledger
from matching.planning.budget import Budget
from matching.planning.prepared import PreparedProblem
from matching.preferences import MatchedLoads
from matching.problem import TOLERANCE, Scope

_MOST_TRIES = 200
"""Displacements that are tried for one node with unhappy pods."""

_CHAIN = 2

_MOST_LEAVE = 3

_TARGETS = 8


class HappinessCheck:
    """Which unhappy pods a placement makes happy, and whether it harms another pod.

    An unhappy pod becomes happy when its node was overloaded and the one it ends on is not, or when the one it ends on
    is clearly less loaded (by `relief`), whether the pod moved or others left. A placement harms no pod when the
    overload does not grow, every moved pod ends on a node that is not overloaded or clearly less loaded than its
    current one was, and no unhappy pod ends clearly worse or newly overloaded.

    Many placements are evaluated at once: `at` has one row per placement and one column per pod, `loads` the peaks by
    axis, placement and node.
    """

    def __init__(self, arrays: Arrays, start: Ints) -> None:
        """`start` is the placement to improve; in it every unhappy pod is on its current node."""
        self._arrays = arrays
        self.start = start
        self.unhappy: Ints = np.flatnonzero(arrays.unhappy)
        loads = Ledger(arrays, start).load[:, None, :]
        self.before: Floats = self._worst(loads)[0]
        self._overload = float(self.overload(loads)[0])

    def made_happy(self, at: Ints, loads: Floats) -> Mask:
        """One row per placement, one column per unhappy pod."""
        current_nodes, ends = self._ends(at, self._worst(loads))
        return (self.overloaded(self.before[current_nodes]) & ~self.overloaded(ends)) | self.relieved(
            ends, current_nodes
        )

    def harms_nobody(self, at: Ints, loads: Floats) -> Mask:
        worst = self._worst(loads)
        current_nodes, ends = self._ends(at, worst)
        worse = ends >= self.before[current_nodes] + max(self._arrays.options.relief, TOLERANCE)
        newly = self.overloaded(ends) & ~self.overloaded(self.before[current_nodes])
        harmed: Mask = np.logical_or.reduce(worse | newly, axis=1)
        rows, pods = np.nonzero(at != self.start)
        there = worst[rows, at[rows, pods]]
        badly = self.overloaded(there) & ~self.relieved(there, self.start[pods])
        harmed[rows[badly]] = True
        unharmed: Mask = ~harmed & (self.overload(loads) <= self._overload + TOLERANCE)
        return unharmed

    def overload(self, loads: Floats) -> Floats:
        """For each placement: sum over nodes and axes of the share above 1 - headroom."""
        limit = 1 - self._arrays.options.headroom
        over: Floats = (self._shares(loads) - limit).clip(min=0.0).sum(axis=(0, 2))
        return over

    def overloaded(self, worst: Floats) -> Mask:
        over: Mask = worst > 1 - self._arrays.options.headroom + TOLERANCE
        return over

    def relieved(self, worst: Floats, current_nodes: Ints) -> Mask:
        """Clearly less than those nodes are loaded now."""
        clearly: Mask = worst <= self.before[current_nodes] - self._arrays.options.relief + TOLERANCE
        return clearly

    def _ends(self, at: Ints, worst: Floats) -> tuple[Ints, Floats]:
        """The current nodes of the unhappy pods, and the loads of the nodes that they end on."""
        return self.start[self.unhappy], np.take_along_axis(worst, at[:, self.unhappy], axis=1)

    def _worst(self, loads: Floats) -> Floats:
        worst: Floats = self._shares(loads).max(axis=0, initial=0.0)
        return worst

    def _shares(self, loads: Floats) -> Floats:
        return share_of_room(loads, self._arrays.allocatable[:, None, :])


def search_moves(prepared: PreparedProblem, check: HappinessCheck) -> Ints:
    """A placement in which the search has made as many unhappy pods happy as it can."""
    search = _AffectedSearch(prepared, check)
    for node in _by_unhappy_pods(check):
        search.relieve(node)
    search.take_back()
    return search.at


def _by_unhappy_pods(check: HappinessCheck) -> list[int]:
    """Nodes with unhappy pods, the one with most of them first."""
    nodes, number = np.unique(check.start[check.unhappy], return_counts=True)
    return [int(node) for node in nodes[np.argsort(-number, kind="stable")]]


class _AffectedSearch:
    def __init__(self, prepared: PreparedProblem, check: HappinessCheck) -> None:
        self._prepared, self._arrays, self._check = prepared, prepared.arrays, check
        self.at = check.start.copy()
        self._ledger, self._budget = Ledger(prepared.arrays, self.at), Budget(prepared.arrays)
        self._free = movable(prepared.arrays, Scope.CLUSTER) & (prepared.arrays.current != NOWHERE)
        self._tries = 0

    def relieve(self, node: int) -> None:
        """Ends: each round makes at least one more unhappy pod happy."""
        for _ in range(len(self._check.unhappy)):
            happy = self._happy()
            if happy[self._check.start[self._check.unhappy] == node].all():
                return
            self._tries = _MOST_TRIES
            attempts = (self._one_leaves(node), self._one_replaces_another(node), self._several_leave(node))
            if not any(self._improves(attempt, happy) for attempt in attempts):
                return

    def take_back(self) -> None:
        """Undo the moves that are not needed, those of happy pods first."""
        moved = np.flatnonzero(self.at != self._check.start)
        for pod in moved[np.argsort(self._arrays.unhappy[moved], kind="stable")].tolist():
            happy, there, current = self._happy(), int(self.at[pod]), int(self._arrays.current[pod])
            self._take(pod)
            if self._ledger.fits_on(pod, current):
                self._put(pod, current)
                if self._as_good(happy):
                    continue
                self._take(pod)
            self._put(pod, there)

    def _improves(self, attempt: Iterator[bool], happy: Mask) -> bool:
        """Try all variants of an attempt and keep the one that makes most pods happy, if that is more than now."""
        start = best = self.at.copy()
        most = int(happy.sum())
        for found in attempt:
            number = int(self._happy().sum()) if found else 0
            if number > most and self._as_good(happy):
                best, most = self.at.copy(), number
            self._return_to(start)
        self._return_to(best)
        return best is not start

    def _as_good(self, happy: Mask) -> bool:
        """Every pod that was happy still is, and no pod is harmed."""
        unharmed = self._check.harms_nobody(self.at[None], self._ledger.load[:, None, :])[0]
        return bool(unharmed and (self._happy() | ~happy).all())

    def _happy(self) -> Mask:
        happy: Mask = self._check.made_happy(self.at[None], self._ledger.load[:, None, :])[0]
        return happy

    def _one_leaves(self, node: int) -> Iterator[bool]:
        for pod in self._movable_pods_of(node):
            self._take(pod)
            yield self._find_node(pod, 0)

    def _one_replaces_another(self, node: int) -> Iterator[bool]:
        for pod in self._movable_pods_of(node):
            for other in self._pods_to_displace(pod):
                self._take(pod)
                yield self._displace(pod, other, _CHAIN)

    def _several_leave(self, node: int) -> Iterator[bool]:
        """The largest first, so that they are few."""
        pods = self._movable_pods_of(node)
        pods.sort(key=lambda pod: -float(self._arrays.peak[:, pod].max()))
        for pod in pods[:_MOST_LEAVE]:
            self._take(pod)
            if not self._find_node(pod, 0):
                self._put(pod, node)
        yield True

    def _find_node(self, pod: int, depth: int) -> bool:
        """Put a pod that has left its node: on a node that takes it, else on one that another pod leaves for it."""
        target = self._best_target(pod)
        if target is not None:
            self._put(pod, target)
            return True
        return depth > 0 and any(self._displace(pod, other, depth) for other in self._pods_to_displace(pod))

    def _displace(self, pod: int, other: int, depth: int) -> bool:
        node = int(self.at[other])
        self._take(other)
        if self._feasible(pod)[node]:
            self._put(pod, node)
            if self._find_node(other, depth - 1):
                return True
            self._take(pod)
        self._put(other, node)
        return False

    def _pods_to_displace(self, pod: int) -> Iterator[int]:
        """Pods on the nodes that would be least loaded with this one; smaller pods first."""
        allowed = self._prepared.candidates.of(pod)
        allowed[self._arrays.current[pod]] = False
        worst = self._ledger.shares_with(pod).max(axis=0, initial=0.0)
        for node in np.flatnonzero(allowed)[np.argsort(worst[allowed], kind="stable")][:_TARGETS].tolist():
            pods = self._movable_pods_of(node)
            pods.sort(key=lambda other: float(self._arrays.peak[:, other].max()))
            for other in pods:
                self._tries -= 1
                if self._tries < 0:
                    return
                yield other

    def _best_target(self, pod: int) -> int | None:
        """Where it is happy, within the headroom and without unhappy pods if possible, then by preference."""
        feasible = self._feasible(pod)
        if not feasible.any():
            return None
        worst, current = self._ledger.shares_with(pod).max(axis=0, initial=0.0), np.array(self._arrays.current[pod])
        roomy = ~self._check.overloaded(worst)
        happy = self._check.relieved(worst, current)
        if not self._arrays.unhappy[pod] or self._check.overloaded(self._check.before[current]):
            happy |= roomy
        quiet = np.ones(len(roomy), dtype=bool)
        unhappy = self.at[self._check.unhappy]
        quiet[unhappy[unhappy != NOWHERE]] = False
        worth = feasible * (1 + 4 * happy + 2 * roomy + quiet)
        costs = self._prepared.preferences.costs(pod, MatchedLoads(self._arrays, self.at))
        return int(np.where(worth == worth.max(), costs, np.inf).argmin())

    def _feasible(self, pod: int) -> Mask:
        """Other nodes that take it by all constraints and the budget, and where it is not worse off."""
        current = int(self._arrays.current[pod])
        feasible = self._prepared.candidates.of(pod) & self._ledger.fits(pod) & self._budget.may_enter()
        feasible[current] = False
        if not feasible.any() or not self._budget.may_leave(np.array([pod]))[0]:
            return np.zeros_like(feasible)
        worst = self._ledger.shares_with(pod).max(axis=0, initial=0.0)
        not_worse: Mask = ~self._check.overloaded(worst) | self._check.relieved(worst, np.array(current))
        return feasible & not_worse

    def _movable_pods_of(self, node: int) -> list[int]:
        """Pods of the node that may move and have not moved yet; unhappy pods first, then in rank order."""
        there = (self.at == node) & (self._check.start == node) & self._free
        ranked = self._prepared.ranking[there[self._prepared.ranking]]
        return [int(pod) for pod in ranked[np.argsort(~self._arrays.unhappy[ranked], kind="stable")]]

    def _return_to(self, at: Ints) -> None:
        changed = np.flatnonzero(self.at != at).tolist()
        for pod in changed:
            self._take(pod)
        for pod in changed:
            self._put(pod, int(at[pod]))

    def _take(self, pod: int) -> None:
        node = int(self.at[pod])
        if node != NOWHERE:
            self._budget.refund(pod, node)
            self._ledger.take(pod, node)
            self.at[pod] = NOWHERE

    def _put(self, pod: int, node: int) -> None:
        self._budget.spend(pod, node)
        self._ledger.put(pod, node)
        self.at[pod] = node
