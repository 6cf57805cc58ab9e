"""metrics.k8s.io from a provider that the lab hands in; without one the lists are empty."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from loadtests.embedded.objects import timestamp
from loadtests.embedded.resources import NODE_METRICS, POD_METRICS, Json


@dataclass(frozen=True, slots=True)
class NodeMetrics:
    name: str
    cpu_cores: float
    memory_bytes: float
    at: float
    window_seconds: float = 10.0


@dataclass(frozen=True, slots=True)
class PodMetrics:
    """`containers` is (name, cores, bytes) of each."""

    namespace: str
    name: str
    containers: tuple[tuple[str, float, float], ...]
    at: float
    labels: tuple[tuple[str, str], ...] = ()
    window_seconds: float = 10.0


class MetricsProvider(Protocol):
    def node_usage(self) -> Iterable[NodeMetrics]: ...

    def pod_usage(self) -> Iterable[PodMetrics]: ...


class NoMetrics:
    def node_usage(self) -> Iterable[NodeMetrics]:
        return ()

    def pod_usage(self) -> Iterable[PodMetrics]:
        return ()


def node_metrics(usage: NodeMetrics) -> Json:
    return {
        "kind": NODE_METRICS.kind,
        "apiVersion": NODE_METRICS.api_version,
        "metadata": {"name": usage.name, "creationTimestamp": timestamp(usage.at)},
        "timestamp": timestamp(usage.at),
        "window": _window(usage.window_seconds),
        "usage": _amounts(usage.cpu_cores, usage.memory_bytes),
    }


def pod_metrics(usage: PodMetrics) -> Json:
    metadata: Json = {"name": usage.name, "namespace": usage.namespace, "creationTimestamp": timestamp(usage.at)}
    if usage.labels:
        metadata["labels"] = dict(usage.labels)
    return {
        "kind": POD_METRICS.kind,
        "apiVersion": POD_METRICS.api_version,
        "metadata": metadata,
        "timestamp": timestamp(usage.at),
        "window": _window(usage.window_seconds),
        "containers": [{"name": name, "usage": _amounts(cpu, memory)} for name, cpu, memory in usage.containers],
    }


def _window(seconds: float) -> str:
    return f"{seconds:.3f}".rstrip("0").rstrip(".") + "s"


def _amounts(cores: float, size: float) -> Json:
    """metrics-server prints nanocores and kibibytes."""
    return {"cpu": f"{round(cores * 1e9)}n", "memory": f"{round(size / 1024)}Ki"}
