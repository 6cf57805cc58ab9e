"""Algorithm 2 of STABLE: pods propose down their lists, a full node displaces pods that it ranks lower.

Our reading where the paper is silent or contradicts itself:

- The pods' lists are made once, before the matching, and do not change while pods come and go.
- Free pods wait in one queue, at first by name. The first of them proposes down its list until a node takes it; who is
  displaced joins the end of the queue and goes on behind the node that displaced it. Nobody proposes twice to a node.
- A node takes a pod while its room by maximum usage is strictly larger than what is on it together with the pod, and
  while it has a slot for it.
- A full node displaces the pods it ranks lowest first, only as many as needed, and only if that makes room. (The
  printed pseudocode displaces every lower-ranked pod and never looks whether that helps.)
- A pod whose list runs out is dumped.

All nodes rank by CPU use, but proposals come in another order; with sizes, a pod that was displaced may fit later on a
node that it does not ask again. So blocking pairs can be left.
"""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Callable

import numpy as np

from matching.arrays import NOWHERE, TOLERANCE, Floats, Ints
from matching.case import Case
from matching.ledger import Ledger


def propose(case: Case, lists: Callable[[int], Ints]) -> Ints:
    """Where each pod ends. `lists` gives a movable pod's nodes, the one it likes best first."""
    arrays = case.arrays
    hosts = _Hosts(case)
    waiting = deque(np.flatnonzero(case.movable).tolist())
    asked = np.zeros(len(arrays.pods), dtype=np.int64)
    at = np.where(case.movable, NOWHERE, arrays.home)
    while waiting:
        pod = waiting.popleft()
        nodes = lists(pod)[asked[pod] :].tolist()
        for node in nodes:
            asked[pod] += 1
            displaced = hosts.take(pod, node)
            if displaced is None:
                continue
            at[pod] = node
            at[displaced] = NOWHERE
            waiting.extend(displaced)
            break
    return at


class _Hosts:
    """What is on every node: peaks, slots, and the pods that proposed, by rank."""

    def __init__(self, case: Case) -> None:
        arrays = case.arrays
        without = Ledger(arrays, np.where(case.movable, NOWHERE, arrays.home))
        self._left: Floats = arrays.allocatable - without.load
        self._slots: list[int] = without.slots.tolist()
        self._peak = arrays.peak
        self._rank = np.empty(len(arrays.pods), dtype=np.int64)
        self._rank[case.ranking] = np.arange(len(arrays.pods))
        self._guests: list[list[tuple[int, int]]] = [[] for _ in arrays.nodes]

    def take(self, pod: int, node: int) -> list[int] | None:
        """Who has to go for the pod; None when it is refused."""
        left, slots = self._left[:, node], self._slots[node]
        guests, rank, leaving = self._guests[node], int(self._rank[pod]), 0
        while not self._fits(pod, left, slots):
            leaving += 1
            if leaving > len(guests) or guests[-leaving][0] < rank:
                return None
            left = left + self._peak[:, guests[-leaving][1]]
            slots += 1
        displaced = [guest for _, guest in guests[len(guests) - leaving :]]
        del guests[len(guests) - leaving :]
        insort(guests, (rank, pod))
        self._left[:, node] = left - self._peak[:, pod]
        self._slots[node] = slots - 1
        return displaced

    def _fits(self, pod: int, left: Floats, slots: int) -> bool:
        peak = self._peak[:, pod]
        return slots >= 1 and bool(((peak == 0) | (left > peak + TOLERANCE)).all())
