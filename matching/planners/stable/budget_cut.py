"""A placement cut to the budget: the most valuable moves that are possible without the others."""

from __future__ import annotations

import heapq
from collections import defaultdict

from matching.array_types import NOWHERE, Ints, Mask
from matching.model.arrays import Arrays
from matching.model.ledger import Ledger
from matching.planners.stable.serial_choice import serial_choice
from matching.planning.budget import Budget, movers
from matching.planning.move_order import by_value
from matching.planning.objective import overload_added
from matching.planning.outcome import Choice
from matching.planning.prepared import PreparedProblem


def cut_to_budget(prepared: PreparedProblem, choice: Choice) -> Choice:
    """Moves of unhappy pods first, then by rank. A move is kept when the budget allows it and when, with only the kept
    moves before it done, it fits by requests and adds no overload. No pod is dumped, because it is no longer known
    which room that would make. Pending pods then choose again."""
    arrays = prepared.arrays
    moving = movers(arrays, choice.at)
    at = _kept_moves(arrays, by_value(arrays, prepared.ranking, moving[choice.at[moving] != NOWHERE]), choice.at)
    pending = serial_choice(prepared, arrays.pending, at)
    chose = arrays.pending | (at != arrays.current)
    return Choice(pending.at, chose, {**_headroom_of(choice.headroom, chose & ~arrays.pending), **pending.headroom})


def _kept_moves(arrays: Arrays, wanted: list[int], target: Ints) -> Ints:
    """A move that is not possible yet waits for both of its nodes and is tried again when one of them changes. At the
    end all waiting moves are tried once more, because an inter-pod constraint can depend on other nodes. Ends: moves
    are tried again only after one of them was made."""
    at = arrays.current.copy()
    ledger, budget = Ledger(arrays, at), Budget(arrays)
    pool, progress = set(range(len(wanted))), True
    while pool and progress:
        progress = False
        ready, waiting = sorted(pool), _Waiting()
        while ready:
            value = heapq.heappop(ready)
            pod, end = wanted[value], int(target[wanted[value]])
            if value not in pool or not budget.allows(pod, end):
                continue
            source = int(arrays.current[pod])
            if not _can_move(arrays, ledger, pod, end):
                waiting.add(value, source, end)
                continue
            ledger.shift(pod, source, end)
            budget.spend(pod, end)
            at[pod] = end
            pool.discard(value)
            progress = True
            for woken in waiting.wake(source, end):
                heapq.heappush(ready, woken)
    return at


class _Waiting:
    def __init__(self) -> None:
        self._at: defaultdict[int, set[int]] = defaultdict(set)

    def add(self, value: int, *nodes: int) -> None:
        for node in nodes:
            self._at[node].add(value)

    def wake(self, *nodes: int) -> list[int]:
        return sorted(set().union(*(self._at.pop(node, set()) for node in nodes)))


def _can_move(arrays: Arrays, ledger: Ledger, pod: int, target: int) -> bool:
    if not ledger.fits_on(pod, target):
        return False
    source = int(arrays.current[pod])
    ends = [source, target]
    now = ledger.shares_of(ends)
    ledger.shift(pod, source, target)
    then = ledger.shares_of(ends)
    ledger.shift(pod, target, source)
    return not overload_added(arrays, now, then)


def _headroom_of(headroom: dict[int, float | None], pods: Mask) -> dict[int, float | None]:
    return {pod: given for pod, given in headroom.items() if pods[pod]}
