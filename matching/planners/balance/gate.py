"""Which changes of the board are allowed: rules and requests for many pods at once, the last word pair by pair."""

from __future__ import annotations

import numpy as np

from matching.arrays import NOWHERE, Arrays, Floats, Ints, Mask
from matching.case import Case
from matching.constraints import pod_count
from matching.constraints.classes import rule_classes
from matching.planners.balance.board import Board
from matching.planners.budget import Budget


class Reach:
    """Where pods may be sent at all, by class of pods with equal rules."""

    def __init__(self, case: Case) -> None:
        arrays, movable = case.arrays, np.flatnonzero(case.movable)
        self.of_pod, every = rule_classes(arrays.pods)
        self.rows = np.zeros((len(every), len(arrays.nodes)), dtype=bool)
        """(classes, nodes); whether a pod may stay at home is not in it."""
        self._homes = arrays.home[movable]
        kinds, firsts = np.unique(self.of_pod[movable], return_index=True)
        for kind, pod in zip(kinds.tolist(), movable[firsts].tolist(), strict=True):
            self.rows[kind] = case.candidates.of(pod)
            if arrays.home[pod] != NOWHERE:
                self.rows[kind, arrays.home[pod]] = True

    def counted(self) -> Mask:
        """Nodes that some movable pod may use or leave: where nobody can be moved to, nothing is out of balance."""
        counted: Mask = np.logical_or.reduce(self.rows, axis=0)
        counted[self._homes[self._homes != NOWHERE]] = True
        return counted


class Gate:
    def __init__(self, board: Board, reach: Reach) -> None:
        self._board, self._case, self._reach = board, board.case, reach
        self._home = board.case.arrays.home
        self._least = board.case.arrays.least_free
        self.budget = Budget(board.case.arrays)
        self._minding = _minding_others(board.case.arrays)

    def possible(self, pods: Ints, targets: Ints) -> Mask:
        """(pods, targets), by all rules but the budget; `targets` has a row per pod. `lets` has the last word."""
        ledger = self._board.ledger
        ok: Mask = self._reach.rows[self._reach.of_pod[pods][:, None], targets] & pod_count.fits(ledger.slots[targets])
        for free, least in zip(ledger.free, self._least[:, pods], strict=True):
            ok &= free[targets] >= least[:, None]
        ok &= targets != self._board.at[pods][:, None]
        for row in np.flatnonzero(self._minding[pods]).tolist():
            ok[row] &= ledger.between.allows(int(pods[row]))[np.broadcast_to(targets, ok.shape)[row]]
        return ok

    def reachable(self, pods: Ints) -> Mask:
        """Nodes that at least one of them may use."""
        reachable: Mask = np.logical_or.reduce(self._reach.rows[np.unique(self._reach.of_pod[pods])], axis=0)
        return reachable

    def swappable(self, source: int, ours: Ints, theirs: Ints) -> Mask:
        """(ours, theirs): by rules and requests each fits where the other one is, with that one gone."""
        board, request, rows, kind = self._board, self._case.arrays.request, self._reach.rows, self._reach.of_pod
        target = board.at[theirs]
        ok: Mask = rows[kind[ours][:, None], target] & rows[kind[theirs], source]
        for axis, free in enumerate(board.ledger.free):
            ok &= free[target] + request[axis, theirs] >= self._least[axis, ours][:, None]
            ok &= free[source] + request[axis, ours][:, None] >= self._least[axis, theirs]
        return ok

    def lets(self, pod: int, target: int) -> bool:
        """All rules, also those between pods, and the budget."""
        board, at = self._board, int(self._board.at[pod])
        if not self._case.candidates.of(pod)[target] or not board.ledger.fits_on(pod, target):
            return False
        if at == NOWHERE:
            return self.budget.allows(pod, target)
        self.budget.refund(pod, at)
        allowed = self.budget.allows(pod, target)
        self.budget.spend(pod, at)
        return allowed

    def swap(self, pod: int, partner: int) -> bool:
        """One goes after the other, so that each finds room at its turn; False, and nothing done, if neither order
        does."""
        at = self._board.at
        source, target = int(at[pod]), int(at[partner])
        for first, there, second, back in ((pod, target, partner, source), (partner, source, pod, target)):
            if self.lets(first, there):
                self.go(first, there)
                if self.lets(second, back):
                    self.go(second, back)
                    return True
                self.go(first, back)
        return False

    def go(self, pod: int, target: int) -> None:
        at = int(self._board.at[pod])
        if at != NOWHERE:
            self.budget.refund(pod, at)
        self.budget.spend(pod, target)
        self._board.put(pod, target)

    def affordable(self, pods: Ints) -> Ints:
        """Those the budget still has a move for; a pod that has moved already costs no further one."""
        if not self.budget.limited:
            return pods
        free_to_go: Mask = (self._home[pods] == NOWHERE) | (self._board.at[pods] != self._home[pods])
        return pods[free_to_go | self.budget.may_leave(pods)]

    def targets(self, pods: Ints, number: int) -> Ints:
        """(pods, targets): the nodes that each may use where load costs least, on all axes together and on each axis.
        All nodes when there are at most twice as many."""
        nodes = len(self._board.counted)
        if nodes <= 2 * number:
            return np.broadcast_to(np.arange(nodes), (len(pods), nodes))
        kinds, place = np.unique(self._reach.of_pod[pods], return_inverse=True)
        closed = ~(self._reach.rows[kinds] & pod_count.fits(self._board.ledger.slots))
        cost: Floats = self._board.weights[:, None] * self._board.away * self._board.per
        axes = np.flatnonzero(self._board.weights)
        columns = [_least(np.where(closed, np.inf, cost.sum(axis=0)), number // 2)]
        columns += [_least(np.where(closed, np.inf, cost[axis]), max(1, number // 2 // len(axes))) for axis in axes]
        return np.concatenate(columns, axis=1)[place]


def _minding_others(arrays: Arrays) -> Mask:
    """Pods with rules about other pods, theirs or others' about them: the few that are asked for one by one."""
    rules = arrays.neighbours
    if rules is None:
        return np.zeros(len(arrays.pods), dtype=bool)
    return rules.involved


def _least(costs: Floats, number: int) -> Ints:
    """Places of the lowest of each row, in any order."""
    places: Ints = np.argpartition(costs, number - 1, axis=1)[:, :number]
    return places
