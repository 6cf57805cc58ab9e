"""What the fake cluster consists of: nodes of one size, ReplicaSets of one size, and who is where at the start."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]

NAMESPACE = "default"
_MOST_PODS = 110
_TEMPLATE_HASH = "1"


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

    def home(self, number: int) -> str:
        """Where the pod of that number is at the start; replicas of one app are on different nodes."""
        return f"node-{number % self.crowded:04}"

    def node(self, name: str) -> Json:
        resources = {"cpu": str(self.node_cores), "memory": f"{self.node_gib}Gi", "pods": str(_MOST_PODS)}
        labels = {"kubernetes.io/hostname": name, "type": "kwok"}
        return {
            "metadata": {"name": name, "labels": labels},
            "status": {"capacity": resources, "allocatable": resources},
        }

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
            "spec": {**self._template(labels)["spec"], "nodeName": self.home(app * self.replicas + replica)},
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


def _name(app: int) -> str:
    return f"app-{app:05}"
