"""The order of the moves: each target has room by requests when its turn comes, with the moves before it done.

Greedy: of the moves whose target has room right now the most valuable goes next (pending pods, then unhappy ones,
then by rank), and the room it leaves behind may let another one go. Room is only ever freed by a move, so the moves
that are left when nothing fits any more wait for each other in a ring; they come last, in order of value.
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
    """Pods whose moves wait for each other."""


def by_value(arrays: Arrays, ranking: Ints, pods: Ints) -> list[int]:
    chosen = np.zeros(len(arrays.pods), dtype=bool)
    chosen[pods] = True
    ranked = ranking[chosen[ranking]]
    value = np.where(arrays.pending, 0, np.where(arrays.unhappy, 1, 2))[ranked]
    return [int(pod) for pod in ranked[np.argsort(value, kind="stable")]]


def order_moves(arrays: Arrays, pods: Sequence[int], at: Ints) -> Ordered:
    """`pods` move from where they are now to where `at` says; the most valuable comes first."""
    ledger = Ledger(arrays, arrays.home)
    ready = list(range(len(pods)))
    waiting: defaultdict[int, list[int]] = defaultdict(list)
    done: list[int] = []
    while ready:
        value = heapq.heappop(ready)
        pod, target = pods[value], int(at[pods[value]])
        if not ledger.fits_on(pod, target):
            waiting[target].append(value)
            continue
        source = int(arrays.home[pod])
        ledger.put(pod, target)
        done.append(pod)
        if source != NOWHERE:
            ledger.take(pod, source)
            for freed in waiting.pop(source, []):
                heapq.heappush(ready, freed)
    stuck = sorted(value for values in waiting.values() for value in values)
    return Ordered(tuple(done), tuple(pods[value] for value in stuck))
