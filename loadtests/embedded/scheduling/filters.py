"""Which nodes a pod may run on, and why not the others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from loadtests.embedded.objects import condition_of, labels_of, name_of, spec_of
from loadtests.embedded.resources import Json
from loadtests.embedded.scheduling.occupancy import Amounts, NodeState
from loadtests.embedded.selectors import requirements_of
from matching.problem import ProblemError
from matching.selectors import matches

_UNSCHEDULABLE = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
_NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}


def refusal(pod: Json, wanted: Amounts, state: NodeState) -> str:
    """Why this node will not do, in kube-scheduler's words; empty when it will."""
    spec = pod["spec"]
    if spec.get("nodeName") and spec["nodeName"] != state.name:
        return "node(s) didn't match the requested node name"
    for taint in taints_of(state.node):
        if taint["effect"] != "PreferNoSchedule" and not tolerated(taint, spec.get("tolerations") or ()):
            return "node(s) were unschedulable" if taint == _UNSCHEDULABLE else "node(s) had untolerated taint(s)"
    if not _selected(spec, state.node):
        return "node(s) didn't match Pod's node affinity/selector"
    return _lack(wanted, state)


def unsupported(pod: Json) -> str:
    """The first hard constraint that this scheduler does not know; such a pod is left alone, never placed wrongly."""
    spec = pod["spec"]
    affinity = spec.get("affinity") or {}
    for kind in ("podAffinity", "podAntiAffinity"):
        if (affinity.get(kind) or {}).get("requiredDuringSchedulingIgnoredDuringExecution"):
            return f"spec.affinity.{kind}"
    spread = spec.get("topologySpreadConstraints") or ()
    if any(constraint.get("whenUnsatisfiable") == "DoNotSchedule" for constraint in spread):
        return "spec.topologySpreadConstraints"
    if any("persistentVolumeClaim" in volume for volume in spec.get("volumes") or ()):
        return "spec.volumes"
    containers: Iterable[Json] = spec["containers"]
    if any(port.get("hostPort") for container in containers for port in container.get("ports") or ()):
        return "hostPort"
    return "spec.resourceClaims" if spec.get("resourceClaims") else ""


def taints_of(node: Json) -> list[Json]:
    """The node's taints, with those that the node lifecycle controller would add for what the node says of itself."""
    taints = list(spec_of(node).get("taints") or ())
    known = {(taint.get("key"), taint.get("effect")) for taint in taints}
    ready = condition_of(node, "Ready")
    for holds, taint in (
        (spec_of(node).get("unschedulable"), _UNSCHEDULABLE),
        (ready is not None and ready.get("status") != "True", _NOT_READY),
    ):
        if holds and (taint["key"], taint["effect"]) not in known:
            taints.append(taint)
    return taints


def tolerated(taint: Json, tolerations: Iterable[Json]) -> bool:
    return any(_tolerates(toleration, taint) for toleration in tolerations)


def _tolerates(toleration: Json, taint: Json) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    operator, key = toleration.get("operator") or "Equal", toleration.get("key", "")
    if key and key != taint.get("key"):
        return False
    if operator == "Exists":
        return True
    return bool(key) and toleration.get("value", "") == taint.get("value", "")


def _selected(spec: Json, node: Json) -> bool:
    labels = labels_of(node)
    if any(labels.get(key) != value for key, value in (spec.get("nodeSelector") or {}).items()):
        return False
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if not required:
        return True
    return any(_term_holds(term, node) for term in required.get("nodeSelectorTerms") or ())


def _term_holds(term: Json, node: Json) -> bool:
    expressions, fields = term.get("matchExpressions") or (), term.get("matchFields") or ()
    if not expressions and not fields:
        return False
    return _hold(expressions, labels_of(node)) and _hold(fields, {"metadata.name": name_of(node)})


def _hold(expressions: Iterable[Json], labels: Mapping[str, str]) -> bool:
    """An unknown operator, or a bound that is no number, selects no node."""
    try:
        return matches(requirements_of(expressions), labels)
    except (ProblemError, ValueError, IndexError):
        return False


def _lack(wanted: Amounts, state: NodeState) -> str:
    if len(state.pods) + 1 > state.allocatable.get("pods", 0):
        return "Too many pods"
    for kind, amount in wanted.items():
        lacking = amount + state.requested.get(kind, 0.0) - state.allocatable.get(kind, 0.0)
        if amount > 0 and round(1000 * lacking) > 0:
            return f"Insufficient {kind}"
    return ""
