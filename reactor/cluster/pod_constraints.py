"""What the rest of the cluster adds to a pod's own rules: where its volumes are, and what cannot be judged at all.

Not looked at, because nothing we read tells it: how many volumes a node may still attach (CSINode).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from matching.feasibility import has_inter_pod_rules
from matching.problem import Rules
from reactor.cluster.pod_affinity import NAMESPACE_NAME, asks_for_namespace_labels
from reactor.cluster.records import PersistentVolume, Pod
from reactor.cluster.view import ClusterView


def cannot_judge(pod: Pod, view: ClusterView) -> tuple[str, ...]:
    """Hard constraints that concern the pod and that nobody here can judge; it is neither moved nor bound."""
    if not pod.pvcs and not has_inter_pod_rules(pod.rules) and not view.unread_namespaces:
        return pod.unjudged
    return (*pod.unjudged, *_claims(pod, view), *_namespaces(pod, view))


def rules_of(pod: Pod, view: ClusterView) -> Rules:
    """With what its bound volumes demand. What `cannot_judge` names is left out."""
    if not pod.pvcs:
        return pod.rules
    volumes = bound_pvs(pod, view)
    affinity = tuple(volume.node_affinity for volume in volumes if volume.node_affinity is not None)
    zones = tuple(zone for volume in volumes for zone in volume.zones)
    if not affinity and not zones:
        return pod.rules
    return replace(pod.rules, volumes=affinity, volume_zones=zones)


def bound_pvs(pod: Pod, view: ClusterView) -> list[PersistentVolume]:
    claims = (view.pvc_named(pod.namespace, name) for name in pod.pvcs)
    found = (view.pvs.get(claim.volume) for claim in claims if claim is not None)
    return [volume for volume in found if volume is not None]


def namespace_labels(view: ClusterView) -> dict[str, dict[str, str]]:
    known = {name: dict(namespace.labels) for name, namespace in view.namespaces.items()}
    return {**{name: {NAMESPACE_NAME: name} for name in view.unread_namespaces}, **known}


def _claims(pod: Pod, view: ClusterView) -> Iterator[str]:
    for name in pod.pvcs:
        problem = _claim_problem(pod.namespace, name, view)
        if problem:
            yield f"claim {pod.namespace}/{name} ({problem})"


def _claim_problem(namespace: str, name: str, view: ClusterView) -> str:
    claim = view.pvc_named(namespace, name)
    if claim is None:
        return "it is not there"
    if claim.deleting:
        return "it is being deleted"
    if not claim.volume:
        return "not bound yet"
    if claim.volume not in view.pvs:
        return f"its volume {claim.volume} is not there"
    if claim.exclusive and view.users_of_pvc(namespace, name) > 1:
        return "for one pod at a time, and another one uses it"
    return ""


def _namespaces(pod: Pod, view: ClusterView) -> Iterator[str]:
    """Rules that select by labels of namespaces, while some of those were not read."""
    if not view.unread_namespaces:
        return
    if asks_for_namespace_labels(pod.rules):
        yield f"namespaceSelector (namespace {min(view.unread_namespaces)} was not read)"
    elif pod.namespace in view.unread_namespaces and view.namespace_labels_matter:
        yield f"other pods' namespaceSelector (namespace {pod.namespace} was not read)"
