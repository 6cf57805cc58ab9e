"""Blocking pairs, counted from the definitions: whoever prefers a node, would fit there and may go there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from matching.certificate.crowd import Crowd
from matching.certificate.neighbours import Neighbourhood
from matching.certificate.room import Room
from matching.certificate.rules import may_come, may_stay
from matching.certificate.view import NOWHERE, Flags, Ints, View
from matching.certificate.wishes import Wishes
from matching.problem import Problem, Rules

_CELLS = 1 << 18


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
    wishes, room, allowed, beside = Wishes(view), Room(view), _Allowed(view), _Beside(view, ends)
    count, first = 0, np.empty(0, dtype=int)
    size = max(1, _CELLS // len(view.nodes))
    for start in range(0, len(view.pods), size):
        block = np.arange(start, min(start + size, len(view.pods)))
        places, nodes = np.nonzero(wishes.better(block))
        rows = block[places]
        for test in (allowed.measured, room.fits, allowed.by_rules, beside.fits):
            passed = test(rows, nodes)
            rows, nodes = rows[passed], nodes[passed]
        count += len(rows)
        first = np.sort(np.concatenate([first, nodes * len(view.pods) + rows]))[:most]
    pairs = [(key % len(view.pods), view.nodes[key // len(view.pods)].name) for key in first.tolist()]
    return Blocking(count, tuple((view.pods[row].key, node, bool(beside.concerned[row])) for row, node in pairs))


class _Allowed:
    """Rules are asked last, only for the pods that are left, and once for all that are alike."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._measured = np.array([node.measured for node in view.nodes], dtype=bool)
        self._kind = np.full(len(view.pods), -1)
        self._kinds: dict[Rules, int] = {}
        self._come: list[list[bool]] = []
        self._stay: list[list[bool]] = []

    def measured(self, rows: Ints, nodes: Ints) -> Flags:
        """No running pod goes to a node without fresh metrics."""
        home = self._view.home[rows]
        allowed: Flags = (home == NOWHERE) | (home == nodes) | self._measured[nodes]
        return allowed

    def by_rules(self, rows: Ints, nodes: Ints) -> Flags:
        if not len(rows):
            return np.zeros(0, dtype=bool)
        for row in np.unique(rows[self._kind[rows] < 0]).tolist():
            self._kind[row] = self._kind_of(self._view.pods[row].rules)
        kinds, at_home = self._kind[rows], self._view.home[rows] == nodes
        allowed: Flags = np.where(at_home, np.array(self._stay)[kinds, nodes], np.array(self._come)[kinds, nodes])
        return allowed

    def _kind_of(self, rules: Rules) -> int:
        if rules not in self._kinds:
            self._kinds[rules] = len(self._kinds)
            self._come.append([may_come(rules, node) for node in self._view.nodes])
            self._stay.append([may_stay(rules, node) for node in self._view.nodes])
        return self._kinds[rules]


class _Beside:
    """Whether rules between pods would let a pod join a node once the movable pods that rank below it are gone."""

    def __init__(self, view: View, ends: Mapping[str, str | None]) -> None:
        self._view = view
        crowd = Crowd(view.problem, ends)
        self._neighbourhood = Neighbourhood(crowd)
        self.concerned: Flags = np.array([pod.key in crowd.looks for pod in view.pods], dtype=bool)

    def fits(self, rows: Ints, nodes: Ints) -> Flags:
        fits: Flags = np.ones(len(rows), dtype=bool)
        for at in np.flatnonzero(self.concerned[rows]).tolist():
            row, node = int(rows[at]), int(nodes[at])
            there = np.flatnonzero(self._view.end == node)
            below = [self._view.pods[other].key for other in there[there > row].tolist()]
            fits[at] = self._neighbourhood.fits_beside(self._view.pods[row].key, self._view.nodes[node], below)
        return fits
