"""The watched kinds: their API paths, and the part of each that is listed and watched."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """The value is the resource's plural name, as in paths, permissions and metric labels."""

    NODES = "nodes"
    PODS = "pods"
    EVENTS = "events"
    REPLICA_SETS = "replicasets"
    DEPLOYMENTS = "deployments"
    STATEFUL_SETS = "statefulsets"
    DAEMON_SETS = "daemonsets"
    JOBS = "jobs"
    PDBS = "poddisruptionbudgets"
    HPAS = "horizontalpodautoscalers"
    RESOURCE_QUOTAS = "resourcequotas"
    SERVICES = "services"
    NAMESPACES = "namespaces"
    PVCS = "persistentvolumeclaims"
    PVS = "persistentvolumes"
    CSI_NODES = "csinodes"
    VOLUME_ATTACHMENTS = "volumeattachments"
    CONFIG_MAPS = "configmaps"

    @property
    def object_kind(self) -> str:
        """`kind` as in manifests: Pod, PodDisruptionBudget."""
        return _RESOURCES[self].object_kind

    @property
    def namespaced(self) -> bool:
        return _RESOURCES[self].namespaced

    def path(self, namespace: str | None = None) -> str:
        """The path of the collection in all namespaces, or in one."""
        scope = f"/namespaces/{namespace}" if namespace else ""
        return f"{_RESOURCES[self].group_path}{scope}/{self.value}"


@dataclass(frozen=True, slots=True)
class _Resource:
    object_kind: str
    group_path: str
    namespaced: bool = True


_RESOURCES: Mapping[Kind, _Resource] = {
    Kind.NODES: _Resource("Node", "/api/v1", namespaced=False),
    Kind.PODS: _Resource("Pod", "/api/v1"),
    Kind.EVENTS: _Resource("Event", "/api/v1"),
    Kind.REPLICA_SETS: _Resource("ReplicaSet", "/apis/apps/v1"),
    Kind.DEPLOYMENTS: _Resource("Deployment", "/apis/apps/v1"),
    Kind.STATEFUL_SETS: _Resource("StatefulSet", "/apis/apps/v1"),
    Kind.DAEMON_SETS: _Resource("DaemonSet", "/apis/apps/v1"),
    Kind.JOBS: _Resource("Job", "/apis/batch/v1"),
    Kind.PDBS: _Resource("PodDisruptionBudget", "/apis/policy/v1"),
    Kind.HPAS: _Resource("HorizontalPodAutoscaler", "/apis/autoscaling/v2"),
    Kind.RESOURCE_QUOTAS: _Resource("ResourceQuota", "/api/v1"),
    Kind.SERVICES: _Resource("Service", "/api/v1"),
    Kind.NAMESPACES: _Resource("Namespace", "/api/v1", namespaced=False),
    Kind.PVCS: _Resource("PersistentVolumeClaim", "/api/v1"),
    Kind.PVS: _Resource("PersistentVolume", "/api/v1", namespaced=False),
    Kind.CSI_NODES: _Resource("CSINode", "/apis/storage.k8s.io/v1", namespaced=False),
    Kind.VOLUME_ATTACHMENTS: _Resource("VolumeAttachment", "/apis/storage.k8s.io/v1", namespaced=False),
    Kind.CONFIG_MAPS: _Resource("ConfigMap", "/api/v1"),
}

BY_OBJECT_KIND: Mapping[str, Kind] = {kind.object_kind: kind for kind in Kind}

WORKLOAD_KINDS = (Kind.REPLICA_SETS, Kind.DEPLOYMENTS, Kind.STATEFUL_SETS, Kind.DAEMON_SETS, Kind.JOBS)

CLUSTER_KINDS = tuple(kind for kind in Kind if kind is not Kind.CONFIG_MAPS)
"""Watched by every controller. The ConfigMap is added when the settings are in one."""

OPTIONAL_KINDS = frozenset({Kind.HPAS, Kind.RESOURCE_QUOTAS, Kind.SERVICES, Kind.CSI_NODES, Kind.VOLUME_ATTACHMENTS})
"""A cluster where these may not be read, or do not exist, is watched without them. What depends on them is decided as
if they could be there (`ClusterView.unread`)."""


@dataclass(frozen=True, slots=True)
class ObjectName:
    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class Listing:
    """A collection to list and watch. There is one per kind: two would overwrite each other in the mirror."""

    path: str
    field_selector: str = ""


def listing_of(kind: Kind) -> Listing:
    """Only Events of pods. The selector cannot narrow the reason further: it takes one value, we need two."""
    return Listing(kind.path(), "involvedObject.kind=Pod" if kind is Kind.EVENTS else "")


def config_map_listing(config_map: ObjectName) -> Listing:
    return Listing(Kind.CONFIG_MAPS.path(config_map.namespace), f"metadata.name={config_map.name}")
