"""Puts rows into a meta.k8s.io/v1 Table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from loadtests.embedded import resources
from loadtests.embedded.resources import Json, Resource
from loadtests.embedded.tables import cluster, pods, workloads
from loadtests.embedded.tables.cells import Cells, Column


class Layout(NamedTuple):
    columns: tuple[Column, ...]
    row: Callable[[Json, float], Cells]


_DEFAULT = Layout(cluster.DEFAULT_COLUMNS, cluster.default_row)
_LAYOUTS: Mapping[Resource, Layout] = {
    resources.PODS: Layout(pods.COLUMNS, pods.row),
    resources.NODES: Layout(cluster.NODE_COLUMNS, cluster.node_row),
    resources.EVENTS: Layout(cluster.EVENT_COLUMNS, cluster.event_row),
    resources.NAMESPACES: Layout(cluster.NAMESPACE_COLUMNS, cluster.namespace_row),
    resources.CONFIGMAPS: Layout(cluster.CONFIGMAP_COLUMNS, cluster.configmap_row),
    resources.LEASES: Layout(cluster.LEASE_COLUMNS, cluster.lease_row),
    resources.PRIORITYCLASSES: Layout(cluster.PRIORITYCLASS_COLUMNS, cluster.priorityclass_row),
    resources.PODDISRUPTIONBUDGETS: Layout(cluster.BUDGET_COLUMNS, cluster.budget_row),
    resources.MOVES: Layout(cluster.MOVE_COLUMNS, cluster.move_row),
    resources.REQUESTS: Layout(cluster.REQUEST_COLUMNS, cluster.request_row),
    resources.DEPLOYMENTS: Layout(workloads.DEPLOYMENT_COLUMNS, workloads.deployment_row),
    resources.REPLICASETS: Layout(workloads.REPLICASET_COLUMNS, workloads.replicaset_row),
    resources.STATEFULSETS: Layout(workloads.STATEFULSET_COLUMNS, workloads.statefulset_row),
    resources.DAEMONSETS: Layout(workloads.DAEMONSET_COLUMNS, workloads.daemonset_row),
    resources.JOBS: Layout(workloads.JOB_COLUMNS, workloads.job_row),
}


def table_of(resource: Resource, objects: Sequence[Json], metadata: Json, now: float, include: str) -> Json:
    """`include` is kubectl's includeObject: Metadata (the default), Object or None."""
    layout = _LAYOUTS.get(resource, _DEFAULT)
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "columnDefinitions": [column.as_json() for column in layout.columns],
        "rows": [{"cells": layout.row(obj, now), "object": _object(obj, include)} for obj in objects],
    }


def _object(obj: Json, include: str) -> Json | None:
    if include == "None":
        return None
    if include == "Object":
        return obj
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": obj["metadata"]}
