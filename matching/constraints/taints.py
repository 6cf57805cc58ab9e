"""Taints and tolerations. PreferNoSchedule is a wish, not a rule, and is ignored here."""

from __future__ import annotations

from matching.problem import Node, Rules, Taint, Toleration

UNSCHEDULABLE = Taint("node.kubernetes.io/unschedulable", "NoSchedule")
"""A cordoned node counts as tainted with this, so a pod that tolerates it may still go there."""

HARD = ("NoSchedule", "NoExecute")


def veto(rules: Rules, node: Node) -> str:
    if node.unschedulable and not tolerated(UNSCHEDULABLE, rules.tolerations):
        return "unschedulable"
    return repels(rules, node)


def repels(rules: Rules, node: Node) -> str:
    """By its taints alone, cordoned or not."""
    for taint in node.taints:
        if taint.effect in HARD and not tolerated(taint, rules.tolerations):
            return f"taint {_text(taint)} is not tolerated"
    return ""


def drives_out(rules: Rules, node: Node) -> str:
    """NoExecute is the one rule that also holds for a pod that already runs on the node."""
    for taint in node.taints:
        if taint.effect == "NoExecute" and not tolerated(taint, rules.tolerations):
            return f"taint {_text(taint)} is not tolerated"
    return ""


def tolerated(taint: Taint, tolerations: tuple[Toleration, ...]) -> bool:
    return any(_tolerates(toleration, taint) for toleration in tolerations)


def _tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect not in ("", taint.effect) or toleration.key not in ("", taint.key):
        return False
    if toleration.operator == "Exists":
        return True
    return toleration.operator in ("", "Equal") and toleration.value == taint.value


def _text(taint: Taint) -> str:
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"
