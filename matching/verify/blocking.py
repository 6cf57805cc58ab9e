"""Blocking pairs, counted from the definition: the pod prefers the node, fits there and may run there.

Pods are checked in rank order, so that the pods that rank above one are a running sum. Runs of happy pods without soft
constraints are counted by a compiled loop where numba is loaded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from matching.compiled.loading import kernels
from matching.problem import Problem
from matching.verify.node_rules import NodeGroups, may_come, may_stay
from matching.verify.placement import NO_NODE, TOLERANCE, Flags, Ints, Matrix, Placement
from matching.verify.pod_rules_by_node import PodRulesByNode
from matching.verify.preferences import Preferences


@dataclass(frozen=True, slots=True)
class Blocking:
    count: int
    first: tuple[tuple[str, str, bool], ...]
    """(pod, node) by node, then rank. True: the pod has a rule between pods, or one selects it."""


def blocking_pairs(problem: Problem, ends: Mapping[str, str | None], most: int) -> Blocking:
    """Counts all and names at most so many. `ends` has the node that each pod ends on, or None."""
    if not problem.nodes or not problem.pods:
        return Blocking(0, ())
    placement = Placement(problem, ends)
    counter = _Counter(placement, ends, most)
    if kernels(len(placement.pods), len(placement.nodes)) is None:
        counter.count_each(range(len(placement.pods)))
    else:
        counter.count_runs()
    named = [(row, node) for node, rows in enumerate(counter.named) for row in rows.tolist() if row != NO_NODE][:most]
    involved = counter.pod_rules.involved
    first = tuple((placement.pods[row].key, placement.nodes[node].name, bool(involved[row])) for row, node in named)
    return Blocking(int(counter.counts.sum()), first)


class _Counter:
    """The pairs found so far, and the state at the turn of the next pod."""

    def __init__(self, placement: Placement, ends: Mapping[str, str | None], most: int) -> None:
        self._placement, self._most = placement, most
        self._preferences, self._room, self._allowed = Preferences(placement), Room(placement), AllowedNodes(placement)
        self.pod_rules = PodRulesByNode(placement, ends)
        self.counts: Ints = np.zeros(len(placement.nodes), dtype=int)
        """By node."""
        self.named: Ints = np.full((len(placement.nodes), most), NO_NODE)
        """By node the first pods that block with it."""

    def count_each(self, rows: range) -> None:
        for row in rows:
            blocks = self._preferences.preferred(row) & self._room.fits(row)
            if blocks.any():
                blocks &= self._allowed.by_node(row)
                if self.pod_rules.involved[row] and blocks.any():
                    blocks &= self.pod_rules.allowed(row)
                self._add(row, np.flatnonzero(blocks))
            for each in (self._preferences, self._room, self.pod_rules):
                each.advance(row)

    def count_runs(self) -> None:
        """A run ends with a pod that rules between pods are about, or before one that is checked in numpy."""
        from matching.verify.compiled import CompiledCounter

        number = len(self._placement.pods)
        in_numpy = self._placement.unhappy | self._preferences.soft.any
        compiled = CompiledCounter(self._placement, self._preferences, self._room, self._allowed)
        begin = 0
        for row in [*np.flatnonzero(in_numpy | self.pod_rules.involved).tolist(), number]:
            separate = row == number or in_numpy[row]
            stop, allowed = (row, None) if separate else (row + 1, self.pod_rules.allowed(row))
            if stop > begin:
                compiled.count(range(begin, stop), allowed, self.counts, self.named)
            if allowed is not None:
                self.pod_rules.advance(row)
            elif row < number:
                self.count_each(range(row, row + 1))
            begin = row + 1

    def _add(self, row: int, nodes: Ints) -> None:
        for node in nodes[self.counts[nodes] < self._most].tolist():
            self.named[node, self.counts[node]] = row
        self.counts[nodes] += 1


class Room:
    """What is left by axis and node at a pod's turn, tolerance included: without what cannot move and the pods above it
    that end there. Requests may take all of it, peaks have to stay below."""

    def __init__(self, placement: Placement) -> None:
        self._placement = placement
        quota = placement.allocatable * (1 - placement.options.headroom)
        self.by_request: Matrix = np.ascontiguousarray((placement.allocatable + TOLERANCE - placement.fixed_request).T)
        self.by_peak: Matrix = np.ascontiguousarray((quota - TOLERANCE - placement.fixed_peak).T)
        self.without_headroom: Matrix = np.ascontiguousarray(
            (placement.allocatable - TOLERANCE - placement.fixed_peak).T
        )
        self.slots = np.array([node.max_pods for node in placement.nodes], dtype=int) - placement.fixed_count

    def fits(self, row: int) -> Flags:
        """By node. With inertia, a happy pod needs no headroom on its current node."""
        placement = self._placement
        need, peak = placement.request[row], placement.peak[row]
        fits: Flags = self.slots >= 1
        current = placement.current[row]
        needs_no_headroom = current != NO_NODE and placement.moves_cost and not placement.unhappy[row]
        fits_current = bool(fits[current]) and all(need[need > 0] <= self.by_request[need > 0, current])
        for axis in range(len(need)):
            if need[axis] > 0:
                fits &= need[axis] <= self.by_request[axis]
            if peak[axis] > 0:
                fits &= peak[axis] < self.by_peak[axis]
        if needs_no_headroom:
            fits[current] = fits_current and all(peak[peak > 0] < self.without_headroom[peak > 0, current])
        return fits

    def advance(self, row: int) -> None:
        """The pod goes to its end; the next one is checked."""
        end = self._placement.end[row]
        if end != NO_NODE:
            self.by_request[:, end] -= self._placement.request[row]
            self.by_peak[:, end] -= self._placement.peak[row]
            self.without_headroom[:, end] -= self._placement.peak[row]
            self.slots[end] -= 1


class AllowedNodes:
    """Where a pod's own rules and fresh metrics let it run, evaluated once for all pods with the same rules."""

    def __init__(self, placement: Placement) -> None:
        self._placement, self._groups = placement, NodeGroups(placement.nodes)
        self.measured: Flags = np.array([node.measured for node in placement.nodes], dtype=bool)
        kinds: dict[int, int] = {}
        self.kind: Ints = np.array([kinds.setdefault(id(pod.rules), len(kinds)) for pod in placement.pods], dtype=int)
        """By row: pods that share one value of rules."""
        self._first_rows = np.unique(self.kind, return_index=True)[1]
        self._may_come: dict[int, Flags] = {}

    def may_come(self, kind: int) -> Flags:
        """By node: whether those rules let a pod come."""
        found = self._may_come.get(kind)
        if found is None:
            rules = self._placement.pods[int(self._first_rows[kind])].rules
            found = self._may_come[kind] = self._groups.evaluate(rules, may_come)
        return found

    def all_may_come(self) -> Flags:
        """By kind and node."""
        return np.array([self.may_come(kind) for kind in range(len(self._first_rows))], dtype=bool)

    def may_stay(self, row: int) -> bool:
        return may_stay(self._placement.pods[row].rules, self._placement.nodes[self._placement.current[row]])

    def by_node(self, row: int) -> Flags:
        """No running pod goes to a node without fresh metrics, but it may stay on one."""
        current = self._placement.current[row]
        if current == NO_NODE:
            return self.may_come(int(self.kind[row]))
        allowed = self.may_come(int(self.kind[row])) & self.measured
        allowed[current] = self.may_stay(row)
        return allowed
