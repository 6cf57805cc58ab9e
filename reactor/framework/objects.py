"""What pods and nodes look like for a user's algorithm: dicts as in KSE's published code, memory in KiB, CPU in
nanocores."""

from __future__ import annotations

from typing import TypedDict

from reactor.clock import rfc3339
from reactor.cluster.records import Node, Pod
from reactor.errors import MetricsError
from reactor.signals.measurements import Usage
from reactor.state.snapshot import Snapshot

_CONTROL_PLANE = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")


class Amounts(TypedDict):
    cpu: int
    memory: int


class PodInfo(TypedDict):
    name: str
    namespace: str
    usage: Amounts


class NodeInfo(TypedDict):
    name: str
    type: str
    capacity: Amounts
    usage: Amounts
    pods: list[PodInfo]


class PodStatus(TypedDict):
    name: str
    namespace: str
    status: str


class PodMetrics(TypedDict):
    name: str
    namespace: str
    timestamp: str
    usage: Amounts


class ClusterInfo(TypedDict):
    server: str
    scheduler_name: str
    nodes: int
    pods: int
    pending_pods: int
    unready_pods: int


def pod_info(name: str, pod: Pod, snapshot: Snapshot) -> PodInfo:
    """Raises MetricsError without fresh usage: not measured is not zero."""
    return {"name": name, "namespace": pod.namespace, "usage": _used(snapshot.usage.usage(pod.uid), pod.key)}


def pod_metrics(name: str, pod: Pod, snapshot: Snapshot) -> PodMetrics:
    usage = snapshot.usage.usage(pod.uid)
    amounts, at = _used(usage, pod.key), min(usage.cpu.at, usage.memory.at)
    return {"name": name, "namespace": pod.namespace, "timestamp": rfc3339(at), "usage": amounts}


def node_info(node: Node, pods: list[PodInfo], snapshot: Snapshot) -> NodeInfo:
    return {
        "name": node.name,
        "type": "worker",
        "capacity": _amounts(node.capacity.get("cpu", 0.0), node.capacity.get("memory", 0.0)),
        "usage": _used(snapshot.usage.node_usage(node.name), f"node {node.name}"),
        "pods": pods,
    }


def is_worker(node: Node) -> bool:
    return not any(label in node.labels for label in _CONTROL_PLANE)


def _used(usage: Usage, whose: str) -> Amounts:
    cpu, memory = usage.cpu.fresh, usage.memory.fresh
    if cpu is None or memory is None:
        raise MetricsError(f"{whose}: no fresh measurement of its CPU and memory")
    return _amounts(cpu, memory)


def _amounts(cores: float, size: float) -> Amounts:
    return {"cpu": round(cores * 1e9), "memory": round(size / 1024)}
