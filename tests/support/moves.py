"""Moves and runs by hand."""

from __future__ import annotations

from typing import Any

from matching.plan import Certificate, Measures, Plan, PlannedMove
from reactor.cluster.records import Pod
from reactor.state.moves import Move, MoveState

_NOTHING = Measures({}, 0.0, (), 0)


def make_move(pod: Pod, target: str) -> PlannedMove:
    return PlannedMove(pod.key, pod.uid, pod.node, target, 1, ("because",))


def make_run(pod: Pod, target: str, stage: str = "planned", **fields: Any) -> Move:
    owner = pod.owner.name if pod.owner else pod.name
    run = Move(f"run-{pod.name}", "plan-1", make_move(pod, target), pod, f"{pod.namespace}/{owner}", MoveState(stage))
    fields.setdefault("siblings", frozenset({pod.uid}) if run.in_flight else frozenset())
    return Move(run.id, run.plan_id, run.move, run.pod, run.workload, run.state, **fields)


def make_plan(*moves: PlannedMove) -> Plan:
    return Plan("stable", moves, (), (), Certificate(True, (), ()), _NOTHING, _NOTHING)
