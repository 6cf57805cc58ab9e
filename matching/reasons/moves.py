"""Per move: why this pod, why that node, and why not the others. Per pod without a node: what is missing."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from matching.arrays import NOWHERE
from matching.case import Case
from matching.ledger import Ledger
from matching.order import by_value
from matching.outcome import Choice
from matching.plan import Measures, PlannedMove, Rejected, Unplaced
from matching.reasons.brief import brief_moves, places
from matching.reasons.missing import ALL_NODES, kind_of_nodes
from matching.reasons.obstacles import Kind, Obstacles
from matching.reasons.turns import Turn, turns
from matching.reasons.wording import (
    PENDING,
    degraded,
    makes_room,
    may_not_stay,
    nearer_fit,
    plural,
    shares,
    unhappy_on,
)

MOST_EXPLAINED = 100
"""Moves of one plan whose other nodes are listed: nobody reads ten thousand lists, and each costs time."""


def explained(case: Case, choice: Choice, before: Measures) -> tuple[dict[int, PlannedMove], list[Unplaced]]:
    """The most valuable moves with what was rejected, the others in brief."""
    unplaced: list[Unplaced] = []
    asked = choice.chose & ((choice.at != case.arrays.home) | (choice.at == NOWHERE))
    ends = _ends(case, choice, choice.at[asked].tolist())
    in_brief = np.zeros_like(asked)
    moving = np.flatnonzero(asked & (choice.at != NOWHERE))
    in_brief[by_value(case.arrays, case.ranking, moving)[MOST_EXPLAINED:]] = True
    moves = brief_moves(case, choice, in_brief, before, ends) if in_brief.any() else {}
    for turn in turns(case, choice, asked & ~in_brief):
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
        self._place = places(self._order, len(case.arrays.nodes))
        self._rank = int(self._place[target])
        self._distances = case.preferences.distances(turn.pod, turn.standing)

    def move(self, choice: Choice, before: Measures, after: str) -> PlannedMove:
        arrays = self._case.arrays
        pod, target = arrays.pods[self._pod], arrays.nodes[self._target].name
        rank, distance = self._rank, self._distances[self._target]
        reasons = [
            self._why_pod(before),
            f"{target} is choice {rank} of {len(self._order)}, distance {distance:.2f}; {after}",
        ]
        if self._pod in choice.headroom:
            reasons.append(degraded(choice.headroom[self._pod], arrays.options.headroom))
        return PlannedMove(pod.key, pod.uid, pod.node, target, rank, tuple(reasons), self._rejected(), pod.strategy)

    def _why_pod(self, before: Measures) -> str:
        arrays, home = self._case.arrays, self._home
        if home == NOWHERE:
            return PENDING
        name = arrays.nodes[home].name
        if not self._obstacles.allowed[home]:
            return may_not_stay(name, self._obstacles.text(home))
        if arrays.unhappy[self._pod]:
            return unhappy_on(name, before.node_load[name])
        if self._rank < self._place[home]:
            here, there = self._distances[home], self._distances[self._target]
            return nearer_fit(name, there, here, arrays.options.inertia)
        return makes_room(name, self._obstacles.text(home) or "it would be more crowded")

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


def no_node(case: Case, ledger: Ledger, pod: int) -> Unplaced:
    arrays, obstacles = case.arrays, Obstacles(case, ledger, pod)
    nodes = np.argsort(obstacles.kind, kind="stable")
    reason = f"fits on none of {plural(len(nodes), 'node')}: {obstacles.counted(nodes) or 'there are none'}"
    near = np.flatnonzero(obstacles.kind == Kind.TOO_LITTLE).tolist()
    if near:
        nearest = near[int(obstacles.shortfall(near).sum(axis=0).argmin())]
        kind = kind_of_nodes(arrays.pods[pod].rules)
        of_kind = "" if kind == ALL_NODES else f" of {kind}"
        reason += f"; nearest{of_kind}: {arrays.nodes[nearest].name} lacks {obstacles.missing(nearest)}"
    left = arrays.pods[pod]
    return Unplaced(left.key, left.uid, reason, obstacles.listed(nodes, obstacles.text), source=left.node)
