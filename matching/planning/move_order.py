"""The order of the moves: at each move's turn, with the moves before it done, the target has room by requests and no
inter-pod constraint refuses it.

Greedy: the most valuable of the moves that are possible now goes next (pending pods, then unhappy ones, then by rank).
The room it frees may make another move possible. Only moves free room, so the moves that are left when nothing fits any
more wait for each other in a cycle. They come last, in an order that the inter-pod constraints allow. Moves that those
constraints refuse in every order are listed separately.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from types import ModuleType

import numpy as np

from matching.array_types import NOWHERE, Ints
from matching.compiled import loading
from matching.compiled.layout import MoveQueue
from matching.model.arrays import Arrays
from matching.model.ledger import Ledger, before_the_moves
from matching.planning.outcome import MoveOrder, Outcome
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
    in_order = moves.carry_out_possible(range(len(pods)), with_room=True)
    cyclic = moves.carry_out_possible(moves.left(), with_room=False)
    refused = tuple(pods[value] for value in moves.left())
    if refused and (found := try_all_orders(arrays, pods, at, with_room=True)) is not None:
        return MoveOrder(found, ())
    if refused and (found := try_all_orders(arrays, pods, at, with_room=False)) is not None:
        return MoveOrder((), found)
    return MoveOrder(in_order, cyclic, refused)


class _CompiledMoveSequence:
    """The same as `_MoveSequence`, compiled; the loop returns only for pods with inter-pod constraints."""

    def __init__(self, kernels: ModuleType, arrays: Arrays, pods: Sequence[int], at: Ints) -> None:
        ledger = before_the_moves(arrays, at)
        self._inter_pod = ledger.inter_pod
        self._kernels, self._pods, moving = kernels, pods, np.array(pods, dtype=np.int64)
        self._left: list[int] = []
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

    def carry_out_possible(self, values: Sequence[int], with_room: bool) -> tuple[int, ...]:
        moves, refused = self._moves, list[int]()
        moves.heap[: len(values)] = values
        moves.sizes[:] = len(values), 0
        moves.first[:] = self._kernels.NOTHING
        while (value := self._kernels.proceed(moves, with_room)) != self._kernels.NOTHING:
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
        self._left = sorted(set(values).difference(done))
        return tuple(self._pods[value] for value in done)

    def left(self) -> list[int]:
        return self._left


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

    def carry_out_possible(self, values: Sequence[int], with_room: bool) -> tuple[int, ...]:
        """Carry out what is possible of these moves, in the best order found."""
        ready, done = list(values), []
        self._waiting.clear()
        self._refused.clear()
        while ready:
            value = heapq.heappop(ready)
            target = self._target[value]
            if with_room and not self._has_room(value, target):
                self._waiting[target].append(value)
            elif self._involved[value] and not self._inter_pod.allows_on(self._pods[value], target):
                self._refused.append(value)
            else:
                self._do(value, target)
                done.append(self._pods[value])
                for freed in self._freed(value):
                    heapq.heappush(ready, freed)
        return tuple(done)

    def left(self) -> list[int]:
        return sorted([*self._refused, *(value for values in self._waiting.values() for value in values)])

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


def try_all_orders(arrays: Arrays, pods: Sequence[int], at: Ints, *, with_room: bool) -> tuple[int, ...] | None:
    """The greedy order never delays a possible move. That only fails where inter-pod constraints interlock, which is
    rare. None when no order works, or when there are too many moves to try."""
    if len(pods) > FEW:
        return None
    return _extend(arrays, before_the_moves(arrays, at), tuple(pods), at, with_room)


def _extend(arrays: Arrays, ledger: Ledger, left: tuple[int, ...], at: Ints, with_room: bool) -> tuple[int, ...] | None:
    if not left:
        return ()
    for pod in left:
        current, target = int(arrays.current[pod]), int(at[pod])
        if (with_room and not ledger.has_room_on(pod, target)) or not ledger.inter_pod.allows(pod)[target]:
            continue
        _shift_pod(ledger, pod, current, target)
        rest = _extend(arrays, ledger, tuple(each for each in left if each != pod), at, with_room)
        _shift_pod(ledger, pod, target, current)
        if rest is not None:
            return (pod, *rest)
    return None


def _shift_pod(ledger: Ledger, pod: int, source: int, target: int) -> None:
    if source != NOWHERE:
        ledger.take(pod, source)
    if target != NOWHERE:
        ledger.put(pod, target)
    else:
        ledger.inter_pod.remove(pod)


def drop_impossible_moves(prepared: PreparedProblem, outcome: Outcome) -> tuple[Outcome, MoveOrder]:
    """The outcome without impossible moves, and the order of those that are left.

    A planner checks one pod at a time, in another order than that of the moves. So inter-pod constraints can, rarely,
    refuse a move in every order. Such a pod stays, and so do the pods that would have used its room.
    """
    at, given_up = outcome.choice.at, np.zeros(len(outcome.choice.at), dtype=bool)
    ordered = _cached_order(prepared, at)
    while ordered.refused:
        at = _without(prepared.arrays, at, ordered.refused)
        given_up = at != outcome.choice.at
        ordered = _cached_order(prepared, at)
    if not given_up.any():
        return outcome, ordered
    choice = replace(outcome.choice, at=at, given_up=frozenset(np.flatnonzero(given_up).tolist()))
    return replace(outcome, choice=choice), ordered


def _cached_order(prepared: PreparedProblem, at: Ints) -> MoveOrder:
    """The planner and the plan writer both need the order of the same placement."""
    known = prepared.orders.get(at.tobytes())
    if known is None:
        prepared.orders.clear()
        known = prepared.orders[at.tobytes()] = order_of_placement(prepared, at)
    return known


def order_of_placement(prepared: PreparedProblem, at: Ints) -> MoveOrder:
    """Not cached: for placements that are only tried."""
    moving = np.flatnonzero((at != prepared.arrays.current) & (at != NOWHERE))
    return order_moves(prepared.arrays, by_value(prepared.arrays, prepared.ranking, moving), at)


def _without(arrays: Arrays, at: Ints, pods: Iterable[int]) -> Ints:
    """Those pods stay where they are, and so do the pods that do not fit then."""
    at = at.copy()
    back = np.array(list(pods), dtype=np.int64)
    while len(back):
        at[back] = arrays.current[back]
        back = _overfull(arrays, at)
    return at


def _overfull(arrays: Arrays, at: Ints) -> Ints:
    """Pods that arrive on nodes without enough room for all requests."""
    ledger = Ledger(arrays, at)
    arrivals = np.flatnonzero((at != arrays.current) & (at != NOWHERE))
    lacking = (ledger.free[:, at[arrivals]] < 0) & (arrays.request[:, arrivals] > 0)
    overfull: Ints = arrivals[lacking.any(axis=0) | (ledger.slots[at[arrivals]] < 0)]
    return overfull
