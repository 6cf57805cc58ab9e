"""Per move: why this pod, why that node, and why not the others. Per pod without a node: what is missing."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from matching.arrays import NOWHERE
from matching.case import Case
from matching.ledger import Ledger
from matching.outcome import Choice
from matching.plan import Measures, Move, Rejected, Unplaced
from matching.reasons.obstacles import Kind, Obstacles
from matching.reasons.wording import percent, plural, shares


def explained(case: Case, choice: Choice, before: Measures) -> tuple[dict[int, Move], list[Unplaced]]:
    """The choice is gone through again in rank order, so that each pod is explained by what it found at its turn."""
    moves: dict[int, Move] = {}
    unplaced: list[Unplaced] = []
    final = Ledger(case.arrays, choice.at).shares().T.tolist()
    ends = [f"at peak it will be at {shares(case.arrays.axes, loads)}" for loads in final]
    for pod, ledger in _turns(case, choice):
        target = int(choice.at[pod])
        if target == NOWHERE:
            unplaced.append(no_node(case, ledger, pod))
        elif target != case.arrays.home[pod]:
            moves[pod] = _Explanation(case, ledger, pod, target).move(choice, before, ends[target])
    return moves, unplaced


def _turns(case: Case, choice: Choice) -> Iterator[tuple[int, Ledger]]:
    ledger = Ledger(case.arrays, np.where(choice.chose, NOWHERE, choice.at))
    for pod in case.ranking[choice.chose[case.ranking]].tolist():
        yield pod, ledger
        if choice.at[pod] != NOWHERE:
            ledger.put(pod, int(choice.at[pod]))


class _Explanation:
    """One pod at its turn."""

    def __init__(self, case: Case, ledger: Ledger, pod: int, target: int) -> None:
        self._case, self._pod, self._target = case, pod, target
        self._home = int(case.arrays.home[pod])
        self._obstacles = Obstacles(case, ledger, pod)
        self._order = case.preferences.order(pod, self._obstacles.allowed)
        self._place = np.zeros(len(case.arrays.nodes), dtype=np.int64)
        self._place[self._order] = np.arange(1, len(self._order) + 1)
        self._distances = case.preferences.distances(pod)

    def move(self, choice: Choice, before: Measures, after: str) -> Move:
        arrays = self._case.arrays
        pod, target = arrays.pods[self._pod], arrays.nodes[self._target].name
        rank = int(self._place[self._target])
        distance = self._distances[self._target]
        reasons = [
            self._why_pod(before),
            f"{target} is choice {rank} of {len(self._order)}, distance {distance:.2f}; {after}",
        ]
        if self._pod in choice.headroom:
            reasons.append(degraded(choice.headroom[self._pod], arrays.options.headroom))
        return Move(pod.key, pod.uid, pod.node, target, rank, tuple(reasons), self._rejected())

    def _why_pod(self, before: Measures) -> str:
        arrays, home = self._case.arrays, self._home
        if home == NOWHERE:
            return "pending: it has no node"
        name = arrays.nodes[home].name
        if not self._obstacles.allowed[home]:
            return f"may not stay on {name}: {self._obstacles.text(home)}"
        if arrays.unhappy[self._pod]:
            return f"unhappy on {name}, which is at {percent(before.node_load[name])} at peak"
        if self._place[self._target] < self._place[home]:
            here, there = self._distances[home], self._distances[self._target]
            return (
                f"nearer fit than {name}: distance {there:.2f} against {here:.2f}, inertia {arrays.options.inertia:g}"
            )
        found = self._obstacles.text(home) or "it would be more crowded"
        return f"makes room: {name} is left to pods that rank higher ({found})"

    def _rejected(self) -> tuple[Rejected, ...]:
        refused = np.flatnonzero(~self._obstacles.allowed)
        others = np.concatenate([self._order[self._order != self._target], refused])
        return self._obstacles.listed(others, self._why_not)

    def _why_not(self, node: int) -> str:
        """What is in the way matters only on a node that the pod would have liked better."""
        place = int(self._place[node])
        if place < self._place[self._target] and (found := self._obstacles.text(node)):
            return found
        return f"choice {place}, distance {self._distances[node]:.2f}"


def degraded(given: float | None, wanted: float) -> str:
    if given is None:
        return "degraded: no node has room for its peak, this one ends least overloaded"
    return f"degraded: no node leaves {percent(wanted)} headroom, this one leaves {percent(given)}"


def no_node(case: Case, ledger: Ledger, pod: int) -> Unplaced:
    arrays, obstacles = case.arrays, Obstacles(case, ledger, pod)
    nodes = np.argsort(obstacles.kind, kind="stable")
    reason = f"fits on none of {plural(len(nodes), 'node')}: {obstacles.counted(nodes) or 'there are none'}"
    near = np.flatnonzero(obstacles.kind == Kind.TOO_LITTLE).tolist()
    if near:
        nearest = near[int(obstacles.shortfall(near).sum(axis=0).argmin())]
        reason += f"; nearest: {arrays.nodes[nearest].name} lacks {obstacles.missing(nearest)}"
    return Unplaced(arrays.pods[pod].key, arrays.pods[pod].uid, reason, obstacles.listed(nodes, obstacles.text))
