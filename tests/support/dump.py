"""Objects as `kubectl get ... -o json` prints them, with fields of other versions that nobody here knows."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from tests.support.clock import NOW

Json = dict[str, Any]
FUTURE = {"someFutureField": {"nested": [1, "two", None]}}


def stamp(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _meta(name: str, namespace: str = "", **more: Any) -> Json:
    meta: Json = {
        "name": name,
        "uid": f"uid-{name}",
        "resourceVersion": "42",
        "creationTimestamp": stamp(NOW - 3600),
        "managedFields": [{"manager": "kubectl", "operation": "Update"}],
    }
    return meta | ({"namespace": namespace} if namespace else {}) | more


def node(name: str, cpu: str = "4", memory: str = "8Gi", **spec: Any) -> Json:
    amounts = {"cpu": cpu, "memory": memory, "pods": "110"}
    ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": stamp(NOW - 30)}
    status = {"allocatable": amounts, "capacity": amounts, "conditions": [ready]} | FUTURE
    return {"apiVersion": "v1", "kind": "Node", "metadata": _meta(name), "spec": spec | FUTURE, "status": status}


def pod(name: str, on: str | None = "n1", **spec: Any) -> Json:
    """Of a ReplicaSet `<app>-1a2b` of a Deployment `<app>`, with a liveness probe."""
    app = name.rpartition("-")[0]
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"{app}-1a2b", "uid": f"uid-{app}-1a2b"}
    owners = spec.pop("owners", [owner | {"controller": True}])
    labels = {"app": app, "pod-template-hash": "1a2b"}
    container = {
        "name": "srv",
        "image": "shop/web",
        "resources": {"requests": spec.pop("requests", {"cpu": "500m", "memory": "512Mi"})},
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": 80}, "periodSeconds": 10},
    } | FUTURE
    status: Json = {"phase": "Pending"}
    if on is not None:
        spec["nodeName"] = on
        state = {"running": {"startedAt": stamp(NOW - 3500)}}
        status = {
            "phase": "Running",
            "startTime": stamp(NOW - 3550),
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": stamp(NOW - 3400)}],
            "containerStatuses": [{"name": "srv", "restartCount": 0, "state": state}],
        }
    meta = _meta(name, spec.pop("namespace", "shop"), labels=labels, ownerReferences=owners)
    meta["annotations"] = spec.pop("annotations", {})
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": meta,
        "spec": {"schedulerName": "rematch", "containers": [container]} | spec,
        "status": status | FUTURE,
    }


def replica_set(app: str) -> Json:
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": app, "uid": f"uid-{app}", "controller": True}
    meta = _meta(f"{app}-1a2b", "shop", ownerReferences=[owner])
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": meta, "spec": {"replicas": 1}}


def deployment(app: str) -> Json:
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": _meta(app, "shop"), "spec": {"replicas": 1}}


def unhealthy(pod_name: str, count: int = 20, at: float = NOW) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": _meta(f"{pod_name}.1", "shop"),
        "involvedObject": {
            "kind": "Pod",
            "namespace": "shop",
            "name": pod_name,
            "uid": f"uid-{pod_name}",
            "fieldPath": "spec.containers{srv}",
        },
        "reason": "Unhealthy",
        "type": "Warning",
        "message": "Liveness probe failed: HTTP probe failed with statuscode: 500",
        "count": count,
        "firstTimestamp": stamp(at - 10),
        "lastTimestamp": stamp(at),
        "source": {"component": "kubelet"},
    }


def pod_metrics(name: str, cpu: str, memory: str = "100Mi", at: float = NOW) -> Json:
    return {
        "apiVersion": "metrics.k8s.io/v1beta1",
        "kind": "PodMetrics",
        "metadata": {"name": name, "namespace": "shop"},
        "timestamp": stamp(at),
        "window": "15s",
        "containers": [{"name": "srv", "usage": {"cpu": cpu, "memory": memory}}],
    }


def node_metrics(name: str, cpu: str, memory: str = "1Gi", at: float = NOW) -> Json:
    return {
        "apiVersion": "metrics.k8s.io/v1beta1",
        "kind": "NodeMetrics",
        "metadata": {"name": name},
        "timestamp": stamp(at),
        "window": "15s",
        "usage": {"cpu": cpu, "memory": memory},
    }


def list_of(*items: Json, kind: str = "List") -> Json:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"resourceVersion": ""}, "items": list(items)}


def shop() -> list[Json]:
    """web-1 fails its probes on a crowded n1; n2 is idle."""
    return [
        node("n1"),
        node("n2"),
        pod("web-1"),
        pod("db-1", requests={"cpu": "3400m", "memory": "2Gi"}),
        replica_set("web"),
        replica_set("db"),
        deployment("web"),
        deployment("db"),
        unhealthy("web-1"),
    ]


def shop_metrics() -> list[Json]:
    return [
        pod_metrics("web-1", "900m"),
        pod_metrics("db-1", "2900m"),
        node_metrics("n1", "3900m"),
        node_metrics("n2", "100m"),
    ]
