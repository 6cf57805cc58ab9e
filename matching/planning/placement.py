"""Pods placed one after the other on what the pods before them have left."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np

from matching.array_types import NOWHERE, Floats, Ints, Mask
from matching.planning.ledger import Ledger
from matching.planning.node_loads import NodeLoads
from matching.planning.outcome import Choice
from matching.planning.prepared import PreparedProblem
from matching.preferences import ranking_by

Choose = Callable[[int, Mask], int]
"""A pod and the nodes that can take it (at least one) to the node that it gets."""

_MOST_ROUNDS = 5


@dataclass(frozen=True, slots=True)
class Placed:
    at: Ints
    kept_on_node: frozenset[int] = frozenset()
    """Running pods kept where they are: at their turn no node, not even their own, had room left by requests."""


_Attempt = TypeVar("_Attempt", Choice, Placed)


def place_in_turn(prepared: PreparedProblem, pods: Iterable[int], at: Ints, choose: Choose) -> Ints:
    """The others stay as `at` says; a pod that no node can take ends NOWHERE."""
    turns = list(pods)
    at = at.copy()
    at[turns] = NOWHERE
    ledger = Ledger(prepared.arrays, at)
    for pod in turns:
        possible = prepared.candidates.of(pod) & ledger.fits(pod)
        if possible.any():
            node = choose(pod, possible)
            at[pod] = node
            ledger.put(pod, node)
    return at


def place_all(prepared: PreparedProblem, pods: Ints, begin: Callable[[Ints], Choose]) -> Placed | None:
    """Placed in turn so that every running pod ends with a node; `begin` makes a chooser for the pods that do not
    take part. None as in `nobody_left_out`."""
    current = prepared.arrays.current

    def placed(kept: Mask) -> Placed:
        turns = pods[~kept[pods]]
        start = current.copy()
        start[turns] = NOWHERE
        return Placed(place_in_turn(prepared, turns.tolist(), start, begin(start)))

    return nobody_left_out(current, placed)


def nobody_left_out(current: Ints, attempt: Callable[[Mask], _Attempt]) -> _Attempt | None:
    """Whoever would lose its node keeps it beforehand and all begin again, since sizes can leave a pod whose turn comes
    late no room by requests, not even at home. `attempt` is told who keeps; None when it does not settle."""
    kept = np.zeros(len(current), dtype=bool)
    for _ in range(_MOST_ROUNDS):
        found = attempt(kept)
        left_out = (found.at == NOWHERE) & (current != NOWHERE)
        if not left_out.any():
            return replace(found, kept_on_node=frozenset(np.flatnonzero(kept).tolist()))
        kept |= left_out
    return None


def heaviest_first(prepared: PreparedProblem, sizes: Floats, pods: Mask) -> Ints:
    """Those pods in the order of `ranking_by`."""
    order = ranking_by(prepared.arrays, sizes)
    return order[pods[order]]


@dataclass(slots=True)
class LeastLoaded:
    """Chooses the node with the least load before the pod comes; by name where loads are equal."""

    loads: NodeLoads
    now: Floats
    ranks: dict[int, int] = field(default_factory=dict)
    found: dict[int, float] = field(default_factory=dict)
    """The load of the node that each pod got, before it came."""

    @staticmethod
    def starting_from(loads: NodeLoads, at: Ints) -> LeastLoaded:
        return LeastLoaded(loads, loads.of(at))

    def __call__(self, pod: int, possible: Mask) -> int:
        seen = self.now.round(12)
        node = int(np.where(possible, seen, np.inf).argmin())
        self.ranks[pod] = 1 + int((seen < seen[node]).sum())
        self.found[pod] = float(seen[node])
        self.now[node] += float(self.loads.usage[:, pod] @ self.loads.factor[:, node])
        return node


def as_wanted(prepared: PreparedProblem, wanted: Ints, least_loaded: LeastLoaded) -> Choose:
    """The wanted node; a pod that it cannot take stays, or goes to the least loaded node if it cannot."""

    def choose(pod: int, possible: Mask) -> int:
        for node in (int(wanted[pod]), int(prepared.arrays.current[pod])):
            if node != NOWHERE and possible[node]:
                return least_loaded(pod, np.arange(len(possible)) == node)
        return least_loaded(pod, possible)

    return choose
