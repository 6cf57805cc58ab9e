"""Per move: why this pod, why that node, and why not the others. Per pod without a node: what is missing."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from matching.arrays import NOWHERE
from matching.case import Case
from matching.ledger import Ledger
from matching.outcome import Choice
from matching.plan import Measures, Move, Rejected, Unplaced
from matching.reasons.obstacles import Kind, Obstacles
from matching.reasons.turns import Turn, turns
from matching.reasons.wording import percent, plural, shares


def explained(case: Case, choice: Choice, before: Measures) -> tuple[dict[int, Move], list[Unplaced]]:
    moves: dict[int, Move] = {}
    unplaced: list[Unplaced] = []
    asked = choice.chose & ((choice.at != case.arrays.home) | (choice.at == NOWHERE))
    ends = _ends(case, choice, choice.at[asked].tolist())
    for turn in turns(case, choice, asked):
        target = int(choice.at[turn.pod])
        if target == NOWHERE:
            unplaced.append(no_node(case, turn.ledger, turn.pod))
        else:
            moves[turn.pod] = _Explanation(case, turn, target).move(choice, before, ends[target])
    return moves, unplaced


def _ends(case: Case, choice: Choice, targets: Iterable[int]) -> dict[int, str]:
    """How loaded those nodes will be when everything is done."""
    final = Ledger(case.arrays, choice.at).shares().T
    axes = case.arrays.axes
    return {node: f"at peak it will be at {shares(axes, final[node].tolist())}" for node in {*targets} - {NOWHERE}}


class _Explanation:
    """One pod at its turn."""

    def __init__(self, case: Case, turn: Turn, target: int) -> None:
        self._case, self._pod, self._target = case, turn.pod, target
        self._home = int(case.arrays.home[turn.pod])
        self._obstacles = Obstacles(case, turn.ledger, turn.pod)
        self._order = case.preferences.order(turn.pod, self._obstacles.allowed, turn.standing)
        self._place = np.zeros(len(case.arrays.nodes), dtype=np.int64)
        self._place[self._order] = np.arange(1, len(self._order) + 1)
        self._rank = int(self._place[target])
        self._distances = case.preferences.distances(turn.pod)

    def move(self, choice: Choice, before: Measures, after: str) -> Move:
        arrays = self._case.arrays
        pod, target = arrays.pods[self._pod], arrays.nodes[self._target].name
        rank, distance = self._rank, self._distances[self._target]
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
        if self._rank < self._place[home]:
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
        if place < self._rank and (found := self._obstacles.text(node)):
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
    left = arrays.pods[pod]
    return Unplaced(left.key, left.uid, reason, obstacles.listed(nodes, obstacles.text))
