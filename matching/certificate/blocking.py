"""Blocking pairs, counted from the definitions: whoever prefers a node, would fit there and may go there.

The pods are asked in rank order, so that what ranks above one is a running sum. Runs of pods that are neither unhappy
nor have soft wishes are counted by a compiled loop where there is one (`quick`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from matching.certificate.beside import Beside
from matching.certificate.lookalikes import Lookalikes
from matching.certificate.quick import Quick
from matching.certificate.room import Room
from matching.certificate.rules import may_come, may_stay
from matching.certificate.view import NOWHERE, Flags, Ints, View
from matching.certificate.wishes import Wishes
from matching.compilation import kernels
from matching.problem import Problem


@dataclass(frozen=True, slots=True)
class Blocking:
    count: int
    first: tuple[tuple[str, str, bool], ...]
    """(pod, node) by node, then rank. True: rules between pods are about that pod."""


def blocking_pairs(problem: Problem, ends: Mapping[str, str | None], most: int) -> Blocking:
    """All are counted, at most so many named. `ends` has the node that each pod ends on, or None."""
    if not problem.nodes or not problem.pods:
        return Blocking(0, ())
    view = View(problem, ends)
    asked = _Asked(view, ends, most)
    if kernels(len(view.pods), len(view.nodes)) is None:
        asked.one_by_one(range(len(view.pods)))
    else:
        asked.run_by_run()
    named = [(row, node) for node, rows in enumerate(asked.named) for row in rows.tolist() if row != NOWHERE][:most]
    first = tuple((view.pods[row].key, view.nodes[node].name, bool(asked.beside.concerned[row])) for row, node in named)
    return Blocking(int(asked.counts.sum()), first)


class _Asked:
    """What has been found so far, and how things are at the turn of the next pod."""

    def __init__(self, view: View, ends: Mapping[str, str | None], most: int) -> None:
        self._view, self._most = view, most
        self._wishes, self._room, self._allowed = Wishes(view), Room(view), Allowed(view)
        self.beside = Beside(view, ends)
        self.counts: Ints = np.zeros(len(view.nodes), dtype=int)
        """Of the pairs of each node."""
        self.named: Ints = np.full((len(view.nodes), most), NOWHERE)
        """By node the first pods that block it."""

    def one_by_one(self, rows: range) -> None:
        for row in rows:
            blocks = self._wishes.better(row) & self._room.fits(row)
            if blocks.any():
                blocks &= self._allowed.on(row)
                if self.beside.concerned[row] and blocks.any():
                    blocks &= self.beside.fits(row)
                self._note(row, np.flatnonzero(blocks))
            for each in (self._wishes, self._room, self.beside):
                each.passes(row)

    def run_by_run(self) -> None:
        """A run ends with a pod that rules between pods are about, or before one that is asked in numpy."""
        number = len(self._view.pods)
        in_numpy = self._view.unhappy | self._wishes.missed.any
        quick = Quick(self._view, self._wishes, self._room, self._allowed)
        begin = 0
        for row in [*np.flatnonzero(in_numpy | self.beside.concerned).tolist(), number]:
            alone = row == number or in_numpy[row]
            stop, among = (row, None) if alone else (row + 1, self.beside.fits(row))
            if stop > begin:
                quick.count(range(begin, stop), among, self.counts, self.named)
            if among is not None:
                self.beside.passes(row)
            elif row < number:
                self.one_by_one(range(row, row + 1))
            begin = row + 1

    def _note(self, row: int, nodes: Ints) -> None:
        for node in nodes[self.counts[nodes] < self._most].tolist():
            self.named[node, self.counts[node]] = row
        self.counts[nodes] += 1


class Allowed:
    """What a pod's own rules and fresh metrics say, once for all pods with the same rules."""

    def __init__(self, view: View) -> None:
        self._view, self._nodes = view, Lookalikes(view.nodes)
        self.measured: Flags = np.array([node.measured for node in view.nodes], dtype=bool)
        kinds: dict[int, int] = {}
        self.kind: Ints = np.array([kinds.setdefault(id(pod.rules), len(kinds)) for pod in view.pods], dtype=int)
        """By row: pods that share one value of rules."""
        self._firsts = np.unique(self.kind, return_index=True)[1]
        self._come: dict[int, Flags] = {}

    def come(self, kind: int) -> Flags:
        """By node: whether those rules let a pod come."""
        found = self._come.get(kind)
        if found is None:
            rules = self._view.pods[int(self._firsts[kind])].rules
            found = self._come[kind] = self._nodes.ask(rules, may_come)
        return found

    def all_come(self) -> Flags:
        """By kind and node."""
        return np.array([self.come(kind) for kind in range(len(self._firsts))], dtype=bool)

    def at_home(self, row: int) -> bool:
        return may_stay(self._view.pods[row].rules, self._view.nodes[self._view.home[row]])

    def on(self, row: int) -> Flags:
        """By node. No running pod goes to a node without fresh metrics, but it may stay on one."""
        home = self._view.home[row]
        if home == NOWHERE:
            return self.come(int(self.kind[row]))
        allowed = self.come(int(self.kind[row])) & self.measured
        allowed[home] = self.at_home(row)
        return allowed
