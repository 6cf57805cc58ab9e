"""The moves of a placement that are worth their price, in an order in which no target is overloaded in between.

Taken back are moves that save less than they cost, moves that break a rule of `weighed_placement`, and moves of happy
pods that cure nobody: a happy pod moves only when its leaving relieves the unhappy pods that stay on its node, or makes
room there for somebody else.

Every loop ends: each round takes at least one move back.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from matching.array_types import NOWHERE
from matching.model.ledger import Ledger
from matching.planners.stable.weighed_placement import WeighedPlacement
from matching.planning.move_order import by_value
from matching.planning.prepared import PreparedProblem


def worthwhile(prepared: PreparedProblem, placement: WeighedPlacement) -> tuple[int, ...]:
    """Takes moves back, and returns the pods that get another node in the order of their moves."""
    _without_bystanders(placement)
    while True:
        _take_back_unpaid(placement)
        wrong = [pod for pod in placement.moved() if not _is_justified(placement, pod)]
        if wrong:
            _put_back(placement, wrong)
            continue
        order, stuck = _ordered(prepared, placement)
        if not stuck:
            return order
        _put_back(placement, stuck)


def _without_bystanders(placement: WeighedPlacement) -> None:
    """Most moves of a wide matching have nothing to do with nodes in trouble: neither does such a pod leave one, nor
    does it make room for a pod that does. They are taken back at once."""
    arrays, in_trouble = placement.arrays, placement.expectation.in_trouble
    moved = np.array(placement.moved(), dtype=np.int64)
    involved = in_trouble[arrays.current[moved]]
    pending = arrays.pending & (placement.at != NOWHERE)
    while True:
        entered = np.zeros(len(in_trouble), dtype=bool)
        entered[placement.at[moved[involved]]] = True
        entered[placement.at[pending]] = True
        more = involved | entered[arrays.current[moved]]
        if (more == involved).all():
            break
        involved = more
    _put_back(placement, moved[~involved].tolist())


def _take_back_unpaid(placement: WeighedPlacement) -> None:
    """The move that is worth least first."""
    while moved := placement.moved():
        net = placement.saved_by(moved) - np.array([placement.price(pod) for pod in moved])
        for index in np.argsort(net, kind="stable").tolist():
            if net[index] >= 0:
                return
            if placement.fits_back(moved[index]):
                placement.put_back(moved[index])
                break
        else:
            return


def _is_justified(placement: WeighedPlacement, pod: int) -> bool:
    if not placement.ends_well(pod):
        return False
    arrays, source = placement.arrays, int(placement.arrays.current[pod])
    if arrays.unhappy[pod] or placement.receives(source):
        return True
    staying = (placement.at == source) & (arrays.current == source)
    needs_relief = (staying & arrays.unhappy).any() or not arrays.unhappy.any()
    return bool(needs_relief and placement.expectation.in_trouble[source] and placement.is_cured(source))


def _put_back(placement: WeighedPlacement, pods: Iterable[int]) -> None:
    """And the pods that have taken their room."""
    waiting = [pod for pod in pods if placement.at[pod] != placement.arrays.current[pod]]
    while waiting:
        pod = waiting.pop()
        current = int(placement.arrays.current[pod])
        if placement.at[pod] == current:
            continue
        if not placement.fits_back(pod):
            waiting += placement.arrived(current)
        placement.put_back(pod)


def _ordered(prepared: PreparedProblem, placement: WeighedPlacement) -> tuple[tuple[int, ...], list[int]]:
    """The moves in order, and those that are not possible when these are done: for lack of room, or because the target
    would be overloaded until another pod has left it."""
    arrays, at = prepared.arrays, placement.at
    left = by_value(arrays, prepared.ranking, np.flatnonzero((at != arrays.current) & (at != NOWHERE)))
    ledger, turn = Ledger(arrays, arrays.current), placement.expectation.placed(arrays.current)
    order: list[int] = []
    possible = True
    while left and possible:
        possible = False
        for pod in list(left):
            current, target = int(arrays.current[pod]), int(at[pod])
            calm = arrays.pending[pod] or placement.calm_enough(target, turn.load_with(pod, target))
            if calm and ledger.fits_on(pod, target):
                ledger.shift(pod, current, target)
                turn.move(pod, current, target)
                order.append(pod)
                left.remove(pod)
                possible = True
    return tuple(order), left
