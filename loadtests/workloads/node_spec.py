"""A worker machine of the lab and the Node object that stands for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class NodeSpec:
    name: str
    cores: float
    memory_bytes: int
    max_pods: int = 110
    labels: Mapping[str, str] = field(default_factory=dict)

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
