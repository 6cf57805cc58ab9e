"""A plan cut to a number of moves: the most valuable ones that are possible without those left out."""

from __future__ import annotations

import numpy as np

from matching.arrays import NOWHERE, Arrays, Ints, Mask
from matching.case import Case
from matching.ledger import Ledger
from matching.objective import overload_added
from matching.order import by_value
from matching.outcome import Choice
from matching.planners.serial_choice import serial_choice


def movers(arrays: Arrays, at: Ints) -> Ints:
    """Running pods that end on another node."""
    return np.flatnonzero((arrays.home != NOWHERE) & (at != arrays.home))


def cut_to_budget(case: Case, choice: Choice, most: int) -> Choice:
    """Unhappy pods' moves first, then by rank. A move is kept when, with all kept before it done and the rest left
    out, it fits by requests and adds no overload. Pending pods then choose anew on what results."""
    arrays = case.arrays
    wanted = by_value(arrays, case.ranking, movers(arrays, choice.at))
    at = arrays.home.copy()
    ledger = Ledger(arrays, at)
    kept = 0
    progress = True
    while progress and kept < most:
        progress = False
        for pod in wanted:
            if at[pod] == choice.at[pod] or not _can_go(arrays, ledger, pod, int(choice.at[pod])):
                continue
            ledger.take(pod, int(at[pod]))
            ledger.put(pod, int(choice.at[pod]))
            at[pod] = choice.at[pod]
            kept, progress = kept + 1, True
            break
    settled = serial_choice(case, arrays.pending, at)
    chose = arrays.pending | (at != arrays.home)
    return Choice(settled.at, chose, {**_of(choice.headroom, chose & ~arrays.pending), **settled.headroom})


def _can_go(arrays: Arrays, ledger: Ledger, pod: int, target: int) -> bool:
    if not ledger.fits_on(pod, target):
        return False
    source = int(arrays.home[pod])
    ends = [source, target]
    now = ledger.shares_of(ends)
    ledger.take(pod, source)
    ledger.put(pod, target)
    then = ledger.shares_of(ends)
    ledger.take(pod, target)
    ledger.put(pod, source)
    return not overload_added(arrays, now, then)


def _of(headroom: dict[int, float | None], pods: Mask) -> dict[int, float | None]:
    return {pod: given for pod, given in headroom.items() if pods[pod]}
