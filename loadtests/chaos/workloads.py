"""The workloads of a run: owners of every kind, with what each promises its users."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

Json = dict[str, Any]

NAMESPACE = "chaos"
OURS, DEFAULT = "rematch", "default-scheduler"


class Owner(StrEnum):
    """The value is the resource's plural name."""

    DEPLOYMENT = "deployments"
    STATEFUL_SET = "statefulsets"
    REPLICA_SET = "replicasets"


@dataclass(frozen=True, slots=True)
class Workload:
    name: str
    owner: Owner
    replicas: int
    scheduler: str = OURS
    min_available: int | None = None
    """Of its PDB."""
    hpa: bool = False
    pre_stop: bool = False
    """With a hook it needs not leave its Services before it ends, so it is surged by scaling."""

    @property
    def collection(self) -> str:
        return f"/apis/apps/v1/namespaces/{NAMESPACE}/{self.owner.value}"

    @property
    def path(self) -> str:
        return f"{self.collection}/{self.name}"

    def promised(self, replicas: int) -> int:
        """Ready pods that a move must leave when so many are wanted (moves.md); a single replica may be evicted."""
        if replicas <= 1:
            return 0
        most = 1 if self.owner is not Owner.DEPLOYMENT else max(1, replicas // 4)
        return max(1, replicas - most)

    def manifest(self, replicas: int) -> Json:
        labels = {"app": self.name}
        spec: Json = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": self._template(labels)}
        if self.owner is Owner.STATEFUL_SET:
            spec |= {"serviceName": self.name, "podManagementPolicy": "Parallel"}
        return {"metadata": {"name": self.name}, "spec": spec}

    def _template(self, labels: Json) -> Json:
        container: Json = {
            "name": "web",
            "image": "lab.local/none",
            "ports": [{"containerPort": 8080}],
            "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
            "livenessProbe": {"httpGet": {"path": "/", "port": 8080}, "periodSeconds": 1},
        }
        if self.pre_stop:
            container["lifecycle"] = {"preStop": {"exec": {"command": ["true"]}}}
        spec = {
            "schedulerName": self.scheduler,
            "terminationGracePeriodSeconds": 1,
            "automountServiceAccountToken": False,
            "containers": [container],
        }
        return {"metadata": {"labels": labels}, "spec": spec}

    @property
    def companions(self) -> list[tuple[str, Json]]:
        """What is created beside it: collection and object."""
        selector = {"app": self.name}
        service = {"metadata": {"name": self.name}, "spec": {"selector": selector, "ports": [{"port": 8080}]}}
        made: list[tuple[str, Json]] = [(f"/api/v1/namespaces/{NAMESPACE}/services", service)]
        if self.min_available is not None:
            made.append((PDBS, pdb(self.name, self.name, {"minAvailable": self.min_available})))
        if self.hpa:
            made.append((f"/apis/autoscaling/v2/namespaces/{NAMESPACE}/horizontalpodautoscalers", self._hpa()))
        return made

    def _hpa(self) -> Json:
        """Wants what is there: it scales only what somebody else changed."""
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": self.name}
        cpu = {"name": "cpu", "target": {"type": "AverageValue", "averageValue": "100"}}
        spec = {
            "scaleTargetRef": target,
            "minReplicas": self.replicas,
            "maxReplicas": self.replicas,
            "metrics": [{"type": "Resource", "resource": cpu}],
        }
        return {"metadata": {"name": self.name}, "spec": spec}


PDBS = f"/apis/policy/v1/namespaces/{NAMESPACE}/poddisruptionbudgets"


def pdb(name: str, app: str, rule: Json) -> Json:
    return {"metadata": {"name": name}, "spec": {**rule, "selector": {"matchLabels": {"app": app}}}}


WORKLOADS = (
    Workload("single-a", Owner.DEPLOYMENT, 1, pre_stop=True),
    Workload("single-b", Owner.DEPLOYMENT, 1),
    Workload("single-guarded", Owner.DEPLOYMENT, 1, min_available=1),
    Workload("pair", Owner.DEPLOYMENT, 2),
    Workload("pair-guarded", Owner.DEPLOYMENT, 2, min_available=1, pre_stop=True),
    Workload("many", Owner.DEPLOYMENT, 5, pre_stop=True),
    Workload("many-guarded", Owner.DEPLOYMENT, 4, min_available=3),
    Workload("scaled-by-hpa", Owner.DEPLOYMENT, 2, hpa=True),
    Workload("scaled-by-hpa-many", Owner.DEPLOYMENT, 4, hpa=True),
    Workload("scaled-by-hpa-single", Owner.DEPLOYMENT, 1, hpa=True),
    Workload("scaled-by-hpa-guarded", Owner.DEPLOYMENT, 3, min_available=2, hpa=True),
    Workload("stateful", Owner.STATEFUL_SET, 3),
    Workload("stateful-guarded", Owner.STATEFUL_SET, 2, min_available=1),
    Workload("bare", Owner.REPLICA_SET, 2),
    Workload("theirs", Owner.DEPLOYMENT, 2, scheduler=DEFAULT, pre_stop=True),
    Workload("theirs-many", Owner.DEPLOYMENT, 4, scheduler=DEFAULT),
    Workload("theirs-single", Owner.DEPLOYMENT, 1, scheduler=DEFAULT),
    Workload("theirs-stateful", Owner.STATEFUL_SET, 2, scheduler=DEFAULT),
)
