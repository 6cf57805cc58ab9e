"""Why each pod is moved, why to that node, and why not to the others. For pods without a node: what is missing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from matching.array_types import NOWHERE, Ints, Mask
from matching.model.arrays import Arrays
from matching.model.ledger import Ledger
from matching.plan import Measures, PlannedMove, Rejected, Unplaced
from matching.planning.move_order import by_value
from matching.planning.outcome import Choice, PlannerReasons
from matching.planning.prepared import PreparedProblem
from matching.planning.reasons.obstacles import ALL_NODES, Kind, Obstacles, kind_of_nodes
from matching.planning.reasons.replay import Turn, positions, ranks_of, turns
from matching.planning.reasons.wording import (
    PENDING,
    degraded,
    makes_room,
    may_not_stay,
    nearer_fit,
    percent,
    plural,
    shares,
    unhappy_on,
)
from matching.problem import Pod

MOST_EXPLAINED = 100
"""Moves of one plan with a list of rejected nodes. Longer plans give the other moves in brief: nobody reads ten
thousand lists, and each costs time. `matching.explain` gives them on demand."""


def explained(
    prepared: PreparedProblem, choice: Choice, before: Measures
) -> tuple[dict[int, PlannedMove], list[Unplaced]]:
    """Moves by preference: the most valuable ones with their rejected nodes, the others in brief."""
    unplaced: list[Unplaced] = []
    asked = choice.chose & ((choice.at != prepared.arrays.current) | (choice.at == NOWHERE))
    ends = _ends(prepared, choice, choice.at[asked].tolist())
    in_brief = np.zeros_like(asked)
    moving = np.flatnonzero(asked & (choice.at != NOWHERE))
    in_brief[by_value(prepared.arrays, prepared.ranking, moving)[MOST_EXPLAINED:]] = True
    moves = brief_moves(prepared, choice, in_brief, before, ends) if in_brief.any() else {}
    for turn in turns(prepared, choice, asked & ~in_brief):
        target = int(choice.at[turn.pod])
        if target == NOWHERE:
            unplaced.append(no_node(prepared, turn.ledger, turn.pod))
        else:
            moves[turn.pod] = _MoveExplanation(prepared, turn, target).move(choice, before, ends[target])
    return moves, unplaced


def _ends(prepared: PreparedProblem, choice: Choice, targets: Iterable[int]) -> dict[int, str]:
    """How loaded those nodes will be when the plan is done."""
    final = Ledger(prepared.arrays, choice.at).shares().T
    axes = prepared.arrays.axes
    return {node: f"at peak it will be at {shares(axes, final[node].tolist())}" for node in {*targets} - {NOWHERE}}


class _MoveExplanation:
    """One pod at its turn."""

    def __init__(self, prepared: PreparedProblem, turn: Turn, target: int) -> None:
        self._prepared, self._pod, self._target = prepared, turn.pod, target
        self._current = int(prepared.arrays.current[turn.pod])
        self._obstacles = Obstacles(prepared, turn.ledger, turn.pod)
        self._order = prepared.preferences.order(turn.pod, self._obstacles.allowed, turn.matched)
        self._position = positions(self._order, len(prepared.arrays.nodes))
        self._rank = int(self._position[target])
        self._distances = prepared.preferences.distances(turn.pod, turn.matched)
        self._replicas = ReplicaTexts(prepared.arrays, turn.pod, turn.matched.where)

    def move(self, choice: Choice, before: Measures, after: str) -> PlannedMove:
        arrays = self._prepared.arrays
        pod, target = arrays.pods[self._pod], arrays.nodes[self._target].name
        rank, distance = self._rank, self._distances[self._target]
        reasons = [
            self._why_pod(before),
            f"{target} is choice {rank} of {len(self._order)}, distance {distance:.2f}"
            f"{self._replicas.of(self._target)}; {after}",
        ]
        if self._pod in choice.headroom:
            reasons.append(degraded(choice.headroom[self._pod], arrays.options.headroom))
        return _planned(pod, target, rank, tuple(reasons), self._rejected())

    def _why_pod(self, before: Measures) -> str:
        arrays, current = self._prepared.arrays, self._current
        if current == NOWHERE:
            return PENDING
        name = arrays.nodes[current].name
        if not self._obstacles.allowed[current]:
            return may_not_stay(name, self._obstacles.text(current))
        if arrays.unhappy[self._pod]:
            return unhappy_on(name, f"{percent(before.node_load[name])} at peak")
        if self._rank < self._position[current]:
            here, there = self._distances[current], self._distances[self._target]
            return nearer_fit(name, there, here, arrays.options.inertia)
        return makes_room(name, self._obstacles.text(current) or "it would be more loaded")

    def _rejected(self) -> tuple[Rejected, ...]:
        refused = np.flatnonzero(~self._obstacles.allowed)
        others = np.concatenate([self._order[self._order != self._target], refused])
        return self._obstacles.listed(others, self._why_not)

    def _why_not(self, node: int) -> str:
        """An obstacle matters only on a node that the pod prefers to the target."""
        position = int(self._position[node])
        if position < self._rank and (found := self._obstacles.text(node)):
            return found
        return f"choice {position}, distance {self._distances[node]:.2f}{self._replicas.of(node)}"


class ReplicaTexts:
    """Where the other replicas of a pod that is spread are, at its turn."""

    def __init__(self, arrays: Arrays, pod: int, where: Ints) -> None:
        spread = arrays.default_spread
        self._counts = None
        if spread is not None and spread.applies[pod]:
            self._counts = spread.replicas(pod, where[None])

    def of(self, node: int) -> str:
        if self._counts is None:
            return ""
        on_node, in_zone = (int(count[0, node]) for count in self._counts)
        if on_node:
            return f", {plural(on_node, 'replica')} of its workload there"
        return f", {plural(in_zone, 'replica')} of its workload in the zone" if in_zone else ""


def _planned(
    pod: Pod, target: str, rank: int, reasons: tuple[str, ...], rejected: tuple[Rejected, ...] = ()
) -> PlannedMove:
    if pod.node is not None and pod.strategy_reason:
        reasons = (*reasons, pod.strategy_reason)
    return PlannedMove(pod.key, pod.uid, pod.node, target, rank, reasons, rejected, pod.strategy)


def no_node(prepared: PreparedProblem, ledger: Ledger, pod: int) -> Unplaced:
    arrays, obstacles = prepared.arrays, Obstacles(prepared, ledger, pod)
    nodes = np.argsort(obstacles.kind, kind="stable")
    reason = f"fits on none of {plural(len(nodes), 'node')}: {obstacles.counted(nodes) or 'there are none'}"
    near = np.flatnonzero(obstacles.kind == Kind.TOO_LITTLE).tolist()
    if near:
        nearest = obstacles.nearest(near)
        kind = kind_of_nodes(arrays.pods[pod].rules)
        of_kind = "" if kind == ALL_NODES else f" of {kind}"
        reason += f"; nearest{of_kind}: {arrays.nodes[nearest].name} lacks {obstacles.missing(nearest)}"
    left = arrays.pods[pod]
    return Unplaced(left.key, left.uid, reason, obstacles.listed(nodes, obstacles.text), source=left.node)


def explained_by_planner(
    prepared: PreparedProblem, choice: Choice, reasons: PlannerReasons
) -> tuple[dict[int, PlannedMove], list[Unplaced]]:
    """Moves explained by the planner that made them. The other nodes are compared as the plan leaves them: by the
    planner's own cost, or by the obstacle there."""
    arrays, at = prepared.arrays, choice.at
    ledger = Ledger(arrays, at)
    moves: dict[int, PlannedMove] = {}
    for pod in by_value(arrays, prepared.ranking, np.flatnonzero((at != arrays.current) & (at != NOWHERE))):
        rejected = _rejected_nodes(prepared, ledger, pod, at, reasons) if len(moves) < MOST_EXPLAINED else ()
        target = arrays.nodes[int(at[pod])].name
        if pod in choice.redirected:
            rank, why = _redirected(prepared, pod, at, reasons)
        else:
            rank, why = reasons.rank(pod), reasons.why_moved(pod)
        moves[pod] = _planned(arrays.pods[pod], target, rank, why, rejected)
    without_node = np.flatnonzero((arrays.pending | (arrays.current != NOWHERE)) & (at == NOWHERE)).tolist()
    return moves, [no_node(prepared, ledger, pod) for pod in without_node]


