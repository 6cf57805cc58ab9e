"""The order of the moves: at each move's turn, with the moves before it done, the target has room by requests and no
inter-pod constraint refuses it.

Greedy: the most valuable of the moves that are possible now goes next (pending pods, then unhappy ones, then by rank).
The room it frees may make another move possible. The moves that are left when none is possible any more are stuck: they
wait for each other's room, or inter-pod constraints refuse them. `matching.planning.executable` decides what becomes of
them. The loop ends because every step carries out a move.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Sequence
from types import ModuleType

import numpy as np

from matching.array_types import NOWHERE, Ints
from matching.compiled import loading
from matching.compiled.layout import MoveQueue
from matching.model.arrays import Arrays
from matching.model.ledger import Ledger, before_the_moves
from matching.planning.outcome import MoveOrder
from matching.planning.prepared import PreparedProblem

_MOVES_COUNT_AS = 100
"""Ordering one move costs about as much as evaluating this many nodes for a pod."""
FEW = 5
"""So many moves are tried in all orders."""


def by_value(arrays: Arrays, ranking: Ints, pods: Ints) -> list[int]:
    """The most valuable move first: pending pods, then unhappy ones, then by rank."""
    chosen = np.zeros(len(arrays.pods), dtype=bool)
    chosen[pods] = True
    ranked = ranking[chosen[ranking]]
    value = np.where(arrays.pending, 0, np.where(arrays.unhappy, 1, 2))[ranked]
    ordered: list[int] = ranked[np.argsort(value, kind="stable")].tolist()
    return ordered


def order_moves(arrays: Arrays, pods: Sequence[int], at: Ints) -> MoveOrder:
    """The moves of `pods` to their nodes in `at`. `pods` has the most valuable first; dumped pods are gone before."""
    kernels = loading.kernels(len(pods), _MOVES_COUNT_AS)
    moves = _MoveSequence(arrays, pods, at) if kernels is None else _CompiledMoveSequence(kernels, arrays, pods, at)
    in_order, stuck = moves.carry_out_possible()
    if stuck and len(pods) <= FEW and (found := _try_all_orders(arrays, pods, at)) is not None:
        return MoveOrder(found, ())
    return MoveOrder(in_order, stuck)


def order_of_placement(prepared: PreparedProblem, at: Ints) -> MoveOrder:
    moving = np.flatnonzero((at != prepared.arrays.current) & (at != NOWHERE))
    return order_moves(prepared.arrays, by_value(prepared.arrays, prepared.ranking, moving), at)


class _CompiledMoveSequence:
    """The same as `_MoveSequence`, compiled; the loop returns only for pods with inter-pod constraints."""

    def __init__(self, kernels: ModuleType, arrays: Arrays, pods: Sequence[int], at: Ints) -> None:
        ledger = before_the_moves(arrays, at)
        self._inter_pod = ledger.inter_pod
        self._kernels, self._pods, moving = kernels, pods, np.array(pods, dtype=np.int64)
        rules, number = arrays.inter_pod, len(pods)
        self._moves = MoveQueue(
            current=arrays.current[moving],
            target=at[moving],
            involved=np.zeros(number, dtype=bool) if rules is None else rules.involved[moving],
            request=np.ascontiguousarray(arrays.request[:, moving]),
            least=np.ascontiguousarray(arrays.least_free[:, moving]),
            free=ledger.free,
            slots=ledger.slots,
            heap=np.zeros(number, dtype=np.int64),
            first=np.zeros(len(arrays.nodes), dtype=np.int64),
            following=np.zeros(number, dtype=np.int64),
            done=np.zeros(number, dtype=np.int64),
            sizes=np.zeros(2, dtype=np.int64),
        )

    def carry_out_possible(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        moves, refused, number = self._moves, list[int](), len(self._pods)
        moves.heap[:] = range(number)
        moves.sizes[:] = number, 0
        moves.first[:] = self._kernels.NOTHING
        while (value := self._kernels.proceed(moves)) != self._kernels.NOTHING:
            pod, target = self._pods[value], int(moves.target[value])
            if not self._inter_pod.allows_on(pod, target):
                refused.append(value)
                continue
            self._inter_pod.put(pod, target)
            self._kernels.carry_out(moves, value)
            if refused and self._inter_pod.affects_others(pod):
                for again in refused:
                    moves.sizes[0] = self._kernels.push(moves.heap, int(moves.sizes[0]), again)
                refused.clear()
        done = moves.done[: moves.sizes[1]].tolist()
        stuck = sorted(set(range(number)).difference(done))
        return tuple(self._pods[value] for value in done), tuple(self._pods[value] for value in stuck)


class _MoveSequence:
    """The moves carried out so far. Moves are numbered by value. Plain lists, because each of possibly tens of
    thousands of moves reads only one node."""

    def __init__(self, arrays: Arrays, pods: Sequence[int], at: Ints) -> None:
        ledger = before_the_moves(arrays, at)
        self._inter_pod = ledger.inter_pod
        self._pods, moving = pods, np.array(pods, dtype=np.int64)
        self._current, self._target = arrays.current[moving].tolist(), at[moving].tolist()
        self._request = arrays.request[:, moving].T.tolist()
        self._least = arrays.least_free[:, moving].T.tolist()
        self._free, self._slots = ledger.free.T.tolist(), ledger.slots.tolist()
        rules = arrays.inter_pod
        self._involved = [False] * len(pods) if rules is None else rules.involved[moving].tolist()
        self._waiting: defaultdict[int, list[int]] = defaultdict(list)
        self._refused: list[int] = []

    def carry_out_possible(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The moves that are possible in the order found, and those that are stuck."""
        ready, done = list(range(len(self._pods))), list[int]()
        while ready:
            value = heapq.heappop(ready)
            target = self._target[value]
            if not self._has_room(value, target):
                self._waiting[target].append(value)
            elif self._involved[value] and not self._inter_pod.allows_on(self._pods[value], target):
                self._refused.append(value)
            else:
                self._do(value, target)
                done.append(self._pods[value])
                for freed in self._freed(value):
                    heapq.heappush(ready, freed)
        stuck = sorted([*self._refused, *(value for values in self._waiting.values() for value in values)])
        return tuple(done), tuple(self._pods[value] for value in stuck)

    def _has_room(self, value: int, target: int) -> bool:
        if self._slots[target] < 1:
            return False
        return all(free >= least for free, least in zip(self._free[target], self._least[value], strict=True))

    def _do(self, value: int, target: int) -> None:
        current, request = self._current[value], self._request[value]
        self._free[target] = [free - amount for free, amount in zip(self._free[target], request, strict=True)]
        self._slots[target] -= 1
        if current != NOWHERE:
            self._free[current] = [free + amount for free, amount in zip(self._free[current], request, strict=True)]
            self._slots[current] += 1
        if self._involved[value]:
            self._inter_pod.put(self._pods[value], target)

    def _freed(self, value: int) -> list[int]:
        """The moves to try again now that the pod has moved."""
        freed = self._waiting.pop(self._current[value], [])
        if self._refused and self._involved[value] and self._inter_pod.affects_others(self._pods[value]):
            freed += self._refused
            self._refused = []
        return freed


def _try_all_orders(arrays: Arrays, pods: Sequence[int], at: Ints) -> tuple[int, ...] | None:
    """The greedy order never delays a possible move. Now and then only an order works in which one waits. None when no
    order works."""
    return _extend(before_the_moves(arrays, at), arrays.current, tuple(pods), at)


def _extend(ledger: Ledger, current: Ints, left: tuple[int, ...], at: Ints) -> tuple[int, ...] | None:
    if not left:
        return ()
    for pod in left:
        source, target = int(current[pod]), int(at[pod])
        if not ledger.fits_on(pod, target):
            continue
        ledger.shift(pod, source, target)
        rest = _extend(ledger, current, tuple(each for each in left if each != pod), at)
        ledger.shift(pod, target, source)
        if rest is not None:
            return (pod, *rest)
    return None
