"""The search of the scope `affected` on clusters of any size: one node with unhappy pods after the other.

For each such node the cheapest cure that is found is taken: one pod leaves (an unhappy one rather than a happy one), or
it takes the place of a pod that goes on to another node (a chain of at most three), or several leave until the node is
relieved. At last every move that turns out not to be needed is taken back. Every step keeps the budget and the hard
constraints at its turn; how much is tried is bounded.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from matching.array_types import NOWHERE, Floats, Ints, Mask
from matching.planning.arrays import Arrays, movable, share_of_room
from matching.planning.budget import Budget
from matching.planning.ledger import Ledger
from matching.planning.prepared import PreparedProblem
from matching.problem import TOLERANCE, Scope

_MOST_TRIES = 200
"""Pods that are taken away from their node to see whether another one fits then, for one node with unhappy pods."""

_CHAIN = 2

_MOST_LEAVE = 3

_TARGETS = 8


class HappinessCheck:
    def __init__(self, arrays: Arrays, start: Ints) -> None:
        """`start` is the placement to improve; in it every unhappy pod is at home."""
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
        """Of each placement: sum over nodes and axes of the share above 1 - headroom."""
        limit = 1 - self._arrays.options.headroom
        over: Floats = (self._shares(loads) - limit).clip(min=0.0).sum(axis=(0, 2))
        return over

    def overloaded(self, worst: Floats) -> Mask:
        over: Mask = worst > 1 - self._arrays.options.headroom + TOLERANCE
        return over

    def relieved(self, worst: Floats, current_nodes: Ints) -> Mask:
        """Clearly less than what those nodes are loaded with now."""
        clearly: Mask = worst <= self.before[current_nodes] - self._arrays.options.relief + TOLERANCE
        return clearly

    def _ends(self, at: Ints, worst: Floats) -> tuple[Ints, Floats]:
        """Of the unhappy pods: where they are now, and how loaded the node is that each ends on."""
        return self.start[self.unhappy], np.take_along_axis(worst, at[:, self.unhappy], axis=1)

    def _worst(self, loads: Floats) -> Floats:
        worst: Floats = self._shares(loads).max(axis=0, initial=0.0)
        return worst

    def _shares(self, loads: Floats) -> Floats:
        return share_of_room(loads, self._arrays.allocatable[:, None, :])


def search_moves(prepared: PreparedProblem, check: HappinessCheck) -> Ints:
    """A placement in which as many unhappy pods are happy as the search finds ways for."""
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
        while True:
            happy = self._happy()
            if happy[self._check.start[self._check.unhappy] == node].all():
                return
            self._tries = _MOST_TRIES
            attempts = (self._one_leaves(node), self._one_replaces_another(node), self._several_leave(node))
            if not any(self._improves(attempt, happy) for attempt in attempts):
                return

    def take_back(self) -> None:
        """Happy pods first: theirs were the moves that nobody asked for."""
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
        """Go through the cases of a way and take the one that makes most pods happy, if that is more than now."""
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
        """Everybody who was happy is, and nobody pays for it."""
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
        """A place for a pod that has left its node: one that takes it, else one that somebody else leaves for it."""
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
        """Pods on the nodes that would be the least loaded with this one; smaller pods first."""
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
        """Where it is happy, within the headroom and beside no unhappy pod if that can be, then by its own taste."""
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
        distances = self._prepared.preferences.distances_of(np.array([pod]))[0]
        return int(np.where(worth == worth.max(), distances, np.inf).argmin())

    def _feasible(self, pod: int) -> Mask:
        """Other nodes that take it by all rules and the budget, and that it would not be worse off on."""
        current = int(self._arrays.current[pod])
        feasible = self._prepared.candidates.of(pod) & self._ledger.fits(pod) & self._budget.may_enter()
        feasible[current] = False
        if not feasible.any() or not self._budget.may_leave(np.array([pod]))[0]:
            return np.zeros_like(feasible)
        worst = self._ledger.shares_with(pod).max(axis=0, initial=0.0)
        well: Mask = ~self._check.overloaded(worst) | self._check.relieved(worst, np.array(current))
        return feasible & well

    def _movable_pods_of(self, node: int) -> list[int]:
        """Who may leave it and has not come by a move; unhappy pods first, then in rank order."""
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
