"""The best of the wanted moves that a budget allows: again and again the one that evens the loads out most."""

from __future__ import annotations

import numpy as np

from matching.arrays import TOLERANCE, Floats, Ints, Mask
from matching.case import Case
from matching.ledger import Ledger
from matching.planners.budget import Budget, movers
from matching.planners.node_loads import NodeLoads


def steepest(case: Case, wanted: Ints, loads: NodeLoads) -> Ints:
    """Running pods where they are, but for the kept moves. A move is kept when the budget has one left for it, when it
    fits with those before it done, and when it lowers the variance of the loads. Pending pods are as in `home`."""
    arrays = case.arrays
    at = arrays.home.copy()
    ledger, budget = Ledger(arrays, at), Budget(arrays)
    pods = movers(arrays, wanted)
    moves = _Moves(pods, arrays.home[pods], wanted[pods], loads, loads.of(at))
    waiting = budget.may_leave(pods) & budget.may_enter()[wanted[pods]]
    while (best := moves.best(waiting)) is not None:
        pod, target = int(pods[best]), int(wanted[pods[best]])
        waiting[best] = False
        if not ledger.fits_on(pod, target):
            continue
        ledger.take(pod, int(arrays.home[pod]))
        ledger.put(pod, target)
        budget.spend(pod, target)
        at[pod] = target
        moves.done(best)
        waiting = (at[pods] != wanted[pods]) & budget.may_leave(pods) & budget.may_enter()[wanted[pods]]
    return at


class _Moves:
    """What each wanted move would do to the sum of the squared loads, around the mean as it would then be."""

    def __init__(self, pods: Ints, source: Ints, target: Ints, loads: NodeLoads, now: Floats) -> None:
        counted = loads.counted
        self._source, self._target, self._now = source, target, now * counted
        self._nodes = max(1, int(counted.sum()))
        self._leaves = loads.added_at(pods, source) * counted[source]
        self._comes = loads.added_at(pods, target) * counted[target]

    def best(self, among: Mask) -> int | None:
        """The one with the largest gain, first by name; None when none of them gains anything."""
        if not among.any():
            return None
        gains = np.where(among, self._gains().round(12), -np.inf)
        best = int(gains.argmax())
        return best if gains[best] > TOLERANCE**2 else None

    def done(self, move: int) -> None:
        self._now[self._source[move]] -= self._leaves[move]
        self._now[self._target[move]] += self._comes[move]

    def _gains(self) -> Floats:
        here, there = self._now[self._source], self._now[self._target]
        total = self._now.sum()
        squares = (here - self._leaves) ** 2 - here**2 + (there + self._comes) ** 2 - there**2
        shift = ((total - self._leaves + self._comes) ** 2 - total**2) / self._nodes
        gains: Floats = shift - squares
        return gains
