"""Why one pod is on its node and not on another one, now. No matching is made.

Other nodes are evaluated as if the pod moved there and all other pods stayed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from matching.array_types import NOWHERE
from matching.model.ledger import Ledger
from matching.plan import Rejected
from matching.planning.prepared import PreparedProblem, prepare
from matching.planning.reasons.moves import ReplicaTexts
from matching.planning.reasons.obstacles import Kind, Obstacles
from matching.planning.reasons.wording import PENDING, may_not_stay, percent, shares
from matching.preferences import MatchedLoads, Preferences
from matching.problem import Problem, ProblemError


@dataclass(frozen=True, slots=True)
class Explanation:
    why_here: tuple[str, ...]
    why_not: tuple[Rejected, ...]
    """The nodes it prefers first; the first few one by one, the rest counted under the name `*`."""
    fixed: str = ""
    """Why it may not be moved; empty when it may."""


def explain(problem: Problem, uid: str) -> Explanation:
    """Raise ProblemError when no pod of the problem has this UID."""
    prepared = prepare(problem)
    pod = next((at for at, each in enumerate(prepared.arrays.pods) if each.uid == uid), None)
    if pod is None:
        raise ProblemError(f"no pod of the problem has the uid {uid!r}")
    view = _PodView(prepared, pod)
    return Explanation(tuple(view.why_here()), view.why_not(), prepared.arrays.pods[pod].fixed)


class _PodView:
    """One pod's view of the nodes."""

    def __init__(self, prepared: PreparedProblem, pod: int) -> None:
        self._arrays, self._pod = prepared.arrays, pod
        self._in_scope = bool(prepared.movable[pod])
        self._current = int(prepared.arrays.current[pod])
        self._matched = MatchedLoads(prepared.arrays)
        self._replicas = ReplicaTexts(prepared.arrays, pod, self._matched.where)
        self._now = Ledger(prepared.arrays, prepared.arrays.current)
        others = prepared.arrays.current.copy()
        others[pod] = NOWHERE
        without_pod = Ledger(prepared.arrays, others)
        self._obstacles = Obstacles(prepared, without_pod, pod)
        preferences = self._preferences(prepared)
        self._distances = preferences.distances_of(np.array([pod]))[0]
        self._order = preferences.order(pod, self._obstacles.allowed, self._matched)
        self._position = {node: position for position, node in enumerate(self._order.tolist(), start=1)}
        self._with_pod = without_pod.shares_with(pod).max(axis=0, initial=0.0)
        self._relieving = self._matched.relieving(pod) if prepared.arrays.unhappy[pod] else None

    def why_here(self) -> Iterator[str]:
        arrays, pod, current = self._arrays, self._arrays.pods[self._pod], self._current
        if not pod.fixed and not self._in_scope and current != NOWHERE:
            yield f"a matching leaves it here: the scope is {arrays.options.scope.value}"
        if current == NOWHERE:
            yield PENDING if pod.node is None else f"its node {pod.node} is not in the problem"
            return
        name = arrays.nodes[current].name
        if current in self._position:
            choice = f"choice {self._position[current]} of the {len(self._order)} nodes it may use"
            yield f"{name} is {choice}, distance {self._distances[current]:.2f}"
        else:
            yield may_not_stay(name, self._obstacles.text(current))
        yield f"at peak {name} is at {shares(arrays.axes, self._now.shares()[:, current].tolist())}"
        yield from self._happiness(name)

    def why_not(self) -> tuple[Rejected, ...]:
        refused = np.flatnonzero(~self._obstacles.allowed)
        others = np.concatenate([self._order, refused])
        return self._obstacles.listed(others[others != self._current], self._against)

    def _happiness(self, current: str) -> Iterator[str]:
        options = self._arrays.options
        if self._relieving is not None:
            yield f"unhappy on {current}: {self._relief()}"
            return
        if self._current not in self._position:
            return
        nearest = int(np.where(self._obstacles.allowed, self._distances, np.inf).argmin())
        if self._position[self._current] == 1 and self._distances[nearest] < self._distances[self._current]:
            name = self._arrays.nodes[nearest].name
            yield f"happy, and stays by inertia: without the inertia of {options.inertia:g} it would prefer {name}"
        if self._with_pod[self._current] >= 1:
            yield f"happy, but the peaks on {current} do not fit: it may have to make room for pods that rank higher"
        elif self._arrays.headroom_exempt[self._pod] and self._with_pod[self._current] > 1 - options.headroom:
            yield "happy, so it needs no headroom to stay"

    def _relief(self) -> str:
        """Headroom is soft for an unhappy pod: a less loaded node is better even without it."""
        better = [node for node in self._order.tolist() if self._relieves(node)]
        roomy = [node for node in better if self._obstacles.kind[node] == Kind.NOTHING]
        crowded = [node for node in better if self._obstacles.kind[node] == Kind.CROWDED]
        if not roomy and not crowded:
            return "no other node that can take it would be clearly less loaded"
        best = min(roomy or crowded, key=self._with_pod.__getitem__)
        return f"{self._arrays.nodes[best].name} would be clearly less loaded"

    def _relieves(self, node: int) -> bool:
        return self._relieving is not None and node != self._current and bool(self._relieving[node])

    def _against(self, node: int) -> str:
        crowded = self._obstacles.kind[node] == Kind.CROWDED
        if self._relieves(node) and crowded:
            return f"clearly less loaded, but with less headroom than wanted: {self._loads(node)}"
        if found := self._obstacles.text(node):
            return found
        if self._current not in self._position:
            distance = f"distance {self._distances[node]:.2f}{self._replicas.of(node)}"
            return f"has room: choice {self._position[node]}, {distance}"
        if self._relieving is None:
            return self._by_nearness(node)
        return f"{'clearly less loaded' if self._relieves(node) else 'no relief'}: {self._loads(node)}"

    def _loads(self, node: int) -> str:
        here = self._matched.own_node_load(self._pod)
        loads = f"at peak it would be at {percent(self._with_pod[node])}, its own node is at {percent(here)}"
        return loads + self._replicas.of(node)

    def _by_nearness(self, node: int) -> str:
        there, here = self._distances[node], self._distances[self._current]
        distances = f"distance {there:.2f} against {here:.2f} here"
        if self._position[node] < self._position[self._current]:
            return f"{'a matching may move it there' if self._in_scope else 'preferred'}: {distances}"
        if there < here:
            return f"nearer, but not by the inertia of {self._arrays.options.inertia:g}: {distances}"
        return f"choice {self._position[node]}, not nearer: {distances}"

    def _preferences(self, prepared: PreparedProblem) -> Preferences:
        """As if the pod were movable, so that its current node can be compared with the others."""
        free = prepared.movable.copy()
        free[self._pod] = True
        return Preferences(prepared.arrays, free, prepared.ranking)
