"""Places pods one after the other on what the pods before them have left."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np

from matching.array_types import NOWHERE, Floats, Ints, Mask
from matching.model.ledger import Ledger
from matching.planning.node_loads import NodeLoads
from matching.planning.outcome import Choice
from matching.planning.prepared import PreparedProblem
from matching.preferences import ranking_by

Choose = Callable[[int, Mask], int]
"""Takes a pod and the nodes that can take it (at least one), and returns the node that it gets."""

_MOST_ROUNDS = 5


@dataclass(frozen=True, slots=True)
class Placed:
    at: Ints
    kept_on_node: frozenset[int] = frozenset()
    """Running pods that stay: at their turn no node, not even their current one, had room by requests."""


_Attempt = TypeVar("_Attempt", Choice, Placed)


def place_in_turn(prepared: PreparedProblem, pods: Iterable[int], at: Ints, choose: Choose) -> Ints:
    """The other pods stay as in `at`; a pod that no node can take ends NOWHERE."""
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
    """Place the pods in turn so that every running pod ends with a node. `begin` gets the placement of the pods that do
    not take part and returns the chooser. None as in `nobody_left_out`."""
    current = prepared.arrays.current

    def placed(kept: Mask) -> Placed:
        turns = pods[~kept[pods]]
        start = current.copy()
        start[turns] = NOWHERE
        return Placed(place_in_turn(prepared, turns.tolist(), start, begin(start)))

    return nobody_left_out(current, placed)


def nobody_left_out(current: Ints, attempt: Callable[[Mask], _Attempt]) -> _Attempt | None:
    """Pods differ in size, so a pod whose turn comes late may find no room by requests, not even on its current node.
    Such pods keep their node, and all others choose again. `attempt` gets the pods that keep their node. None when
    pods are still left out after several rounds."""
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
    """Chooses the node with the least load before the pod comes; ties go by name."""

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
    """The wanted node, else the current one, else the least loaded node that can take the pod."""

    def choose(pod: int, possible: Mask) -> int:
        for node in (int(wanted[pod]), int(prepared.arrays.current[pod])):
            if node != NOWHERE and possible[node]:
                return least_loaded(pod, np.arange(len(possible)) == node)
        return least_loaded(pod, possible)

    return choose
