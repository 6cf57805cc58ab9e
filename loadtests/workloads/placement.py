"""Nodes and apps of a scenario, and where kube-scheduler's default scores place pods on empty nodes."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from loadtests.embedded.default_scheduler import choose_node

Placement = Mapping[str, str]
"""Node by app."""


@dataclass(frozen=True, slots=True)
class NodeSpec:
    name: str
    cores: float
    memory_bytes: int
    max_pods: int = 110
    labels: Mapping[str, str] = field(default_factory=dict)
    address: str = "127.0.0.1"

    def resources(self) -> dict[str, str]:
        return {
            "cpu": f"{round(self.cores * 1000)}m" if self.cores % 1 else str(int(self.cores)),
            "memory": f"{self.memory_bytes // 1024}Ki",
            "pods": str(self.max_pods),
        }

    def all_labels(self) -> dict[str, str]:
        standard = {"kubernetes.io/hostname": self.name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
        return {**standard, **self.labels}

    def manifest(self) -> dict[str, Any]:
        """The Node without its status: that is the kubelet's to write."""
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": self.name, "labels": self.all_labels()},
            "spec": {},
        }


Json = dict[str, Any]


def default_placement(
    nodes: Iterable[NodeSpec], pod_specs: Iterable[Json], ties: random.Random | None = None
) -> tuple[str, ...]:
    """The node of each pod, placed one after the other; without `ties` the first of equals by name."""
    machines = [{**node.manifest(), "status": {"allocatable": node.resources()}} for node in nodes]
    placed: list[Json] = []
    for number, spec in enumerate(pod_specs):
        pod = {"metadata": {"name": f"pod-{number}", "namespace": "default", "uid": str(number)}, "spec": spec}
        node = choose_node(pod, machines, placed, ties)
        if node is None:
            raise ValueError(f"pod {number} of the scenario fits on no node by its requests")
        placed.append({**pod, "spec": {**spec, "nodeName": node}})
    return tuple(pod["spec"]["nodeName"] for pod in placed)


@dataclass(frozen=True, slots=True)
class App:
    name: str
    work_ms: float
    """CPU per request."""