def _redirected(prepared: PreparedProblem, pod: int, at: Ints, reasons: PlannerReasons) -> tuple[int, tuple[str, ...]]:
    """The planner chose another node, so its reasons are not about this one."""
    costs, node = reasons.costs(pod), int(at[pod])
    why = PENDING if prepared.arrays.pending[pod] else "moves, so that other moves can be carried out"
    return 1 + int((costs < costs[node]).sum()), (why, f"{prepared.arrays.nodes[node].name} has room for it")


def _rejected_nodes(
    prepared: PreparedProblem, ledger: Ledger, pod: int, at: Ints, reasons: PlannerReasons
) -> tuple[Rejected, ...]:
    target = int(at[pod])
    ledger.take(pod, target)
    obstacles = Obstacles(prepared, ledger, pod)
    costs, replicas = reasons.costs(pod), ReplicaTexts(prepared.arrays, pod, at)
    possible = (obstacles.kind <= Kind.CROWDED).astype(np.int64)
    order = np.lexsort((costs, -possible))

    def why_not(node: int) -> str:
        if not possible[node]:
            return obstacles.text(node)
        return reasons.describe_cost(float(costs[node])) + replicas.of(node)

    listed = obstacles.listed(order[order != target], why_not)
    ledger.put(pod, target)
    return listed


