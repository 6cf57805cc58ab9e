"""A plan for people (table, wide) and for programs (json, yaml)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import msgspec

from matching.plan import Certificate, Plan, PlannedMove, Rejected, Unplaced
from matching.serialization import plan_to_json
from reactor.cli.tables import table
from reactor.decision.decide import Decision
from reactor.state.snapshot import Needs, Snapshot


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
    if wide:
        parts += [_told(move) for move in plan.moves]
        parts += [_told_unplaced(left) for left in plan.unplaced]
    elif plan.moves:
        rows = [(move.pod, move.source or "<pending>", move.target, "; ".join(move.reasons)) for move in plan.moves]
        parts.append(table(("pod", "from", "to", "why"), rows))
    if plan.unplaced and not wide:
        homeless = [(left.pod, left.source or "<pending>", left.reason) for left in plan.unplaced]
        parts.append(table(("without a node", "from", "why"), homeless))
    if decision.waits:
        parts.append(table(("waits", "reason", "text"), [(w.pod, w.reason, w.text) for w in decision.waits]))
    if wide and plan.stays:
        parts.append(table(("stays", "node", "reason"), [(stay.pod, stay.node, stay.reason) for stay in plan.stays]))
    parts.append(_summary(planned))
    return "\n\n".join(parts)


def _told(move: PlannedMove) -> str:
    """One move as a paragraph."""
    where = f"moves from {move.source} to {move.target}" if move.source else f"goes to {move.target}"
    lines = [f"{move.pod} {where} (choice {move.rank})", *(f"  because {reason}" for reason in move.reasons)]
    return "\n".join([*lines, *_not_chosen(move.rejected)])


def _told_unplaced(left: Unplaced) -> str:
    fate = f"loses its node {left.source}" if left.source else "gets no node"
    return "\n".join([f"{left.pod} {fate}", f"  because {left.reason}", *_not_chosen(left.rejected)])


def _not_chosen(rejected: Iterable[Rejected]) -> list[str]:
    return [f"  others: {no.reason}" if no.node == "*" else f"  not {no.node}: {no.reason}" for no in rejected]


def _pairs(certificate: Certificate) -> str:
    causes = sorted({pair.cause for pair in certificate.blocking})
    return f"{certificate.blocking_pairs} blocking pairs" + (f" by {', '.join(causes)}" if causes else "")


def _summary(planned: Planned) -> str:
    plan = planned.plan
    certificate = plan.certificate
    dumped = f", {len(plan.dumped)} of them lose one" if plan.dumped else ""
    lines = [
        f"{len(plan.moves)} to move, {len(plan.stays)} stay, {len(plan.unplaced)} without a node{dumped}"
        f" (planner {plan.planner}: {'feasible' if certificate.feasible else 'NOT feasible'},"
        f" {_pairs(certificate)})",
        f"spread of node loads {plan.before.spread:.0%} -> {plan.after.spread:.0%}",
    ]
    if planned.snapshot.needs is Needs.REQUESTS:
        lines.append("no usage was measured: needs are the pods' requests")
    lines += [f"note: {note}" for note in plan.notes]
    lines += [f"violation: {violation}" for violation in certificate.violations]
    return "\n".join(lines)
