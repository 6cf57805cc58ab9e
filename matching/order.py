"""The order of the moves: each target has room by requests when its turn comes, with the moves before it done, and no
rule between pods stands against it.

Greedy: of the moves that are possible right now the most valuable goes next (pending pods, then unhappy ones, then by
rank), and the room it leaves behind, or its coming and going, may let another one go. Room is only ever freed by a
move, so the moves that are left when nothing fits any more wait for each other's room in a ring; they come last, in an
order in which the rules between pods allow each. What those rules never allow is named apart.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType

import numpy as np

from matching.any_order import any_order
from matching.arrays import NOWHERE, Arrays, Ints
from matching.compiled import loading
from matching.compiled.layout import Moves
from matching.ledger import before_the_moves

_MOVES_COUNT_AS = 100
"""A move costs as much as so many nodes that a pod looks at."""


@dataclass(frozen=True, slots=True)
class Ordered:
    free: tuple[int, ...]
    """Pods whose moves can be done one after the other."""
    ring: tuple[int, ...]
    """Pods whose moves wait for each other's room."""
    refused: tuple[int, ...] = ()
    """Pods whose moves the rules between pods do not allow, whatever goes first."""


def by_value(arrays: Arrays, ranking: Ints, pods: Ints) -> list[int]:
    chosen = np.zeros(len(arrays.pods), dtype=bool)
    chosen[pods] = True
    ranked = ranking[chosen[ranking]]
    value = np.where(arrays.pending, 0, np.where(arrays.unhappy, 1, 2))[ranked]
    ordered: list[int] = ranked[np.argsort(value, kind="stable")].tolist()
    return ordered


def order_moves(arrays: Arrays, pods: Sequence[int], at: Ints) -> Ordered:
    """`pods` move from where they are now to where `at` says; the most valuable comes first. Who is dumped is gone
    before."""
    kernels = loading.kernels(len(pods), _MOVES_COUNT_AS)
    moves = _Moves(arrays, pods, at) if kernels is None else _QuickMoves(kernels, arrays, pods, at)
    free = moves.possible(range(len(pods)), with_room=True)
    ring = moves.possible(moves.left(), with_room=False)
    refused = tuple(pods[value] for value in moves.left())
    if refused and (found := any_order(arrays, pods, at, with_room=True)) is not None:
        return Ordered(found, ())
    if refused and (found := any_order(arrays, pods, at, with_room=False)) is not None:
        return Ordered((), found)
    return Ordered(free, ring, refused)


class _QuickMoves:
    """The same as `_Moves`; only pods that rules between pods are about come back from the compiled loop."""

    def __init__(self, kernels: ModuleType, arrays: Arrays, pods: Sequence[int], at: Ints) -> None:
        ledger = before_the_moves(arrays, at)
        self._between = ledger.between
        self._kernels, self._pods, moving = kernels, pods, np.array(pods, dtype=np.int64)
        self._left: list[int] = []
        rules, number = arrays.neighbours, len(pods)
        self._moves = Moves(
            home=arrays.home[moving],
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

    def possible(self, values: Sequence[int], with_room: bool) -> tuple[int, ...]:
        moves, refused = self._moves, list[int]()
        moves.heap[: len(values)] = values
        moves.sizes[:] = len(values), 0
        moves.first[:] = self._kernels.NOTHING
        while (value := self._kernels.proceed(moves, with_room)) != self._kernels.NOTHING:
            pod, target = self._pods[value], int(moves.target[value])
            if not self._between.allows_on(pod, target):
                refused.append(value)
                continue
            self._between.put(pod, target)
            self._kernels.carry_out(moves, value)
            if refused and self._between.minds(pod):
                for again in refused:
                    moves.sizes[0] = self._kernels.push(moves.heap, int(moves.sizes[0]), again)
                refused.clear()
        done = moves.done[: moves.sizes[1]].tolist()
        self._left = sorted(set(values).difference(done))
        return tuple(self._pods[value] for value in done)

    def left(self) -> list[int]:
        return self._left


class _Moves:
    """What has been done so far; moves are numbered by value. Plain numbers, since there can be tens of thousands of
    moves and each looks at one node."""

    def __init__(self, arrays: Arrays, pods: Sequence[int], at: Ints) -> None:
        ledger = before_the_moves(arrays, at)
        self._between = ledger.between
        self._pods, moving = pods, np.array(pods, dtype=np.int64)
        self._home, self._target = arrays.home[moving].tolist(), at[moving].tolist()
        self._request = arrays.request[:, moving].T.tolist()
        self._least = arrays.least_free[:, moving].T.tolist()
        self._free, self._slots = ledger.free.T.tolist(), ledger.slots.tolist()
        rules = arrays.neighbours
        self._involved = [False] * len(pods) if rules is None else rules.involved[moving].tolist()
        self._crowded: defaultdict[int, list[int]] = defaultdict(list)
        self._refused: list[int] = []

    def possible(self, values: Sequence[int], with_room: bool) -> tuple[int, ...]:
        """Do what can be done of these, in the best order found."""
        ready, done = list(values), []
        self._crowded.clear()
        self._refused.clear()
        while ready:
            value = heapq.heappop(ready)
            target = self._target[value]
            if with_room and not self._has_room(value, target):
                self._crowded[target].append(value)
            elif self._involved[value] and not self._between.allows_on(self._pods[value], target):
                self._refused.append(value)
            else:
                self._do(value, target)
                done.append(self._pods[value])
                for freed in self._freed(value):
                    heapq.heappush(ready, freed)
        return tuple(done)

    def left(self) -> list[int]:
        return sorted([*self._refused, *(value for values in self._crowded.values() for value in values)])

    def _has_room(self, value: int, target: int) -> bool:
        if self._slots[target] < 1:
            return False
        return all(free >= least for free, least in zip(self._free[target], self._least[value], strict=True))

    def _do(self, value: int, target: int) -> None:
        home, request = self._home[value], self._request[value]
        self._free[target] = [free - amount for free, amount in zip(self._free[target], request, strict=True)]
        self._slots[target] -= 1
        if home != NOWHERE:
            self._free[home] = [free + amount for free, amount in zip(self._free[home], request, strict=True)]
            self._slots[home] += 1
        if self._involved[value]:
            self._between.put(self._pods[value], target)

    def _freed(self, value: int) -> list[int]:
        """Those to be asked again now that the pod has moved."""
        freed = self._crowded.pop(self._home[value], [])
        if self._refused and self._involved[value] and self._between.minds(self._pods[value]):
            freed += self._refused
            self._refused = []
        return freed
