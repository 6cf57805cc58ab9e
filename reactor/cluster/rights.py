"""What the controller's account may do, and why: the one list that the chart, `rematch doctor` and the tests share.

After a change run `make manifests`, which writes it into the chart.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from reactor.cluster.kinds import CLUSTER_KINDS, Kind

INSTALL = "kubectl apply --server-side -f deploy/rematch.yaml -l app.kubernetes.io/component!=settings"
"""Brings rights, CRDs and policies where Helm is not used, and leaves the settings as they are."""


class Scope(StrEnum):
    CLUSTER = "cluster"
    """In all namespaces, whatever is managed: the room on a node depends on all of its pods."""
    PODS = "pods"
    """In all namespaces, or in those of the chart's `rbac.namespaces`: changes to workloads."""
    OWN = "own"
    """In the controller's namespace."""


@dataclass(frozen=True, slots=True)
class Rule:
    """As in a Role, for one API group."""

    scope: Scope
    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    why: str
    names: tuple[str, ...] = ()
    """Only these objects."""


@dataclass(frozen=True, slots=True)
class Right:
    """One thing to ask the API server about."""

    group: str
    resource: str
    verb: str
    scope: Scope
    why: str
    name: str = ""


def _watched() -> Iterator[Rule]:
    groups: dict[str, list[str]] = {}
    for kind in CLUSTER_KINDS:
        groups.setdefault(_group(kind), []).append(kind.value)
    for group, resources in groups.items():
        yield Rule(Scope.CLUSTER, group, tuple(resources), ("list", "watch"), "signals and state")


def _group(kind: Kind) -> str:
    path = kind.path()
    return path.split("/")[2] if path.startswith("/apis/") else ""


RULES: tuple[Rule, ...] = (
    *_watched(),
    Rule(Scope.CLUSTER, "metrics.k8s.io", ("nodes", "pods"), ("list",), "usage"),
    Rule(Scope.CLUSTER, "rematch.io", ("placementhints",), ("create",), "steering: hints"),
    Rule(Scope.CLUSTER, "rematch.io", ("placementhints",), ("get", "patch"), "steering: hints", ("rematch",)),
    Rule(
        Scope.CLUSTER,
        "admissionregistration.k8s.io",
        ("mutatingadmissionpolicies", "mutatingadmissionpolicybindings"),
        ("get",),
        "steering: is the policy installed",
        ("rematch-hints",),
    ),
    Rule(
        Scope.CLUSTER,
        "admissionregistration.k8s.io",
        ("validatingadmissionpolicies", "validatingadmissionpolicybindings"),
        ("get",),
        "are Events about probes written by kubelets only",
        ("rematch-events",),
    ),
    Rule(Scope.OWN, "apps", ("replicasets",), ("create", "patch", "delete"), "steering: the canary"),
    Rule(Scope.PODS, "", ("pods",), ("get",), "a pod is read again after a conflict"),
    Rule(Scope.PODS, "", ("pods/eviction",), ("create",), "moves: the pod leaves its node"),
    Rule(Scope.PODS, "", ("pods",), ("patch",), "surges: labels and deletion costs of the pods of a move"),
    Rule(Scope.PODS, "apps", ("deployments", "replicasets"), ("get",), "surges: is a rollout or scaling under way"),
    Rule(
        Scope.PODS,
        "apps",
        ("deployments/scale", "replicasets/scale"),
        ("update",),
        "scale surge: one replica more, then one less",
    ),
    Rule(Scope.PODS, "discovery.k8s.io", ("endpointslices",), ("list",), "surges: is the replacement an endpoint"),
    Rule(Scope.PODS, "", ("pods/binding",), ("create",), "pods whose schedulerName is ours get a node"),
    Rule(Scope.PODS, "", ("pods/status",), ("patch",), "pods of ours that fit nowhere are marked for node autoscalers"),
    Rule(Scope.PODS, "", ("events",), ("create", "patch"), "Events say what was done and why"),
    Rule(Scope.OWN, "", ("configmaps",), ("list", "watch"), "the settings", ("rematch",)),
    Rule(Scope.OWN, "", ("configmaps",), ("create",), "journal: the state object"),
    Rule(Scope.OWN, "", ("configmaps",), ("get", "patch", "delete"), "journal: the state object", ("rematch-state",)),
    Rule(Scope.OWN, "rematch.io", ("moves",), ("get", "list", "create", "patch", "delete"), "journal: moves in flight"),
    Rule(Scope.OWN, "rematch.io", ("requests",), ("get", "list", "create", "delete"), "pause, resume, move and apply"),
    Rule(Scope.OWN, "rematch.io", ("requests/status",), ("patch",), "what became of a request"),
    Rule(Scope.OWN, "coordination.k8s.io", ("leases",), ("create",), "leader election"),
    Rule(
        Scope.OWN,
        "coordination.k8s.io",
        ("leases",),
        ("get", "patch"),
        "leader election; steering: does kube-scheduler ask an extender",
        ("rematch", "rematch-extender"),
    ),
    Rule(Scope.OWN, "coordination.k8s.io", ("leases",), ("delete",), "leader election", ("rematch",)),
)


def rights() -> Iterator[Right]:
    for rule in RULES:
        for resource in rule.resources:
            for verb in rule.verbs:
                for name in rule.names or ("",):
                    yield Right(rule.group, resource, verb, rule.scope, rule.why, name)
