"""Taints and tolerations, cordoned nodes, nodes that are not ready. PreferNoSchedule is a soft constraint (`soft`)."""

from __future__ import annotations

from matching.problem import Node, Rules, Taint, Toleration

UNSCHEDULABLE = Taint("node.kubernetes.io/unschedulable", "NoSchedule")
"""A cordoned node counts as tainted with this, so a pod that tolerates it may still go there."""

HARD = ("NoSchedule", "NoExecute")


_REMOVAL = frozenset(
    {"ToBeDeletedByClusterAutoscaler", "DeletionCandidateOfClusterAutoscaler", "karpenter.sh/disrupted"}
)


def removal_taint(taints: tuple[Taint, ...]) -> str:
    """The taint by which an autoscaler marks a node that it is about to remove; empty without one. Some of them only
    prefer that pods go elsewhere."""
    return next((taint.key for taint in taints if taint.key in _REMOVAL), "")


def cordoned(node: Node) -> bool:
    """Whether somebody is emptying the node: `kubectl cordon`, the same as a taint, or an autoscaler. No running pod is
    moved there, whatever it tolerates. A pending one may go there if it tolerates that, as in kube-scheduler."""
    marked = any(taint.key == UNSCHEDULABLE.key and taint.effect in HARD for taint in node.taints)
    return node.unschedulable or marked or bool(removal_taint(node.taints))


def readiness_veto(_rules: Rules, node: Node) -> str:
    return "" if node.ready else "not ready"


def veto(rules: Rules, node: Node) -> str:
    if node.unschedulable and not tolerated(UNSCHEDULABLE, rules.tolerations):
        return "unschedulable"
    return taint_veto(rules, node)


def taint_veto(rules: Rules, node: Node) -> str:
    """By the taints alone, whether the node is cordoned or not."""
    for taint in node.taints:
        if taint.effect in HARD and not tolerated(taint, rules.tolerations):
            return f"taint {_text(taint)} is not tolerated"
    return ""


def eviction_reason(rules: Rules, node: Node) -> str:
    """Why a pod that runs on the node may not stay: NoExecute is the only constraint that evicts."""
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
