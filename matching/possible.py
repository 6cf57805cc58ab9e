"""A placement cut down to moves that can be made one after the other under the rules between pods.

Each planner looks at one pod at a time, and the order of the moves is another one. So it can happen, rarely, that a
move which was fine when it was chosen is refused whatever goes first. Such a pod stays, and so does who would have
taken its room.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from matching.arrays import NOWHERE, TOLERANCE, Arrays, Ints
from matching.case import Case
from matching.ledger import Ledger
from matching.order import Ordered, by_value, order_moves
from matching.outcome import Outcome


def keep_possible(case: Case, outcome: Outcome) -> tuple[Outcome, Ordered]:
    """The outcome without impossible moves, and the order of those that are left."""
    at, held = outcome.choice.at, np.zeros(len(outcome.choice.at), dtype=bool)
    ordered = _ordered(case, at)
    while ordered.refused:
        at = _without(case.arrays, at, ordered.refused)
        held = at != outcome.choice.at
        ordered = _ordered(case, at)
    if not held.any():
        return outcome, ordered
    choice = replace(outcome.choice, at=at, held=frozenset(np.flatnonzero(held).tolist()))
    return replace(outcome, choice=choice), ordered


def _ordered(case: Case, at: Ints) -> Ordered:
    """A planner compares what is possible, and the plan that is written asks again."""
    known = case.orders.get(at.tobytes())
    if known is None:
        case.orders.clear()
        known = case.orders[at.tobytes()] = order_of(case, at)
    return known


def order_of(case: Case, at: Ints) -> Ordered:
    """Also of placements that are only tried: those are not remembered."""
    going = np.flatnonzero((at != case.arrays.home) & (at != NOWHERE))
    return order_moves(case.arrays, by_value(case.arrays, case.ranking, going), at)


def _without(arrays: Arrays, at: Ints, pods: Iterable[int]) -> Ints:
    """Those pods back where they are, and whoever does not fit beside them, too."""
    at = at.copy()
    back = np.array(list(pods), dtype=np.int64)
    while len(back):
        at[back] = arrays.home[back]
        back = _too_many(arrays, at)
    return at


def _too_many(arrays: Arrays, at: Ints) -> Ints:
    """Arrivals on nodes that would be overfull by what they ask for."""
    ledger = Ledger(arrays, at)
    arrivals = np.flatnonzero((at != arrays.home) & (at != NOWHERE))
    lacking = (ledger.free[:, at[arrivals]] < -2 * TOLERANCE) & (arrays.request[:, arrivals] > 0)
    crowded: Ints = arrivals[lacking.any(axis=0) | (ledger.slots[at[arrivals]] < 0)]
    return crowded