def brief_moves(
    prepared: PreparedProblem, choice: Choice, asked: Mask, before: Measures, ends: Mapping[int, str]
) -> dict[int, PlannedMove]:
    """Of the `asked` pods, which all took part and got another node. `ends`: the load of each target as text."""
    brief, pods = _BriefReasons(prepared, choice, before, asked), np.flatnonzero(asked)
    moves: dict[int, PlannedMove] = {}
    for pod, target, listed in zip(
        pods.tolist(), choice.at[pods].tolist(), prepared.candidates.numbers(pods).tolist(), strict=True
    ):
        name, rank = prepared.arrays.nodes[target].name, brief.rank[pod]
        where = f"{name} is choice {rank} of {listed}, distance {brief.there[pod]:.2f}; {ends[target]}"
        reasons = (brief.why(pod), where, *brief.less_headroom(pod))
        moves[pod] = _planned(prepared.arrays.pods[pod], name, rank, reasons)
    return moves


class _BriefReasons:
    def __init__(self, prepared: PreparedProblem, choice: Choice, before: Measures, asked: Mask) -> None:
        ranks = ranks_of(prepared, choice, asked)
        self._prepared, self._before, self._headroom = prepared, before, choice.headroom
        self._current, self._unhappy = prepared.arrays.current.tolist(), prepared.arrays.unhappy.tolist()
        self._may_stay = prepared.candidates.table(np.flatnonzero(asked))[2].tolist()
        self._nearer, self._here = ranks.nearer_than_current.tolist(), ranks.here.tolist()
        self.rank: list[int] = ranks.rank.tolist()
        self.there: list[float] = ranks.there.tolist()

    def why(self, pod: int) -> str:
        """Why this pod is moved."""
        current = self._current[pod]
        if current == NOWHERE:
            return PENDING
        name = self._prepared.arrays.nodes[current].name
        if not self._may_stay[pod]:
            return may_not_stay(name, self._prepared.candidates.why_not(pod, current))
        if self._unhappy[pod]:
            return unhappy_on(name, f"{percent(self._before.node_load[name])} at peak")
        if self._nearer[pod]:
            return nearer_fit(name, self.there[pod], self._here[pod], self._prepared.arrays.options.inertia)
        return makes_room(name)

    def less_headroom(self, pod: int) -> tuple[str, ...]:
        if pod not in self._headroom:
            return ()
        return (degraded(self._headroom[pod], self._prepared.arrays.options.headroom),)
