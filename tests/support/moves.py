"""Moves and runs by hand."""

from __future__ import annotations

from typing import Any

from matching.plan import Certificate, Measures, Move, Plan
from reactor.cluster.records import Pod
from reactor.execution.journal import MoveRun, Stage

_NOTHING = Measures({}, 0.0, (), 0)


def make_move(pod: Pod, target: str) -> Move:
    return Move(pod.key, pod.uid, pod.node, target, 1, ("because",))


def make_run(pod: Pod, target: str, stage: str = "planned", **fields: Any) -> MoveRun:
    owner = pod.owner.name if pod.owner else pod.name
    run = MoveRun(f"run-{pod.name}", "plan-1", make_move(pod, target), pod, f"{pod.namespace}/{owner}", Stage(stage))
    fields.setdefault("siblings", frozenset({pod.uid}) if run.in_flight else frozenset())
    return MoveRun(run.id, run.plan_id, run.move, run.pod, run.workload, run.stage, **fields)


def make_plan(*moves: Move) -> Plan:
    return Plan("stable", moves, (), (), Certificate(True, (), ()), _NOTHING, _NOTHING)
