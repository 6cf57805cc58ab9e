"""The search of the scope `affected` on clusters of any size: one node with unhappy pods after the other.

For each such node the cheapest cure that is found is taken: one pod leaves (an unhappy one rather than a happy one), or
it takes the place of a pod that goes on to another node (a chain of at most three), or several leave until the node is
relieved. At last every move that turns out not to be needed is taken back. Every step keeps the budget and the hard
constraints at its turn; how much is tried is bounded.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from matching.arrays import NOWHERE, Ints, Mask, movable
from matching.case import Case
from matching.ledger import Ledger
from matching.planners.budget import Budget
from matching.planners.wellbeing import Wellbeing
from matching.problem import Scope

_MOST_TRIES = 200
"""Pods that are taken away from their node to see whether another one fits then, for one node with unhappy pods."""
_CHAIN = 2
_MOST_LEAVE = 3
_TARGETS = 8


def make_room(case: Case, wellbeing: Wellbeing) -> Ints:
    """A placement in which as many unhappy pods are happy as the search finds ways for."""
    search = _Search(case, wellbeing)
    for node in _by_need(wellbeing):
        search.cure(node)
    search.take_back()
    return search.at


def _by_need(wellbeing: Wellbeing) -> list[int]:
    """Nodes with unhappy pods, the one with most of them first."""
    nodes, number = np.unique(wellbeing.start[wellbeing.unhappy], return_counts=True)
    return [int(node) for node in nodes[np.argsort(-number, kind="stable")]]


class _Search:
    def __init__(self, case: Case, wellbeing: Wellbeing) -> None:
        self._case, self._arrays, self._wellbeing = case, case.arrays, wellbeing
        self.at = wellbeing.start.copy()
        self._ledger, self._budget = Ledger(case.arrays, self.at), Budget(case.arrays)
        self._free = movable(case.arrays, Scope.CLUSTER) & (case.arrays.home != NOWHERE)
        self._tries = 0

    def cure(self, node: int) -> None:
        while True:
            happy = self._happy()
            if happy[self._wellbeing.start[self._wellbeing.unhappy] == node].all():
                return
            self._tries = _MOST_TRIES
            ways = (self._one_leaves(node), self._one_takes_a_place(node), self._several_leave(node))
            if not any(self._gains(way, happy) for way in ways):
                return

    def take_back(self) -> None:
        """Happy pods first: theirs were the moves that nobody asked for."""
        moved = np.flatnonzero(self.at != self._wellbeing.start)
        for pod in moved[np.argsort(self._arrays.unhappy[moved], kind="stable")].tolist():
            happy, there, home = self._happy(), int(self.at[pod]), int(self._arrays.home[pod])
            self._leave(pod)
            if self._ledger.fits_on(pod, home):
                self._go(pod, home)
                if self._as_good(happy):
                    continue
                self._leave(pod)
            self._go(pod, there)

    def _gains(self, way: Iterator[bool], happy: Mask) -> bool:
        """Go through the cases of a way and take the one that makes most pods happy, if that is more than now."""
        start = best = self.at.copy()
        most = int(happy.sum())
        for found in way:
            number = int(self._happy().sum()) if found else 0
            if number > most and self._as_good(happy):
                best, most = self.at.copy(), number
            self._return_to(start)
        self._return_to(best)
        return best is not start

    def _as_good(self, happy: Mask) -> bool:
        """Everybody who was happy is, and nobody pays for it."""
        unharmed = self._wellbeing.at_nobodys_expense(self.at[None], self._ledger.load[:, None, :])[0]
        return bool(unharmed and (self._happy() | ~happy).all())

    def _happy(self) -> Mask:
        happy: Mask = self._wellbeing.made_happy(self.at[None], self._ledger.load[:, None, :])[0]
        return happy

    def _one_leaves(self, node: int) -> Iterator[bool]:
        for pod in self._residents(node):
            self._leave(pod)
            yield self._settle(pod, 0)

    def _one_takes_a_place(self, node: int) -> Iterator[bool]:
        for pod in self._residents(node):
            for other in self._in_the_way(pod):
                self._leave(pod)
                yield self._displace(pod, other, _CHAIN)

    def _several_leave(self, node: int) -> Iterator[bool]:
        """The largest first, so that they are few."""
        pods = self._residents(node)
        pods.sort(key=lambda pod: -float(self._arrays.peak[:, pod].max()))
        for pod in pods[:_MOST_LEAVE]:
            self._leave(pod)
            if not self._settle(pod, 0):
                self._go(pod, node)
        yield True

    def _settle(self, pod: int, depth: int) -> bool:
        """A place for a pod that has left its node: one that takes it, else one that somebody else leaves for it."""
        target = self._best_target(pod)
        if target is not None:
            self._go(pod, target)
            return True
        return depth > 0 and any(self._displace(pod, other, depth) for other in self._in_the_way(pod))

    def _displace(self, pod: int, other: int, depth: int) -> bool:
        node = int(self.at[other])
        self._leave(other)
        if self._welcome(pod)[node]:
            self._go(pod, node)
            if self._settle(other, depth - 1):
                return True
            self._leave(pod)
        self._go(other, node)
        return False

    def _in_the_way(self, pod: int) -> Iterator[int]:
        """Pods on the nodes that would be the least loaded with this one; smaller pods first."""
        allowed = self._case.candidates.of(pod)
        allowed[self._arrays.home[pod]] = False
        worst = self._ledger.shares_with(pod).max(axis=0, initial=0.0)
        for node in np.flatnonzero(allowed)[np.argsort(worst[allowed], kind="stable")][:_TARGETS].tolist():
            pods = self._residents(node)
            pods.sort(key=lambda other: float(self._arrays.peak[:, other].max()))
            for other in pods:
                self._tries -= 1
                if self._tries < 0:
                    return
                yield other

    def _best_target(self, pod: int) -> int | None:
        """Where it is happy, within the headroom and beside no unhappy pod if that can be, then by its own taste."""
        welcome = self._welcome(pod)
        if not welcome.any():
            return None
        worst, home = self._ledger.shares_with(pod).max(axis=0, initial=0.0), np.array(self._arrays.home[pod])
        roomy = ~self._wellbeing.overloaded(worst)
        happy = self._wellbeing.relieved(worst, home)
        if not self._arrays.unhappy[pod] or self._wellbeing.overloaded(self._wellbeing.before[home]):
            happy |= roomy
        quiet = np.ones(len(roomy), dtype=bool)
        unhappy = self.at[self._wellbeing.unhappy]
        quiet[unhappy[unhappy != NOWHERE]] = False
        worth = welcome * (1 + 4 * happy + 2 * roomy + quiet)
        distances = self._case.preferences.distances_of(np.array([pod]))[0]
        return int(np.where(worth == worth.max(), distances, np.inf).argmin())

    def _welcome(self, pod: int) -> Mask:
        """Other nodes that take it by all rules and the budget, and that it would not be worse off on."""
        home = int(self._arrays.home[pod])
        welcome = self._case.candidates.of(pod) & self._ledger.fits(pod) & self._budget.may_enter()
        welcome[home] = False
        if not welcome.any() or not self._budget.may_leave(np.array([pod]))[0]:
            return np.zeros_like(welcome)
        worst = self._ledger.shares_with(pod).max(axis=0, initial=0.0)
        well: Mask = ~self._wellbeing.overloaded(worst) | self._wellbeing.relieved(worst, np.array(home))
        return welcome & well

    def _residents(self, node: int) -> list[int]:
        """Who may leave it and has not come by a move; unhappy pods first, then in rank order."""
        there = (self.at == node) & (self._wellbeing.start == node) & self._free
        ranked = self._case.ranking[there[self._case.ranking]]
        return [int(pod) for pod in ranked[np.argsort(~self._arrays.unhappy[ranked], kind="stable")]]

    def _return_to(self, at: Ints) -> None:
        changed = np.flatnonzero(self.at != at).tolist()
        for pod in changed:
            self._leave(pod)
        for pod in changed:
            self._go(pod, int(at[pod]))

    def _leave(self, pod: int) -> None:
        node = int(self.at[pod])
        if node != NOWHERE:
            self._budget.refund(pod, node)
            self._ledger.take(pod, node)
            self.at[pod] = NOWHERE

    def _go(self, pod: int, node: int) -> None:
        self._budget.spend(pod, node)
        self._ledger.put(pod, node)
        self.at[pod] = node
