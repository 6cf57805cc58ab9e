"""The cluster at one instant, as a value. A cycle reads it while the mirror goes on changing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

from matching.cached_property import cached_property
from matching.feasibility import has_inter_pod_rules, pod_selectors
from matching.problem import Rules
from matching.selectors import matches, selects
from reactor.cluster.kinds import Kind
from reactor.cluster.records import (
    CsiNode,
    HorizontalPodAutoscaler,
    Namespace,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PodDisruptionBudget,
    ResourceQuota,
    Service,
    VolumeAttachment,
    Workload,
)

NAMESPACE_NAME = "kubernetes.io/metadata.name"
"""A label that every namespace has, so it is known even when the namespace was not read."""


@dataclass(frozen=True)
class ClusterView:
    """Indexes are built on first use, so that a cycle pays only for those it needs."""

    at: float
    nodes: Mapping[str, Node] = field(default_factory=dict)
    """By name."""
    pods: Mapping[str, Pod] = field(default_factory=dict)
    """By UID."""
    workloads: Mapping[str, Workload] = field(default_factory=dict)
    """By UID."""
    pdbs: tuple[PodDisruptionBudget, ...] = ()
    namespaces: Mapping[str, Namespace] = field(default_factory=dict)
    pvcs: tuple[PersistentVolumeClaim, ...] = ()
    pvs: Mapping[str, PersistentVolume] = field(default_factory=dict)
    csi_nodes: Mapping[str, CsiNode] = field(default_factory=dict)
    """By the name of the node."""
    volume_attachments: tuple[VolumeAttachment, ...] = ()
    hpas: tuple[HorizontalPodAutoscaler, ...] = ()
    services: tuple[Service, ...] = ()
    quotas: tuple[ResourceQuota, ...] = ()
    unread: frozenset[Kind] = frozenset()
    """Kinds that exist here for all we know, and may not be read (`kinds.OPTIONAL_KINDS`)."""

    def take_indexes(self, earlier: ClusterView, changed: Collection[str]) -> None:
        """Take over the indexes of an earlier view of the same cluster. `changed` are the UIDs of all pods that are
        new, gone or not the same record there. To be called before the view is read."""
        taken, built = self.__dict__, earlier.__dict__
        for name, sources in _SOURCES.items():
            if name in built and all(getattr(self, source) is getattr(earlier, source) for source in sources):
                taken[name] = built[name]
        if self.pods is earlier.pods or len(changed) * _FEW > len(self.pods):
            return
        for name, key in _GROUPED_PODS.items():
            if name in built:
                taken[name] = _regrouped(built[name], changed, earlier.pods, self.pods, key)
        found = [pod for pod in map(self.pods.get, changed) if pod is not None]
        if built.get("seen_by_rules") == () and not any(has_inter_pod_rules(pod.rules) for pod in found):
            taken["seen_by_rules"] = ()
        known = self.namespaces is earlier.namespaces and all(pod.namespace in self.namespaces for pod in found)
        if known and built.get("unread_namespaces") == frozenset():
            taken["unread_namespaces"] = frozenset()

    def pods_on(self, node: str) -> tuple[Pod, ...]:
        """Every pod bound to the node, finished and terminating ones included."""
        return self._pods_by_node.get(node, ())

    def nominated_to(self, node: str) -> tuple[Pod, ...]:
        """Pending pods for which kube-scheduler holds room on the node."""
        return tuple(pod for pod in self.nominated if pod.nominated_node == node)

    def pod_named(self, namespace: str, name: str) -> Pod | None:
        return self._pods_by_name.get((namespace, name))

    def pods_of(self, owner_uid: str) -> tuple[Pod, ...]:
        """The pods whose controlling owner has this UID."""
        return self.pods_by_owner.get(owner_uid, ())

    def workload_of(self, pod: Pod) -> Workload | None:
        """The top-level controller: a ReplicaSet's Deployment, else the owner itself.

        None for a pod without a controller, and for one whose controller is gone.
        """
        owner = self.workloads.get(pod.owner.uid) if pod.owner else None
        if owner is None or owner.owner is None:
            return owner
        return self.workloads.get(owner.owner.uid, owner)

    def workload_name(self, pod: Pod) -> str:
        """`Deployment/shop/web`; a pod without a controller stands for itself."""
        workload = self.workload_of(pod)
        return f"{workload.kind}/{pod.namespace}/{workload.name}" if workload else pod.key

    def pdbs_in(self, namespace: str) -> tuple[PodDisruptionBudget, ...]:
        return self._pdbs_by_namespace.get(namespace, ())

    def pdbs_of(self, pod: Pod) -> list[PodDisruptionBudget]:
        return [
            pdb
            for pdb in self.pdbs_in(pod.namespace)
            if pdb.selector is not None and matches(pdb.selector.requirements, pod.labels)
        ]

    def quotas_in(self, namespace: str) -> tuple[ResourceQuota, ...]:
        return self._quotas_by_namespace.get(namespace, ())

    def hpa_of(self, workload: Workload) -> HorizontalPodAutoscaler | None:
        return self._hpas_by_target.get((workload.namespace, workload.kind, workload.name))

    def is_served(self, pod: Pod) -> bool:
        """Whether a Service selects it, for all that is known."""
        return Kind.SERVICES in self.unread or any(
            service.selector.items() <= pod.labels.items() for service in self.services_in(pod.namespace)
        )

    def services_in(self, namespace: str) -> tuple[Service, ...]:
        """Those that select pods."""
        return self._services_by_namespace.get(namespace, ())

    def pvc_named(self, namespace: str, name: str) -> PersistentVolumeClaim | None:
        return self._pvcs_by_name.get((namespace, name))

    def attachments_to(self, node: str) -> tuple[VolumeAttachment, ...]:
        return self._attachments_by_node.get(node, ())

    @cached_property
    def limited_drivers(self) -> frozenset[str]:
        """CSI drivers that limit on some node how many volumes can be attached."""
        return frozenset(driver for csi_node in self.csi_nodes.values() for driver in csi_node.volume_limits)

    def users_of_pvc(self, namespace: str, name: str) -> int:
        """The number of unfinished pods that use it."""
        return self._pvc_users[namespace, name]

    @cached_property
    def seen_by_rules(self) -> tuple[Pod, ...]:
        """The pods whose rules select other pods, and the pods that such rules select. Mostly these are few."""
        pods = self.pods.values()
        distinct = {id(pod.rules): pod.rules for pod in pods}
        with_rules = {key: rules for key, rules in distinct.items() if has_inter_pod_rules(rules)}
        if not with_rules:
            return ()
        selectors = {selector for rules in with_rules.values() for selector in pod_selectors(rules)}
        selected: dict[int, bool] = {}
        for pod in pods:
            if id(pod.labels) not in selected:
                selected[id(pod.labels)] = any(selects(selector, pod.labels) for selector in selectors)
        return tuple(pod for pod in pods if selected[id(pod.labels)] or id(pod.rules) in with_rules)

    @cached_property
    def nominated(self) -> tuple[Pod, ...]:
        """Pending pods for which kube-scheduler holds room on a node."""
        return tuple(pod for node, pods in self._pods_by_nomination.items() if node in self.nodes for pod in pods)

    @cached_property
    def unread_namespaces(self) -> frozenset[str]:
        """Namespaces of pods that were not read themselves: a file may contain pods only."""
        return frozenset({pod.namespace for pod in self.pods.values()} - self.namespaces.keys())

    @cached_property
    def namespace_labels_matter(self) -> bool:
        """Whether the rules of some pod select namespaces by labels."""
        return any(selects_namespace_labels(pod.rules) for pod in self.seen_by_rules)

    @cached_property
    def _pdbs_by_namespace(self) -> Mapping[str, tuple[PodDisruptionBudget, ...]]:
        grouped: dict[str, list[PodDisruptionBudget]] = {}
        for pdb in self.pdbs:
            grouped.setdefault(pdb.namespace, []).append(pdb)
        return {namespace: tuple(pdbs) for namespace, pdbs in grouped.items()}

    @cached_property
    def _services_by_namespace(self) -> Mapping[str, tuple[Service, ...]]:
        grouped: dict[str, list[Service]] = {}
        for service in self.services:
            if service.selector:
                grouped.setdefault(service.namespace, []).append(service)
        return {namespace: tuple(services) for namespace, services in grouped.items()}

    @cached_property
    def _quotas_by_namespace(self) -> Mapping[str, tuple[ResourceQuota, ...]]:
        grouped: dict[str, list[ResourceQuota]] = {}
        for quota in self.quotas:
            grouped.setdefault(quota.namespace, []).append(quota)
        return {namespace: tuple(quotas) for namespace, quotas in grouped.items()}

    @cached_property
    def _hpas_by_target(self) -> Mapping[tuple[str, str, str], HorizontalPodAutoscaler]:
        return {(hpa.namespace, hpa.target_kind, hpa.target_name): hpa for hpa in self.hpas}

    @cached_property
    def _pvcs_by_name(self) -> Mapping[tuple[str, str], PersistentVolumeClaim]:
        return {(pvc.namespace, pvc.name): pvc for pvc in self.pvcs}

    @cached_property
    def _attachments_by_node(self) -> Mapping[str, tuple[VolumeAttachment, ...]]:
        grouped: dict[str, list[VolumeAttachment]] = {}
        for attachment in self.volume_attachments:
            grouped.setdefault(attachment.node, []).append(attachment)
        return {node: tuple(found) for node, found in grouped.items()}

    @cached_property
    def _pvc_users(self) -> Counter[tuple[str, str]]:
        return Counter((pod.namespace, name) for pod in self.pods.values() if not pod.finished for name in pod.pvcs)

    @cached_property
    def _pods_by_node(self) -> Mapping[str, tuple[Pod, ...]]:
        return _grouped(self.pods.values(), _node_of)

    @cached_property
    def pods_by_owner(self) -> Mapping[str, tuple[Pod, ...]]:
        """By the UID of the controlling owner. A group without a changed pod is the same object in the next view."""
        return _grouped(self.pods.values(), _owner_of)

    @cached_property
    def _pods_by_nomination(self) -> Mapping[str, tuple[Pod, ...]]:
        return _grouped(self.pods.values(), _nomination_of)

    @cached_property
    def _pods_by_name(self) -> Mapping[tuple[str, str], Pod]:
        return {(pod.namespace, pod.name): pod for pod in self.pods.values()}


_FEW = 8
"""Indexes are built anew when more than one pod of so many has changed."""

_SOURCES: Mapping[str, tuple[str, ...]] = {
    "_pdbs_by_namespace": ("pdbs",),
    "_services_by_namespace": ("services",),
    "_quotas_by_namespace": ("quotas",),
    "_hpas_by_target": ("hpas",),
    "_pvcs_by_name": ("pvcs",),
    "_attachments_by_node": ("volume_attachments",),
    "limited_drivers": ("csi_nodes",),
    "seen_by_rules": ("pods",),
    "namespace_labels_matter": ("pods",),
    "unread_namespaces": ("pods", "namespaces"),
    "nominated": ("pods", "nodes"),
    "_pvc_users": ("pods",),
    "_pods_by_node": ("pods",),
    "pods_by_owner": ("pods",),
    "_pods_by_nomination": ("pods",),
    "_pods_by_name": ("pods",),
}
"""Every index with the fields that it is made of: a later view has the same one while these are the same."""


def _node_of(pod: Pod) -> str | None:
    return pod.node


def _owner_of(pod: Pod) -> str | None:
    return pod.owner.uid if pod.owner is not None else None


def _nomination_of(pod: Pod) -> str | None:
    return pod.nominated_node if pod.node is None and not pod.finished else None


_Key = Callable[[Pod], str | None]
_GROUPED_PODS: Mapping[str, _Key] = {
    "_pods_by_node": _node_of,
    "pods_by_owner": _owner_of,
    "_pods_by_nomination": _nomination_of,
}


def _grouped(pods: Iterable[Pod], key: _Key) -> Mapping[str, tuple[Pod, ...]]:
    grouped: dict[str, list[Pod]] = {}
    for pod in pods:
        name = key(pod)
        if name is not None:
            grouped.setdefault(name, []).append(pod)
    return {name: tuple(found) for name, found in grouped.items()}


def _regrouped(
    groups: Mapping[str, tuple[Pod, ...]],
    changed: Collection[str],
    before: Mapping[str, Pod],
    after: Mapping[str, Pod],
    key: _Key,
) -> Mapping[str, tuple[Pod, ...]]:
    """Only the groups that a changed pod left, entered or is in are made again."""
    touched: dict[str, list[Pod]] = {}
    for uid in changed:
        for pods, stays in ((before, False), (after, True)):
            name = key(pods[uid]) if uid in pods else None
            if name is not None:
                touched.setdefault(name, []).extend([pods[uid]] if stays else [])
    made = dict(groups)
    for name, entered in touched.items():
        group = {
            pod.uid: pod for pod in groups.get(name, ()) if pod.uid not in changed or _is_in(after, pod, name, key)
        }
        group.update({pod.uid: pod for pod in entered})
        if group:
            made[name] = tuple(group.values())
        else:
            made.pop(name, None)
    return made


def _is_in(pods: Mapping[str, Pod], pod: Pod, name: str, key: _Key) -> bool:
    return pod.uid in pods and key(pods[pod.uid]) == name


def selects_namespace_labels(rules: Rules) -> bool:
    """Other labels than the name, which is known of every namespace."""
    selectors = (term.namespace_selector for term in (*rules.pod_affinity, *rules.pod_anti_affinity))
    return any(
        requirement.key != NAMESPACE_NAME
        for selector in selectors
        if selector is not None
        for requirement in selector.requirements
    )
