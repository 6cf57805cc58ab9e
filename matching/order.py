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

import numpy as np

from matching.arrays import NOWHERE, Arrays, Ints
from matching.ledger import Ledger


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
    return [int(pod) for pod in ranked[np.argsort(value, kind="stable")]]


def order_moves(arrays: Arrays, pods: Sequence[int], at: Ints) -> Ordered:
    """`pods` move from where they are now to where `at` says; the most valuable comes first."""
    moves = _Moves(arrays, pods, at)
    free = moves.possible(range(len(pods)), with_room=True)
    ring = moves.possible(moves.left(), with_room=False)
    return Ordered(free, ring, tuple(pods[value] for value in moves.left()))


class _Moves:
    """What has been done so far; moves are numbered by value."""

    def __init__(self, arrays: Arrays, pods: Sequence[int], at: Ints) -> None:
        self._home, self._pods, self._at = arrays.home, pods, at
        self._ledger = Ledger(arrays, arrays.home)
        self._crowded: defaultdict[int, list[int]] = defaultdict(list)
        self._refused: list[int] = []

    def possible(self, values: Sequence[int], with_room: bool) -> tuple[int, ...]:
        """Do what can be done of these, in the best order found."""
        ready, done = list(values), []
        self._crowded.clear()
        self._refused.clear()
        while ready:
            value = heapq.heappop(ready)
            pod, target = self._pods[value], int(self._at[self._pods[value]])
            if with_room and not self._ledger.has_room_on(pod, target):
                self._crowded[target].append(value)
            elif not self._ledger.between.allows(pod)[target]:
                self._refused.append(value)
            else:
                self._do(pod, target)
                done.append(pod)
                for freed in self._freed(pod):
                    heapq.heappush(ready, freed)
        return tuple(done)

    def left(self) -> list[int]:
        return sorted([*self._refused, *(value for values in self._crowded.values() for value in values)])

    def _do(self, pod: int, target: int) -> None:
        self._ledger.put(pod, target)
        if self._home[pod] != NOWHERE:
            self._ledger.take(pod, int(self._home[pod]))

    def _freed(self, pod: int) -> list[int]:
        """Those to be asked again now that the pod has moved."""
        freed = self._crowded.pop(int(self._home[pod]), [])
        if self._ledger.between.minds(pod):
            freed += self._refused
            self._refused = []
        return freed
