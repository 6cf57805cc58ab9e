"""A plan in its public JSON form. Keys are camelCase and stay what they are: people's scripts read them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matching.plan import Certificate, Measures, Plan, PlannedMove, Rejected, Stay, Unplaced


def plan_to_json(plan: Plan) -> dict[str, Any]:
    return {
        "planner": plan.planner,
        "moves": [_move(move) for move in plan.moves],
        "stays": [_stay(stay) for stay in plan.stays],
        "unplaced": [_unplaced(pod) for pod in plan.unplaced],
        "certificate": _certificate(plan.certificate),
        "before": _measures(plan.before),
        "after": _measures(plan.after),
        "notes": list(plan.notes),
    }


def _move(move: PlannedMove) -> dict[str, Any]:
    return {
        "pod": move.pod,
        "uid": move.uid,
        "from": move.source,
        "to": move.target,
        "reasons": list(move.reasons),
        "rank": move.rank,
        "rejected": _rejected(move.rejected),
    }


def _stay(stay: Stay) -> dict[str, Any]:
    return {"pod": stay.pod, "uid": stay.uid, "node": stay.node, "reason": stay.reason}


def _unplaced(pod: Unplaced) -> dict[str, Any]:
    return {
        "pod": pod.pod,
        "uid": pod.uid,
        "from": pod.source,
        "reason": pod.reason,
        "rejected": _rejected(pod.rejected),
    }


def _rejected(nodes: Sequence[Rejected]) -> list[dict[str, Any]]:
    return [{"node": each.node, "reason": each.reason} for each in nodes]


def _certificate(certificate: Certificate) -> dict[str, Any]:
    return {
        "feasible": certificate.feasible,
        "blockingPairs": certificate.blocking_pairs,
        "violations": list(certificate.violations),
        "blocking": [{"pod": p.pod, "node": p.node, "cause": p.cause.value} for p in certificate.blocking],
    }


def _measures(measures: Measures) -> dict[str, Any]:
    return {
        "nodeLoad": dict(measures.node_load),
        "spread": measures.spread,
        "overloaded": list(measures.overloaded),
        "pending": measures.pending,
    }
