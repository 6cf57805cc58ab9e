"""A fake cluster: nodes and ReplicaSets of one size, the initial placement, and how to create it all."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from loadtests.controlplane import Component, ControlPlane
from loadtests.kwok.observer import PodObserver
from loadtests.tools.processes import Progress
from loadtests.workloads.api import LabApi, has_condition
from reactor.clock import SystemClock
from reactor.cluster.writes import gather_limited

Json = dict[str, Any]

NAMESPACE = "default"
_MOST_PODS = 110
_TEMPLATE_HASH = "1"


_AT_ONCE = 32
_CALL_DEADLINE = 120.0
_NODES_DEADLINE = 180.0
_SLOWEST_RATE = 20.0
"""Pods per second below which something is wrong."""
_POLL_SECONDS = 0.5
_NODES = "/api/v1/nodes"
_PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
_REPLICA_SETS = f"/apis/apps/v1/namespaces/{NAMESPACE}/replicasets"


@dataclass(frozen=True, slots=True)
class Fleet:
    """The first `crowded` nodes hold all pods, dealt round; the others are empty."""

    nodes: int
    crowded: int
    apps: int
    replicas: int
    scheduler: str
    node_cores: int = 10
    node_gib: int = 32
    pod_millicores: int = 100
    pod_mib: int = 256

    @property
    def pods(self) -> int:
        return self.apps * self.replicas

    @property
    def node_names(self) -> list[str]:
        return [f"node-{number:04}" for number in range(self.nodes)]

    def first_node(self, number: int) -> str:
        """Where the pod of that number is at the start; replicas of one app are on different nodes."""
        return f"node-{number % self.crowded:04}"

    def node(self, name: str) -> Json:
        resources = {"cpu": str(self.node_cores), "memory": f"{self.node_gib}Gi", "pods": str(_MOST_PODS)}
        return fake_node(name, resources)

    def replica_set(self, app: int) -> Json:
        labels = self._labels(app)
        spec = {"replicas": self.replicas, "selector": {"matchLabels": labels}, "template": self._template(labels)}
        return {"metadata": {"name": _name(app), "labels": labels}, "spec": spec}

    def pod(self, app: int, replica: int, owner_uid: str) -> Json:
        """As its ReplicaSet would make it, and already on its node."""
        labels = self._labels(app)
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": _name(app), "uid": owner_uid}
        return {
            "metadata": {
                "name": f"{_name(app)}-{replica:03}",
                "labels": labels,
                "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
            },
            "spec": {**self._template(labels)["spec"], "nodeName": self.first_node(app * self.replicas + replica)},
        }

    def _labels(self, app: int) -> dict[str, str]:
        return {"app": _name(app), "pod-template-hash": _TEMPLATE_HASH}

    def _template(self, labels: dict[str, str]) -> Json:
        requests = {"cpu": f"{self.pod_millicores}m", "memory": f"{self.pod_mib}Mi"}
        container = {
            "name": "web",
            "image": "none",
            "resources": {"requests": requests},
            "livenessProbe": {"httpGet": {"path": "/", "port": 80}, "periodSeconds": 10, "failureThreshold": 3},
        }
        spec = {
            "schedulerName": self.scheduler,
            "terminationGracePeriodSeconds": 1,
            "automountServiceAccountToken": False,
            "containers": [container],
        }
        return {"metadata": {"labels": labels}, "spec": spec}


def fake_node(name: str, resources: Mapping[str, str]) -> Json:
    labels = {"kubernetes.io/hostname": name, "type": "kwok"}
    return {"metadata": {"name": name, "labels": labels}, "status": {"capacity": resources, "allocatable": resources}}


def _name(app: int) -> str:
    return f"app-{app:05}"


async def fill(plane: ControlPlane, fleet: Fleet, observer: PodObserver, progress: Progress) -> None:
    """While the pods are made the controller manager is away: else it would make pods of its own, too."""
    api = LabApi(plane.url, SystemClock(), _CALL_DEADLINE, token=plane.admin_token, ca=plane.ca)
    try:
        await gather_limited([partial(api.create, _NODES, fleet.node(name)) for name in fleet.node_names], _AT_ONCE)
        await nodes_open(api)
        progress(f"{fleet.nodes} nodes are Ready")
        plane.processes[Component.CONTROLLER_MANAGER].stop()
        await gather_limited([partial(_create_app, api, fleet, app) for app in range(fleet.apps)], _AT_ONCE)
        progress(f"{fleet.pods} pods are created")
        await observer.until(lambda: observer.running == fleet.pods, _NODES_DEADLINE + fleet.pods / _SLOWEST_RATE)
        await plane.restart(Component.CONTROLLER_MANAGER)
        progress(f"{fleet.pods} pods are Running")
    finally:
        await api.close()


async def _create_app(api: LabApi, fleet: Fleet, app: int) -> None:
    owner = await api.create(_REPLICA_SETS, fleet.replica_set(app))
    for replica in range(fleet.replicas):
        await api.create(_PODS, fleet.pod(app, replica, owner["metadata"]["uid"]))


async def nodes_open(api: LabApi) -> None:
    """Every node is Ready and has lost the taint that admission gives to new ones."""
    async with asyncio.timeout(_NODES_DEADLINE):
        while not all(_is_open(node) for node in (await api.get(_NODES))["items"]):
            await asyncio.sleep(_POLL_SECONDS)


def _is_open(node: Json) -> bool:
    return has_condition(node, "Ready") and not node["spec"].get("taints")
