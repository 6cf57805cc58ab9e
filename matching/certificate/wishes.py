"""Which nodes a pod strictly prefers to what it has in the end: by group, then distance, then name.

Who has no node, or ends on its own and may not stay there, prefers any other. Pods are asked in rank order; each sees
those that rank above it where they end and all others where they were.
"""

from __future__ import annotations

import numpy as np

from matching.certificate.rules import may_stay
from matching.certificate.soft import Missed
from matching.certificate.view import NOWHERE, SAME, Flags, Ints, Matrix, View, worst
from matching.problem import Availability

_CURED_HOME, _RELIEVING, _OWN, _OTHER = range(4)
DECIMALS = 9


class Wishes:
    def __init__(self, view: View) -> None:
        self._view = view
        self.untouched: Matrix = np.where(view.hard_only, 0.0, view.allocatable - view.fixed_usage)
        self.room: Matrix = np.ascontiguousarray(np.maximum(self.untouched, 0.0).T)
        """By axis and node."""
        self.used: Matrix = np.zeros_like(self.untouched)
        """By the pods that rank above the one whose turn it is."""
        self.after = view.options.availability is Availability.AFTER
        self.missed = Missed(view.problem, view.pods, view.nodes)
        self.welcome: Flags = (view.end != NOWHERE) & ~_driven_out(view)
        running = view.home != NOWHERE
        self.load: Matrix = view.fixed_peak.copy()
        np.add.at(self.load, view.home[running], view.peak[running])
        self._before = worst(self.load, view.allocatable)

    def better(self, row: int) -> Flags:
        """By node."""
        view, end = self._view, int(self._view.end[row])
        distance = self._distances(row)
        group = self._groups(row) if view.unhappy[row] else np.full(len(view.nodes), _OTHER)
        if not self.welcome[row]:
            better: Flags = np.ones(len(view.nodes), dtype=bool)
        else:
            earlier_name = np.arange(len(view.nodes)) < end
            nearer = (distance < distance[end]) | ((distance == distance[end]) & earlier_name)
            better = (group < group[end]) | ((group == group[end]) & nearer)
        if end != NOWHERE:
            better[end] = False
        return better

    def passes(self, row: int) -> None:
        """The pod takes its place; the next one is asked."""
        view, home, end = self._view, self._view.home[row], self._view.end[row]
        if view.moves_cost and home not in (NOWHERE, end):
            self.load[home] -= view.peak[row]
            if end != NOWHERE:
                self.load[end] += view.peak[row]
        if self.after and end != NOWHERE:
            self.used[end] += view.usage[row]
            self.room[:, end] = np.maximum(self.untouched[end] - self.used[end], 0.0)

    def _distances(self, row: int) -> Matrix:
        """Less the inertia of a happy pod at home."""
        view = self._view
        squares = np.zeros(len(view.nodes))
        for room, usage in zip(self.room, view.usage[row], strict=True):
            squares += np.square(room - usage)
        distance = np.sqrt(squares)
        if self.missed.any[row]:
            distance += view.options.soft_weight * self.missed.of(row)
        rounded: Matrix = distance.round(DECIMALS)
        home = view.home[row]
        if home != NOWHERE and not view.unhappy[row]:
            rounded[home] = np.round(rounded[home] - view.options.inertia, DECIMALS)
        return rounded

    def _groups(self, row: int) -> Ints:
        """Of an unhappy pod."""
        view = self._view
        home, limit = view.home[row], 1 - view.options.headroom
        here = worst(self.load[home], view.allocatable[home])
        there = worst(self.load + view.peak[row], view.allocatable)
        group: Ints = np.where(there <= here - view.options.relief + SAME, _RELIEVING, _OTHER)
        cured = self._before[home] > limit + SAME and here < limit - SAME
        group[home] = _CURED_HOME if cured else _OWN
        return group


def _driven_out(view: View) -> Flags:
    """Only a NoExecute taint does that, and few nodes have one."""
    hostile = [at for at, node in enumerate(view.nodes) if any(each.effect == "NoExecute" for each in node.taints)]
    driven = np.zeros(len(view.pods), dtype=bool)
    for row in np.flatnonzero((view.home == view.end) & np.isin(view.home, hostile)).tolist():
        driven[row] = not may_stay(view.pods[row].rules, view.nodes[view.home[row]])
    return driven
