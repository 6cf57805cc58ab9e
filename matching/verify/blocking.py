"""Blocking pairs, counted from the definition: the pod prefers the node, fits there and may run there.

Pods are checked in rank order, so that the pods that rank above one are a running sum. Runs of happy pods without soft
constraints that are not spread are counted by a compiled loop where numba is loaded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from matching.compiled.loading import kernels
from matching.problem import Problem
from matching.verify.fit import AllowedNodes, Room
from matching.verify.placement import NO_NODE, Ints, Placement
from matching.verify.pod_rules_by_node import PodRulesByNode
from matching.verify.preferences import Preferences

_CELLS = 1 << 18
"""Pods times nodes that are looked at together."""
_FEW = 4
"""Pods for which work on arrays does not pay."""


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
        """Rooms only shrink from turn to turn, so most pods are ruled out by what the nodes have before the first."""
        size = max(1, _CELLS // len(self._placement.nodes))
        for start in range(rows.start, rows.stop, size):
            block = range(start, min(start + size, rows.stop))
            done = block.start
            for row in self._may_block(block):
                self._advance(range(done, row))
                self._count(row)
                done = row
            self._advance(range(done, block.stop))

    def _may_block(self, rows: range) -> list[int]:
        if len(rows) == 1:
            return [rows.start]
        some = self._preferences.not_content(rows)
        possible = self._preferences.may_prefer(some)
        some, possible = some[possible.any(axis=1)], possible[possible.any(axis=1)]
        found: list[int] = some[(possible & self._room.fits_each(some)).any(axis=1)].tolist()
        return found

    def _advance(self, rows: range) -> None:
        """Those pods go to their ends."""
        for each in (self._preferences, self._room, self.pod_rules):
            if len(rows) > _FEW:
                each.advance_all(rows)
            else:
                for row in rows:
                    each.advance(row)

    def _count(self, row: int) -> None:
        blocks = self._preferences.preferred(row) & self._room.fits(row)
        if blocks.any():
            blocks &= self._allowed.by_node(row)
            if self.pod_rules.involved[row] and blocks.any():
                blocks &= self.pod_rules.allowed(row)
            self._add(row, np.flatnonzero(blocks))

    def count_runs(self) -> None:
        """A run ends with a pod that rules between pods are about, or before one that is checked in numpy."""
        from matching.verify.compiled import CompiledCounter

        number = len(self._placement.pods)
        in_numpy = self._placement.unhappy | self._preferences.soft.any | self._preferences.replicas.any
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
