"""A plan for people (table, wide) and for programs (json, yaml)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from matching.jsonform import plan_to_json
from matching.plan import Certificate, Move, Plan
from reactor.cli.tables import table
from reactor.decision import Decision
from reactor.snapshot import Needs, Snapshot


@dataclass(frozen=True, slots=True)
class Planned:
    snapshot: Snapshot
    decision: Decision
    plan: Plan


def render(planned: Planned, output: str) -> str:
    if output == "json":
        return msgspec.json.format(msgspec.json.encode(document(planned)), indent=2).decode()
    if output == "yaml":
        return msgspec.yaml.encode(document(planned)).decode().rstrip()
    return _for_people(planned, wide=output == "wide")


def document(planned: Planned) -> dict[str, Any]:
    """The public format of a plan, and beside it what the decision said."""
    decision = planned.decision
    return plan_to_json(planned.plan) | {
        "needs": planned.snapshot.needs,
        "unhappy": [
            {
                "pod": one.pod,
                "uid": one.uid,
                "happiness": round(one.mood.probability, 4),
                "threshold": one.mood.threshold.value,
                "cause": one.cause,
            }
            for one in decision.unhappy
        ],
        "waits": [
            {"pod": wait.pod, "uid": wait.uid, "reason": wait.reason, "text": wait.text} for wait in decision.waits
        ],
    }


def _for_people(planned: Planned, *, wide: bool) -> str:
    plan, decision = planned.plan, planned.decision
    parts = []
    if plan.moves:
        rows = [(move.pod, move.source or "<pending>", move.target, _why(move, wide=wide)) for move in plan.moves]
        parts.append(table(("pod", "from", "to", "why"), rows))
    if plan.unplaced:
        parts.append(table(("unplaced", "reason"), [(left.pod, left.reason) for left in plan.unplaced]))
    if decision.waits:
        parts.append(table(("waits", "reason", "text"), [(w.pod, w.reason, w.text) for w in decision.waits]))
    if wide and plan.stays:
        parts.append(table(("stays", "node", "reason"), [(stay.pod, stay.node, stay.reason) for stay in plan.stays]))
    parts.append(_summary(planned))
    return "\n\n".join(parts)


def _why(move: Move, *, wide: bool) -> str:
    reasons = "; ".join(move.reasons)
    if not wide or not move.rejected:
        return reasons
    return reasons + "; not " + ", ".join(f"{no.node} ({no.reason})" for no in move.rejected)


def _pairs(certificate: Certificate) -> str:
    causes = sorted({pair.cause for pair in certificate.blocking})
    return f"{certificate.blocking_pairs} blocking pairs" + (f" by {', '.join(causes)}" if causes else "")


def _summary(planned: Planned) -> str:
    plan = planned.plan
    certificate = plan.certificate
    lines = [
        f"{len(plan.moves)} to move, {len(plan.stays)} stay, {len(plan.unplaced)} without a node"
        f" (planner {plan.planner}: {'feasible' if certificate.feasible else 'NOT feasible'},"
        f" {_pairs(certificate)})",
        f"spread of node loads {plan.before.spread:.0%} -> {plan.after.spread:.0%}",
    ]
    if planned.snapshot.needs is Needs.REQUESTS:
        lines.append("no usage was measured: needs are the pods' requests")
    lines += [f"note: {note}" for note in plan.notes]
    lines += [f"violation: {violation}" for violation in certificate.violations]
    return "\n".join(lines)
