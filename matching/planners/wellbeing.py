"""Which unhappy pods a placement makes happy, and whether it does so at nobody's expense.

An unhappy pod is made happy when its node was overloaded and the one it ends on is not, or when the one it ends on is
clearly less loaded (by `relief`), whether the pod moved or others left. At nobody's expense means: the overload does
not grow, who moves ends on a node that is not overloaded or clearly less loaded than its own was, and no unhappy pod
ends clearly worse or newly overloaded.

Placements are judged many at once: `at` has one row per placement and one column per pod, `loads` the peaks by axis,
placement and node.
"""

from __future__ import annotations

import numpy as np

from matching.arrays import TOLERANCE, Arrays, Floats, Ints, Mask, share_of_room
from matching.ledger import Ledger


class Wellbeing:
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
        homes, ends = self._ends(at, self._worst(loads))
        return (self.overloaded(self.before[homes]) & ~self.overloaded(ends)) | self.relieved(ends, homes)

    def at_nobodys_expense(self, at: Ints, loads: Floats) -> Mask:
        worst = self._worst(loads)
        homes, ends = self._ends(at, worst)
        worse = ends >= self.before[homes] + max(self._arrays.options.relief, TOLERANCE)
        newly = self.overloaded(ends) & ~self.overloaded(self.before[homes])
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

    def relieved(self, worst: Floats, homes: Ints) -> Mask:
        """Clearly less than what those nodes are loaded with now."""
        clearly: Mask = worst <= self.before[homes] - self._arrays.options.relief + TOLERANCE
        return clearly

    def _ends(self, at: Ints, worst: Floats) -> tuple[Ints, Floats]:
        """Of the unhappy pods: where they are now, and how loaded the node is that each ends on."""
        return self.start[self.unhappy], np.take_along_axis(worst, at[:, self.unhappy], axis=1)

    def _worst(self, loads: Floats) -> Floats:
        worst: Floats = self._shares(loads).max(axis=0, initial=0.0)
        return worst

    def _shares(self, loads: Floats) -> Floats:
        return share_of_room(loads, self._arrays.allocatable[:, None, :])
