"""The kinds that are served, and what differs between them. A kind not listed here does not exist."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]
"""A Kubernetes object (or a part of one) in its JSON shape."""

FieldReader = Callable[[Json], str]

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


def _at(*path: str) -> FieldReader:
    def read(obj: Json) -> str:
        value: Any = obj
        for step in path:
            value = value.get(step) if isinstance(value, dict) else None
        return "" if value is None else str(value)

    return read


def _flag(*path: str) -> FieldReader:
    read = _at(*path)
    return lambda obj: "true" if read(obj) == "True" else "false"


def _event_source(event: Json) -> str:
    return str((event.get("source") or {}).get("component") or event.get("reportingComponent") or "")


@dataclass(frozen=True, eq=False)
class Resource:
    """One of the constants below: compared by identity."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    fields: Mapping[str, FieldReader] = field(default_factory=dict)
    """Field selectors besides metadata.name and metadata.namespace."""
    has_generation: bool = False
    drops_status_on_create: bool = False
    keeps_metadata_on_status: bool = True
    """Whether a write to /status leaves labels and annotations alone."""
    update_needs_version: bool = False
    update_may_create: bool = False
    returns_deleted_object: bool = False
    verbs: tuple[str, ...] = ALL_VERBS
    custom: bool = False
    """Defined by a CustomResourceDefinition: bodies must name their kind, and strategic merge patches are refused."""

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def qualified(self) -> str:
        """How messages name it: `deployments.apps`, `pods`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def has_status(self) -> bool:
        return "status" in self.subresources


_POD_FIELDS: Mapping[str, FieldReader] = {
    "spec.nodeName": _at("spec", "nodeName"),
    "spec.restartPolicy": _at("spec", "restartPolicy"),
    "spec.schedulerName": _at("spec", "schedulerName"),
    "spec.serviceAccountName": _at("spec", "serviceAccountName"),
    "spec.hostNetwork": _flag("spec", "hostNetwork"),
    "status.phase": _at("status", "phase"),
    "status.podIP": _at("status", "podIP"),
    "status.nominatedNodeName": _at("status", "nominatedNodeName"),
}
_EVENT_FIELDS: Mapping[str, FieldReader] = {
    **{
        f"involvedObject.{name}": _at("involvedObject", name)
        for name in ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
    },
    "reason": _at("reason"),
    "reportingComponent": _at("reportingComponent"),
    "source": _event_source,
    "type": _at("type"),
}


def _workload(plural: str, kind: str, short: str, subresources: tuple[str, ...]) -> Resource:
    return Resource(
        "apps",
        "v1",
        plural,
        kind,
        short_names=(short,),
        categories=("all",),
        subresources=subresources,
        has_generation=True,
        drops_status_on_create=True,
    )


NODES = Resource(
    "",
    "v1",
    "nodes",
    "Node",
    namespaced=False,
    short_names=("no",),
    subresources=("status",),
    fields={"spec.unschedulable": _flag("spec", "unschedulable")},
    keeps_metadata_on_status=False,
)
PODS = Resource(
    "",
    "v1",
    "pods",
    "Pod",
    short_names=("po",),
    categories=("all",),
    subresources=("binding", "eviction", "status"),
    fields=_POD_FIELDS,
    has_generation=True,
    drops_status_on_create=True,
    keeps_metadata_on_status=False,
    returns_deleted_object=True,
)
EVENTS = Resource("", "v1", "events", "Event", short_names=("ev",), fields=_EVENT_FIELDS, update_may_create=True)
NAMESPACES = Resource(
    "",
    "v1",
    "namespaces",
    "Namespace",
    namespaced=False,
    short_names=("ns",),
    subresources=("status",),
    fields={"status.phase": _at("status", "phase")},
    drops_status_on_create=True,
    returns_deleted_object=True,
    verbs=tuple(verb for verb in ALL_VERBS if verb != "deletecollection"),
)
CONFIGMAPS = Resource("", "v1", "configmaps", "ConfigMap", short_names=("cm",))
SERVICES = Resource(
    "", "v1", "services", "Service", short_names=("svc",), categories=("all",), returns_deleted_object=True
)
ENDPOINTS = Resource("", "v1", "endpoints", "Endpoints", short_names=("ep",))
ENDPOINTSLICES = Resource("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice")
PERSISTENTVOLUMECLAIMS = Resource(
    "",
    "v1",
    "persistentvolumeclaims",
    "PersistentVolumeClaim",
    short_names=("pvc",),
    subresources=("status",),
    drops_status_on_create=True,
    returns_deleted_object=True,
)
PERSISTENTVOLUMES = Resource(
    "",
    "v1",
    "persistentvolumes",
    "PersistentVolume",
    namespaced=False,
    short_names=("pv",),
    subresources=("status",),
    drops_status_on_create=True,
    returns_deleted_object=True,
)
REPLICATIONCONTROLLERS = Resource(
    "", "v1", "replicationcontrollers", "ReplicationController", short_names=("rc",), categories=("all",)
)
DEPLOYMENTS = _workload("deployments", "Deployment", "deploy", ("scale", "status"))
REPLICASETS = _workload("replicasets", "ReplicaSet", "rs", ("scale", "status"))
STATEFULSETS = _workload("statefulsets", "StatefulSet", "sts", ("scale", "status"))
DAEMONSETS = _workload("daemonsets", "DaemonSet", "ds", ("status",))
JOBS = Resource(
    "batch",
    "v1",
    "jobs",
    "Job",
    categories=("all",),
    subresources=("status",),
    has_generation=True,
    drops_status_on_create=True,
)
PODDISRUPTIONBUDGETS = Resource(
    "policy",
    "v1",
    "poddisruptionbudgets",
    "PodDisruptionBudget",
    short_names=("pdb",),
    subresources=("status",),
    has_generation=True,
    drops_status_on_create=True,
    update_needs_version=True,
)
HORIZONTALPODAUTOSCALERS = Resource(
    "autoscaling",
    "v2",
    "horizontalpodautoscalers",
    "HorizontalPodAutoscaler",
    short_names=("hpa",),
    categories=("all",),
    subresources=("status",),
    drops_status_on_create=True,
)
RESOURCEQUOTAS = Resource(
    "",
    "v1",
    "resourcequotas",
    "ResourceQuota",
    short_names=("quota",),
    subresources=("status",),
    drops_status_on_create=True,
    returns_deleted_object=True,
)
PRIORITYCLASSES = Resource(
    "scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", namespaced=False, short_names=("pc",)
)
CSINODES = Resource(
    "storage.k8s.io",
    "v1",
    "csinodes",
    "CSINode",
    namespaced=False,
    update_needs_version=True,
    returns_deleted_object=True,
)
VOLUMEATTACHMENTS = Resource(
    "storage.k8s.io",
    "v1",
    "volumeattachments",
    "VolumeAttachment",
    namespaced=False,
    subresources=("status",),
    drops_status_on_create=True,
    update_needs_version=True,
    returns_deleted_object=True,
)
LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease", update_needs_version=True, update_may_create=True)


def _custom(plural: str, kind: str, *, namespaced: bool = True, subresources: tuple[str, ...] = ()) -> Resource:
    """As with the definitions of `deploy/chart/files/crds` installed."""
    return Resource(
        "rematch.io",
        "v1alpha1",
        plural,
        kind,
        namespaced=namespaced,
        subresources=subresources,
        has_generation=True,
        drops_status_on_create="status" in subresources,
        update_needs_version=True,
        custom=True,
    )


MOVES = _custom("moves", "Move")
REQUESTS = _custom("requests", "Request", subresources=("status",))
PLACEMENT_HINTS = _custom("placementhints", "PlacementHint", namespaced=False)
NODE_METRICS = Resource("metrics.k8s.io", "v1beta1", "nodes", "NodeMetrics", namespaced=False, verbs=("get", "list"))
POD_METRICS = Resource("metrics.k8s.io", "v1beta1", "pods", "PodMetrics", verbs=("get", "list"))

STORED: tuple[Resource, ...] = (
    CONFIGMAPS,
    ENDPOINTS,
    EVENTS,
    NAMESPACES,
    NODES,
    PERSISTENTVOLUMECLAIMS,
    PERSISTENTVOLUMES,
    PODS,
    REPLICATIONCONTROLLERS,
    RESOURCEQUOTAS,
    SERVICES,
    DAEMONSETS,
    DEPLOYMENTS,
    REPLICASETS,
    STATEFULSETS,
    ENDPOINTSLICES,
    HORIZONTALPODAUTOSCALERS,
    JOBS,
    LEASES,
    PODDISRUPTIONBUDGETS,
    PRIORITYCLASSES,
    CSINODES,
    VOLUMEATTACHMENTS,
    MOVES,
    REQUESTS,
    PLACEMENT_HINTS,
)
SERVED: tuple[Resource, ...] = (*STORED, NODE_METRICS, POD_METRICS)

_BY_PATH: Mapping[tuple[str, str, str], Resource] = {
    (resource.group, resource.version, resource.plural): resource for resource in SERVED
}
_BY_KIND: Mapping[tuple[str, str], Resource] = {(resource.api_version, resource.kind): resource for resource in STORED}


def at_path(group: str, version: str, plural: str) -> Resource | None:
    return _BY_PATH.get((group, version, plural))


def of_kind(api_version: str, kind: str) -> Resource | None:
    return _BY_KIND.get((api_version, kind))
