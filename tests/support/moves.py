"""Moves and plans by hand."""

from __future__ import annotations

from typing import Any

from matching.plan import BlockingPairs, Certificate, Measures, Plan, PlannedMove
from reactor.cluster.records import Pod
from reactor.state.moves import ActiveMoves, Move, MoveState, PodRef

_NOTHING = Measures({}, 0.0, (), 0)


def plan_move(pod: Pod, target: str) -> PlannedMove:
    return PlannedMove(pod.key, pod.uid, pod.node, target, 1, ("because",))


def make_move(pod: Pod, target: str, state: str = "planned", **fields: Any) -> Move:
    owner = pod.owner.name if pod.owner else pod.name
    return Move(
        f"move-{pod.name}",
        "plan-1",
        PodRef(pod.namespace, pod.name, pod.uid),
        pod.owner,
        pod.template_hash,
        f"{pod.namespace}/{owner}",
        pod.node or "",
        target,
        reasons=("because",),
        state=MoveState(state),
        **fields,
    )


def active_moves(moves: dict[Move, Pod] | None = None, **fields: Any) -> ActiveMoves:
    """The moves, each with the pod as it was planned."""
    moves = moves or {}
    return ActiveMoves(tuple(moves), {move.id: pod for move, pod in moves.items()}, **fields)


def make_plan(*moves: PlannedMove) -> Plan:
    return Plan("stable", moves, (), (), Certificate(True, (), BlockingPairs), _NOTHING, _NOTHING)
