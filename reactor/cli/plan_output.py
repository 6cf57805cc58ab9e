"""A plan as text (table, wide) or as a document (json, yaml)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from matching.missing_text import missing_text
from matching.plan import Certificate, Plan, PlanBenefit, PlannedMove, PowerUse, Rejected, Unplaced
from matching.serialization import plan_to_json
from reactor.cli.output import table, to_json, to_yaml
from reactor.decision.decide import Decision
from reactor.record.unhappy_pods import unhappy_pods
from reactor.state.snapshot import Needs

DISTANCE = "distance: between what the pod uses and the room on a node; 0 is a perfect fit"
"""For texts with the planner's distances."""


@dataclass(frozen=True, slots=True)
class ShownPlan:
    """`staying` is set for a stored problem or plan: then the pods that stay are only counted in JSON."""

    plan: Plan
    staying: int | None = None
    decision: Decision | None = None
    needs: Needs | None = None


def render(shown: ShownPlan, output: str) -> str:
    if output == "json":
        return to_json(document(shown))
    if output == "yaml":
        return to_yaml(document(shown))
    return _text(shown, wide=output == "wide")


def document(shown: ShownPlan) -> dict[str, Any]:
    """The public format of a plan. A plan that was made just now also has the decision."""
    found = plan_to_json(shown.plan, stays=shown.staying is None)
    decision = shown.decision
    if decision is None:
        return found
    return found | {
        "needs": shown.needs,
        "unhappy": unhappy_pods(decision),
        "waits": [
            {"pod": wait.pod, "uid": wait.uid, "reason": wait.reason, "text": wait.text} for wait in decision.waits
        ],
    }


def _text(shown: ShownPlan, *, wide: bool) -> str:
    plan = shown.plan
    waits = shown.decision.waits if shown.decision is not None else ()
    parts = []
    if wide:
        parts += [_move_paragraph(move) for move in plan.moves]
        parts += [_unplaced_paragraph(left) for left in plan.unplaced]
    elif plan.moves:
        rows = [(move.pod, move.source or "<pending>", move.target, "; ".join(move.reasons)) for move in plan.moves]
        parts.append(table(("pod", "from", "to", "why"), rows))
    if plan.unplaced and not wide:
        unplaced = [(left.pod, left.source or "<pending>", left.reason) for left in plan.unplaced]
        parts.append(table(("without a node", "from", "why"), unplaced))
    if waits:
        parts.append(table(("waits", "reason", "text"), [(w.pod, w.reason, w.text) for w in waits]))
    if wide and plan.stays:
        parts.append(table(("stays", "node", "reason"), [(stay.pod, stay.node, stay.reason) for stay in plan.stays]))
    explained = [DISTANCE] if any("distance" in part for part in parts) else []
    parts.append("\n".join([_summary(shown, wide=wide), *explained]))
    return "\n\n".join(parts)


def _move_paragraph(move: PlannedMove) -> str:
    where = f"moves from {move.source} to {move.target}" if move.source else f"goes to {move.target}"
    lines = [f"{move.pod} {where} (choice {move.rank})", *(f"  because {reason}" for reason in move.reasons)]
    return "\n".join([*lines, *_not_chosen(move.rejected)])


def _unplaced_paragraph(left: Unplaced) -> str:
    fate = f"loses its node {left.source}" if left.source else "gets no node"
    return "\n".join([f"{left.pod} {fate}", f"  because {left.reason}", *_not_chosen(left.rejected)])


def _not_chosen(rejected: Iterable[Rejected]) -> list[str]:
    return [f"  others: {no.reason}" if no.node == "*" else f"  not {no.node}: {no.reason}" for no in rejected]


def _benefit(benefit: PlanBenefit) -> str:
    minutes = f"failing pod-minutes within {benefit.horizon / 60:g} min {benefit.without:.1f} -> {benefit.expected:.1f}"
    lost = f"requests lost {benefit.lost_without:.2%} -> {benefit.lost:.2%}"
    demanded = f", at least {benefit.required_ratio:g} demanded" if benefit.required_ratio else ""
    return f"expected {minutes}, {lost}; price {benefit.price:.1f} pod-minutes ({benefit.ratio:.1f} times{demanded})"


def _power(power: PowerUse) -> str:
    nodes = f"{len(power.idle)} idle {'node' if len(power.idle) == 1 else 'nodes'}"
    return f"{power.watts:.0f} W" + (f" ({power.idle_watts:.0f} W by {nodes})" if power.idle else "")


def _pairs(certificate: Certificate) -> str:
    causes = sorted({pair.cause for pair in certificate.blocking})
    return f"{certificate.blocking_pairs} blocking pairs" + (f" by {', '.join(causes)}" if causes else "")


def _summary(shown: ShownPlan, *, wide: bool) -> str:
    plan = shown.plan
    staying = len(plan.stays) if shown.staying is None else shown.staying
    certificate = plan.certificate
    dumped = f", {len(plan.dumped)} of them lose one" if plan.dumped else ""
    lines = [
        f"{len(plan.moves)} to move, {staying} stay, {len(plan.unplaced)} without a node{dumped}"
        f" (planner {plan.planner}: {'feasible' if certificate.feasible else 'NOT feasible'}"
        f"{f', {_pairs(certificate)}' if wide else ''})",
        f"spread of node loads {plan.before.spread:.0%} -> {plan.after.spread:.0%}",
    ]
    benefit = plan.benefit
    if benefit is not None and benefit.price > 0 and (wide or benefit.required_ratio):
        lines.append(_benefit(benefit))
    if wide and plan.before.power is not None and plan.after.power is not None:
        lines.append(f"power, estimated: {_power(plan.before.power)} -> {_power(plan.after.power)}")
    if plan.missing is not None:
        lines.append(f"missing: {missing_text(plan.missing)}")
    if shown.needs is Needs.REQUESTS:
        lines.append("no usage was measured: needs are the pods' requests")
    lines += [f"note: {note}" for note in plan.notes]
    lines += [f"violation: {violation}" for violation in certificate.violations]
    return "\n".join(lines)
