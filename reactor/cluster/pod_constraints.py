"""Constraints of a pod that depend on other objects: its volumes, and constraints that are not supported."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from matching.feasibility import has_inter_pod_rules
from matching.problem import Rules, Term, Volume
from reactor.cluster.hints import HOSTNAME_LABEL
from reactor.cluster.kinds import Kind
from reactor.cluster.records import PersistentVolume, Pod
from reactor.cluster.view import NAMESPACE_NAME, ClusterView, selects_namespace_labels


def unsupported_constraints(pod: Pod, view: ClusterView) -> tuple[str, ...]:
    """Hard constraints of the pod that are not supported. Such a pod is neither moved nor bound."""
    if not pod.pvcs and not has_inter_pod_rules(pod.rules) and not view.unread_namespaces:
        return pod.unsupported
    return (*pod.unsupported, *_unusable_pvcs(pod, view), *_unread_namespaces(pod, view))


def rules_of(pod: Pod, view: ClusterView) -> Rules:
    """The pod's rules with those of its bound volumes, without what `unsupported_constraints` returns."""
    if not pod.pvcs:
        return pod.rules
    pvs = bound_pvs(pod, view)
    stated = (terms for pv in pvs for terms in (pv.node_affinity, pv.driver_affinity))
    affinity = tuple(terms for terms in stated if terms is not None)
    zones = tuple(zone for pv in pvs for zone in pv.zones)
    if not affinity and not zones:
        return pod.rules
    return replace(pod.rules, volumes=affinity, volume_zones=zones)


def rules_without_hint(rules: Rules, template: Rules) -> Rules:
    """The rules of a stamped pod without what the policy `rematch-hints` added: a host name in the node selector, and
    preferred terms for one host name, unless the owner's template has them. What others added on the way stays."""
    selector = tuple(
        pair for pair in rules.node_selector if pair[0] != HOSTNAME_LABEL or pair in template.node_selector
    )
    own = template.preferred.nodes
    nodes = tuple(each for each in rules.preferred.nodes if each in own or not _names_a_host(each[1]))
    return replace(rules, node_selector=selector, preferred=replace(rules.preferred, nodes=nodes))


def _names_a_host(term: Term) -> bool:
    return len(term.expressions) == 1 and not term.fields and term.expressions[0].key == HOSTNAME_LABEL


def bound_pvs(pod: Pod, view: ClusterView) -> list[PersistentVolume]:
    pvcs = (view.pvc_named(pod.namespace, name) for name in pod.pvcs)
    found = (view.pvs.get(pvc.volume) for pvc in pvcs if pvc is not None)
    return [pv for pv in found if pv is not None]


def attached_volumes(pod: Pod, view: ClusterView) -> tuple[Volume, ...]:
    """What has to be attached to the pod's node, of the drivers that limit their number. A claim that is not bound yet
    does not count: kube-scheduler would look up its storage class."""
    if not view.limited_drivers or not pod.pvcs:
        return ()
    found = {pv.attachable for pv in bound_pvs(pod, view) if pv.attachable is not None}
    return tuple(sorted((each for each in found if each.driver in view.limited_drivers), key=lambda each: each.handle))


def unused_attachments(node: str, view: ClusterView) -> tuple[Volume, ...]:
    """Volumes that are attached to the node, while no pod there uses them (any more)."""
    found: set[Volume] = set()
    for attachment in view.attachments_to(node) if node in view.csi_nodes else ():
        pv = view.pvs.get(attachment.pv)
        if pv is not None and pv.attachable is not None and attachment.driver in view.csi_nodes[node].volume_limits:
            found.add(Volume(attachment.driver, pv.attachable.handle))
    if not found:
        return ()
    users = (pod for pod in view.pods_on(node) if not pod.finished)
    used = {volume for pod in users for volume in attached_volumes(pod, view)}
    return tuple(sorted(found - used, key=lambda each: (each.driver, each.handle)))


def namespace_labels(view: ClusterView) -> dict[str, dict[str, str]]:
    known = {name: dict(namespace.labels) for name, namespace in view.namespaces.items()}
    return {**{name: {NAMESPACE_NAME: name} for name in view.unread_namespaces}, **known}


def _unusable_pvcs(pod: Pod, view: ClusterView) -> Iterator[str]:
    unread = [kind.value for kind in (Kind.CSI_NODES, Kind.VOLUME_ATTACHMENTS) if kind in view.unread]
    if pod.pvcs and unread:
        yield f"claims (how many volumes a node takes is not known: {' and '.join(unread)} may not be read)"
    for name in pod.pvcs:
        problem = _pvc_problem(pod, name, view)
        if problem:
            yield f"claim {pod.namespace}/{name} ({problem})"


def _pvc_problem(pod: Pod, name: str, view: ClusterView) -> str:
    """As kube-scheduler, but for claims with WaitForFirstConsumer that are not bound: it chooses a node for them, where
    the volume is made then. The binder does not."""
    pvc = view.pvc_named(pod.namespace, name)
    if pvc is None:
        return "not created yet, for an ephemeral volume" if name in pod.ephemeral_pvcs else "it is not there"
    if pvc.lost:
        return f"lost: its volume {pvc.volume} is gone"
    if pvc.deleting:
        return "it is being deleted"
    if name in pod.ephemeral_pvcs and pvc.controller != pod.uid:
        return "not made for this pod, although an ephemeral volume of the pod has its name"
    if not pvc.volume:
        return "not bound yet; WaitForFirstConsumer is not supported"
    if not pvc.bind_completed:
        return f"not bound completely to {pvc.volume} yet"
    if pvc.volume not in view.pvs:
        return f"its volume {pvc.volume} is not there"
    if pvc.exclusive and view.users_of_pvc(pod.namespace, name) > 1:
        return "for one pod at a time, and another one uses it"
    return ""


def _unread_namespaces(pod: Pod, view: ClusterView) -> Iterator[str]:
    """Rules that select namespaces by labels, while some namespaces were not read."""
    if not view.unread_namespaces:
        return
    if selects_namespace_labels(pod.rules):
        yield f"namespaceSelector (namespace {min(view.unread_namespaces)} was not read)"
    elif pod.namespace in view.unread_namespaces and view.namespace_labels_matter:
        yield f"other pods' namespaceSelector (namespace {pod.namespace} was not read)"
