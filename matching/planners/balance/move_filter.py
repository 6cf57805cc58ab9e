"""Which moves are allowed: fast for many pods at once, and a final check for each move."""

from __future__ import annotations

import numpy as np

from matching.array_types import NOWHERE, Floats, Ints, Mask
from matching.constraints import resources
from matching.model.arrays import Arrays
from matching.planners.balance.state import BalanceState
from matching.planning.budget import Budget
from matching.planning.prepared import PreparedProblem


class AllowedNodes:
    """The nodes that pods may use at all, by class of pods with equal rules."""

    def __init__(self, prepared: PreparedProblem) -> None:
        arrays, movable = prepared.arrays, np.flatnonzero(prepared.movable)
        self.of_pod = arrays.rule_class
        self.rows = np.zeros((len(arrays.all_rules), len(arrays.nodes)), dtype=bool)
        """(classes, nodes); does not say whether a pod may stay on its current node."""
        self._current_nodes = arrays.current[movable]
        kinds, firsts = np.unique(self.of_pod[movable], return_index=True)
        for kind, pod in zip(kinds.tolist(), movable[firsts].tolist(), strict=True):
            self.rows[kind] = prepared.candidates.of(pod)
            if arrays.current[pod] != NOWHERE:
                self.rows[kind, arrays.current[pod]] = True

    def counted(self) -> Mask:
        """Nodes that a movable pod may use or is on: the load of other nodes cannot change."""
        counted: Mask = np.logical_or.reduce(self.rows, axis=0)
        counted[self._current_nodes[self._current_nodes != NOWHERE]] = True
        return counted


class MoveFilter:
    def __init__(self, state: BalanceState, allowed_nodes: AllowedNodes) -> None:
        self._state, self._prepared, self._allowed = state, state.prepared, allowed_nodes
        self._current = state.prepared.arrays.current
        self._least = state.prepared.arrays.least_free
        self.budget = Budget(state.prepared.arrays)
        self._inter_pod = _with_inter_pod_rules(state.prepared.arrays)

    def possible(self, pods: Ints, targets: Ints) -> Mask:
        """(pods, targets), by all constraints but the budget; `targets` has a row per pod. `allows` is the final
        check."""
        ledger = self._state.ledger
        ok: Mask = self._allowed.rows[self._allowed.of_pod[pods][:, None], targets]
        ok &= resources.fits_pod_count(ledger.slots[targets])
        for free, least in zip(ledger.free, self._least[:, pods], strict=True):
            ok &= free[targets] >= least[:, None]
        ok &= targets != self._state.at[pods][:, None]
        for row in np.flatnonzero(self._inter_pod[pods]).tolist():
            ok[row] &= ledger.inter_pod.allows(int(pods[row]))[np.broadcast_to(targets, ok.shape)[row]]
        return ok

    def reachable(self, pods: Ints) -> Mask:
        """Nodes that at least one of them may use."""
        reachable: Mask = np.logical_or.reduce(self._allowed.rows[np.unique(self._allowed.of_pod[pods])], axis=0)
        return reachable

    def swappable(self, source: int, ours: Ints, theirs: Ints) -> Mask:
        """(ours, theirs): by node rules and requests each fits on the node of the other, with that one gone."""
        state, request, rows, kind = (
            self._state,
            self._prepared.arrays.request,
            self._allowed.rows,
            self._allowed.of_pod,
        )
        target = state.at[theirs]
        ok: Mask = rows[kind[ours][:, None], target] & rows[kind[theirs], source]
        for axis, free in enumerate(state.ledger.free):
            ok &= free[target] + request[axis, theirs] >= self._least[axis, ours][:, None]
            ok &= free[source] + request[axis, ours][:, None] >= self._least[axis, theirs]
        return ok

    def allows(self, pod: int, target: int) -> bool:
        """All constraints, also inter-pod ones, and the budget."""
        state, at = self._state, int(self._state.at[pod])
        if not self._prepared.candidates.of(pod)[target] or not state.ledger.fits_on(pod, target):
            return False
        if at == NOWHERE:
            return self.budget.allows(pod, target)
        self.budget.refund(pod, at)
        allowed = self.budget.allows(pod, target)
        self.budget.spend(pod, at)
        return allowed

    def swap(self, pod: int, partner: int) -> bool:
        """One pod moves after the other, so that each finds room at its turn. False, and nothing changed, if neither
        order works."""
        at = self._state.at
        source, target = int(at[pod]), int(at[partner])
        for first, there, second, back in ((pod, target, partner, source), (partner, source, pod, target)):
            if self.allows(first, there):
                self.move(first, there)
                if self.allows(second, back):
                    self.move(second, back)
                    return True
                self.move(first, back)
        return False

    def move(self, pod: int, target: int) -> None:
        at = int(self._state.at[pod])
        if at != NOWHERE:
            self.budget.refund(pod, at)
        self.budget.spend(pod, target)
        self._state.put(pod, target)

    def affordable(self, pods: Ints) -> Ints:
        """The pods that the budget allows to move; a pod that has moved already costs no further move."""
        if not self.budget.limited:
            return pods
        free_to_go: Mask = (self._current[pods] == NOWHERE) | (self._state.at[pods] != self._current[pods])
        return pods[free_to_go | self.budget.may_leave(pods)]

    def targets(self, pods: Ints, number: int) -> Ints:
        """(pods, targets): the nodes that each pod may use where load costs least, on all axes together and on each
        axis. All nodes when there are at most `2 * number`."""
        nodes = len(self._state.counted)
        if nodes <= 2 * number:
            return np.broadcast_to(np.arange(nodes), (len(pods), nodes))
        classes, index = np.unique(self._allowed.of_pod[pods], return_inverse=True)
        closed = ~(self._allowed.rows[classes] & resources.fits_pod_count(self._state.ledger.slots))
        cost: Floats = self._state.weights[:, None] * self._state.away * self._state.per
        axes = np.flatnonzero(self._state.weights)
        columns = [_least(np.where(closed, np.inf, cost.sum(axis=0)), number // 2)]
        columns += [_least(np.where(closed, np.inf, cost[axis]), max(1, number // 2 // len(axes))) for axis in axes]
        return np.concatenate(columns, axis=1)[index]


def _with_inter_pod_rules(arrays: Arrays) -> Mask:
    """Pods with inter-pod constraints, or selected by them: the few that are checked one by one."""
    rules = arrays.inter_pod
    if rules is None:
        return np.zeros(len(arrays.pods), dtype=bool)
    return rules.involved


def _least(costs: Floats, number: int) -> Ints:
    """Indices of the lowest values of each row, in any order."""
    lowest: Ints = np.argpartition(costs, number - 1, axis=1)[:, :number]
    return lowest
