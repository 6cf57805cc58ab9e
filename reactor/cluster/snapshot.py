"""The cluster at one instant, as a value: what a cycle reads while the mirror goes on changing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from reactor.cluster.records import (
    Budget,
    Claim,
    Namespace,
    Node,
    Pod,
    PriorityClass,
    Volume,
    Workload,
)


@dataclass(frozen=True)
class ClusterView:
    """Look-ups by node and by name are made on first use: a cycle that needs none of them pays nothing."""

    at: float
    nodes: Mapping[str, Node] = field(default_factory=dict)
    """By name."""
    pods: Mapping[str, Pod] = field(default_factory=dict)
    """By UID."""
    workloads: Mapping[str, Workload] = field(default_factory=dict)
    """By UID."""
    budgets: tuple[Budget, ...] = ()
    namespaces: Mapping[str, Namespace] = field(default_factory=dict)
    claims: tuple[Claim, ...] = ()
    volumes: Mapping[str, Volume] = field(default_factory=dict)
    priority_classes: Mapping[str, PriorityClass] = field(default_factory=dict)

    def pods_on(self, node: str) -> tuple[Pod, ...]:
        """Every pod bound to the node, finished and terminating ones included."""
        return self._pods_by_node.get(node, ())

    def pod_named(self, namespace: str, name: str) -> Pod | None:
        return self._pods_by_name.get((namespace, name))

    def pods_of(self, owner_uid: str) -> tuple[Pod, ...]:
        """The pods whose controlling owner has this UID."""
        return self._pods_by_owner.get(owner_uid, ())

    def workload_of(self, pod: Pod) -> Workload | None:
        """The controller that people know the pod by: a ReplicaSet's Deployment, else the owner itself.

        None for a pod without a controller, and for one whose controller is gone.
        """
        owner = self.workloads.get(pod.owner.uid) if pod.owner else None
        if owner is None or owner.owner is None:
            return owner
        return self.workloads.get(owner.owner.uid, owner)

    @cached_property
    def _pods_by_node(self) -> Mapping[str, tuple[Pod, ...]]:
        grouped: dict[str, list[Pod]] = {}
        for pod in self.pods.values():
            if pod.node is not None:
                grouped.setdefault(pod.node, []).append(pod)
        return {node: tuple(pods) for node, pods in grouped.items()}

    @cached_property
    def _pods_by_owner(self) -> Mapping[str, tuple[Pod, ...]]:
        grouped: dict[str, list[Pod]] = {}
        for pod in self.pods.values():
            if pod.owner is not None:
                grouped.setdefault(pod.owner.uid, []).append(pod)
        return {owner: tuple(pods) for owner, pods in grouped.items()}

    @cached_property
    def _pods_by_name(self) -> Mapping[tuple[str, str], Pod]:
        return {(pod.namespace, pod.name): pod for pod in self.pods.values()}
