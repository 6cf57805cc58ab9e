"""Which nodes a pod strictly prefers to what it has in the end: by group, then distance, then name.

Who has no node, or ends on its own and may not stay there, prefers any other.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt

from matching.certificate.rules import may_stay
from matching.certificate.soft import missed_wishes
from matching.certificate.view import NOWHERE, SAME, Flags, Ints, Matrix, View, worst

Groups = npt.NDArray[np.int8]

_CURED_HOME, _RELIEVING, _OWN, _OTHER, _NONE = range(5)
_DECIMALS = 9


class Wishes:
    def __init__(self, view: View) -> None:
        self._view = view
        self._room = np.where(view.hard_only, 0.0, np.maximum(view.allocatable - view.fixed_usage, 0.0))
        self._wisher, self._missed = missed_wishes(view.problem, view.pods, view.nodes)
        self._of_unhappy = self._groups_of_unhappy()

    def better(self, rows: Ints) -> Flags:
        """One row per pod, one column per node."""
        view = self._view
        distance, group = self._distances(rows), self._groups(rows)
        each, end = np.arange(len(rows)), view.end[rows]
        welcome = (end != NOWHERE) & ~self._driven_out[rows]
        had_distance = np.where(welcome, distance[each, end], np.inf)[:, None]
        had_group = np.where(welcome, group[each, end], _NONE)[:, None]
        earlier_name = np.arange(len(view.nodes)) < end[:, None]
        nearer = (distance < had_distance) | ((distance == had_distance) & earlier_name)
        better: Flags = (group < had_group) | ((group == had_group) & nearer)
        placed = np.flatnonzero(end != NOWHERE)
        better[placed, end[placed]] = False
        return better

    @cached_property
    def _driven_out(self) -> Flags:
        """Only a NoExecute taint does that, and few nodes have one."""
        view = self._view
        hostile = [at for at, node in enumerate(view.nodes) if any(each.effect == "NoExecute" for each in node.taints)]
        driven = np.zeros(len(view.pods), dtype=bool)
        for row in np.flatnonzero((view.home == view.end) & np.isin(view.home, hostile)).tolist():
            driven[row] = not may_stay(view.pods[row].rules, view.nodes[view.home[row]])
        return driven

    def _distances(self, rows: Ints) -> Matrix:
        """Less the inertia of a happy pod at home."""
        view = self._view
        squares = np.zeros((len(rows), len(view.nodes)))
        for axis in range(self._room.shape[1]):
            squares += np.square(self._room[:, axis] - view.usage[rows, axis, None])
        missed = self._missed[self._wisher[rows]]
        distance: Matrix = (np.sqrt(squares) + view.options.soft_weight * missed).round(_DECIMALS)
        used_to = np.flatnonzero((view.home[rows] != NOWHERE) & ~view.unhappy[rows])
        home = view.home[rows[used_to]]
        distance[used_to, home] = np.round(distance[used_to, home] - view.options.inertia, _DECIMALS)
        return distance

    def _groups(self, rows: Ints) -> Groups:
        groups = np.full((len(rows), len(self._view.nodes)), _OTHER, dtype=np.int8)
        for at in np.flatnonzero(self._view.unhappy[rows]):
            groups[at] = self._of_unhappy[int(rows[at])]
        return groups

    def _groups_of_unhappy(self) -> dict[int, Groups]:
        """Each sees the pods that rank above it where they ended and all others where they were."""
        view, found = self._view, {}
        load = view.fixed_peak.copy()
        running = view.home != NOWHERE
        np.add.at(load, view.home[running], view.peak[running])
        before = worst(load, view.allocatable)
        gone = np.flatnonzero(running & (view.end != view.home)) if view.moves_cost else np.zeros(0, dtype=int)
        seen = 0
        for row in np.flatnonzero(view.unhappy).tolist():
            upto = int(np.searchsorted(gone, row))
            self._apply(load, gone[seen:upto])
            seen = upto
            found[row] = self._group_of(row, load, before)
        return found

    def _apply(self, load: Matrix, rows: Ints) -> None:
        view = self._view
        for row in rows.tolist():
            load[view.home[row]] -= view.peak[row]
            if view.end[row] != NOWHERE:
                load[view.end[row]] += view.peak[row]

    def _group_of(self, row: int, load: Matrix, before: Matrix) -> Groups:
        view = self._view
        home, limit = view.home[row], 1 - view.options.headroom
        here = worst(load[home], view.allocatable[home])
        there = worst(load + view.peak[row], view.allocatable)
        group = np.where(there <= here - view.options.relief + SAME, _RELIEVING, _OTHER).astype(np.int8)
        cured = before[home] > limit + SAME and here < limit - SAME
        group[home] = _CURED_HOME if cured else _OWN
        return group
