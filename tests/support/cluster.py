"""Builders of the records and snapshots that decisions are made from. What a test does not name is ordinary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from predictors.peaks import SigmaOrPercentile
from reactor.cluster.records import (
    Container,
    Event,
    LabelSelector,
    Node,
    NodeUsageSample,
    Owner,
    Pod,
    PodDisruptionBudget,
    PodUsageSample,
    Probe,
    Workload,
)
from reactor.cluster.view import ClusterView
from reactor.decision.cooldowns import Cooldowns
from reactor.decision.eligibility import Eligibility
from reactor.settings.model import Settings
from reactor.signals.measurements import MetricsSource
from reactor.signals.probe_counts import ProbeCounts
from reactor.signals.usage import UsageHistory, UsageView
from reactor.state.happiness import PodHappiness, probability
from reactor.state.moves import ActiveMoves
from reactor.state.snapshot import Needs, Snapshot
from reactor.state.steering import SteeringStatus
from reactor.state.thresholds import Threshold, ThresholdSource
from tests.support.clock import NOW

GIB = 2.0**30

Use = tuple[float | None, float | None]
"""Cores and bytes."""


def make_settings(**sections: Any) -> Settings:
    """`make_settings(mode="act", decision={"cooldown": 5})`; keys as in the settings file or in Python.

    Pods are evicted, single replicas too, unless a test names other strategies: the ordinary pod is the only one of a
    ReplicaSet.
    """
    execution = sections.pop("execution", {})
    given = {"strategies" in execution, "evict_single_replicas" in execution or "evictSingleReplicas" in execution}
    evict = {} if True in given else {"strategies": ["evict"], "evictSingleReplicas": True}
    return Settings.model_validate({**sections, "execution": {**evict, **execution}})


def make_owner(name: str = "web-1a2b", kind: str = "ReplicaSet", uid: str = "") -> Owner:
    return Owner(kind, name, uid or f"uid-{kind}-{name}")


def make_pod(name: str = "web-1", **fields: Any) -> Pod:
    """A Running, Ready pod of ours on node n1 that a ReplicaSet named after the app owns."""
    app = name.rpartition("-")[0] or name
    ordinary: dict[str, Any] = {
        "uid": f"uid-{name}",
        "namespace": "shop",
        "name": name,
        "resource_version": "",
        "labels": {"app": app, "pod-template-hash": "1a2b"},
        "annotations": {},
        "created": NOW - 3600,
        "scheduler_name": "rematch",
        "node": "n1",
        "owner": make_owner(f"{app}-1a2b"),
        "phase": "Running",
        "ready": True,
        "requests": {"cpu": 0.5, "memory": 0.5 * GIB},
        "containers": (Container("srv", Probe(), 0, NOW - 3600),),
    }
    return Pod(**(ordinary | fields))


def make_pending(name: str, **fields: Any) -> Pod:
    container = Container("srv", Probe())
    waiting = {"node": None, "phase": "Pending", "ready": False, "created": NOW, "containers": (container,)}
    return make_pod(name, **(waiting | fields))


def make_node(name: str = "n1", cpu: float = 4.0, memory: float = 8 * GIB, **fields: Any) -> Node:
    allocatable = {"cpu": cpu, "memory": memory, "pods": 110.0}
    ordinary: dict[str, Any] = {
        "name": name,
        "uid": f"uid-{name}",
        "resource_version": "",
        "labels": {"kubernetes.io/hostname": name},
        "allocatable": allocatable,
        "capacity": allocatable,
        "ready": True,
        "created": NOW - 7200,
    }
    return Node(**(ordinary | fields))


def make_workload(owner: Owner, /, namespace: str = "shop", **fields: Any) -> Workload:
    ordinary: dict[str, Any] = {"resource_version": "", "replicas": 1}
    return Workload(owner.kind, owner.uid, namespace, owner.name, **(ordinary | fields))


def make_pdb(name: str, allowed: int, app: str = "web", namespace: str = "shop") -> PodDisruptionBudget:
    from matching.problem import Requirement

    selector = LabelSelector((Requirement("app", "In", (app,)),))
    return PodDisruptionBudget(f"uid-{name}", namespace, name, "", selector, allowed)


def make_event(pod: Pod, count: int = 1, last: float = NOW, **fields: Any) -> Event:
    """The kubelet's Warning about a failed liveness probe."""
    ordinary: dict[str, Any] = {
        "uid": f"event-{pod.uid}",
        "namespace": pod.namespace,
        "name": f"{pod.name}.1",
        "resource_version": "",
        "reason": "Unhealthy",
        "type": "Warning",
        "message": "Liveness probe failed: HTTP probe failed with statuscode: 500",
        "involved_name": pod.name,
        "involved_uid": pod.uid,
        "field_path": "spec.containers{srv}",
        "count": count,
        "first": last,
        "last": last,
        "component": "kubelet",
    }
    return Event(**(ordinary | fields))


def make_view(pods: Iterable[Pod], nodes: Iterable[Node], **more: Any) -> ClusterView:
    """Owners exist unless `workloads` says which ones do."""
    pods = list(pods)
    workloads: Iterable[Workload] | None = more.pop("workloads", None)
    if workloads is None:
        existing = Counter(pod.owner for pod in pods if pod.active)
        workloads = [
            make_workload(pod.owner, pod.namespace, replicas=max(1, existing[pod.owner]))
            for pod in pods
            if pod.owner is not None
        ]
    return ClusterView(
        at=more.pop("at", NOW),
        nodes={node.name: node for node in nodes},
        pods={pod.uid: pod for pod in pods},
        workloads={workload.uid: workload for workload in workloads},
        **more,
    )


def make_usage(
    view: ClusterView, pods: Mapping[str, Use], nodes: Mapping[str, Use], *, now: float, age: float = 0.0
) -> UsageView:
    """`pods` by name; a pod that is not named was never measured."""
    usage = UsageHistory(120.0, 900.0, SigmaOrPercentile())
    for node in view.nodes.values():
        usage.observe_node(node.name, node.addresses)
    for pod in view.pods.values():
        usage.observe_pod(pod)
    samples = [
        PodUsageSample(pod.namespace, pod.name, *pods[pod.name], now - age)
        for pod in view.pods.values()
        if pod.name in pods
    ]
    usage.record_pods(samples, MetricsSource.METRICS_API, now - age)
    usage.record_nodes(
        [NodeUsageSample(name, *use, now - age) for name, use in nodes.items()], MetricsSource.METRICS_API, now - age
    )
    return usage.freeze(now)


def make_happiness(failures: float, successes: float = 0.0, threshold: float = 0.8) -> PodHappiness:
    """The kubelet's counters show the failures."""
    counts = ProbeCounts(successes, failures, failures)
    return PodHappiness(counts, probability(counts, 5.0), Threshold(threshold, ThresholdSource.GLOBAL))


def make_snapshot(pods: Iterable[Pod], nodes: Iterable[Node], **more: Any) -> Snapshot:
    """`failures` by pod name. `usage` and `node_usage` are fresh unless `age` says how old they are."""
    now = more.pop("now", NOW)
    failures: Mapping[str, float] = more.pop("failures", {})
    usage: Mapping[str, Use] = more.pop("usage", {})
    node_usage: Mapping[str, Use] = more.pop("node_usage", {})
    age, needs, moves = more.pop("age", 0.0), more.pop("needs", Needs.METRICS), more.pop("moves", ActiveMoves())
    steering = more.pop("steering", SteeringStatus())
    view = make_view(pods, nodes, at=now, **more)
    failing = [pod for pod in view.pods.values() if pod.name in failures]
    happiness = {pod.uid: make_happiness(failures[pod.name]) for pod in failing}
    return Snapshot(now, view, make_usage(view, usage, node_usage, now=now, age=age), happiness, moves, needs, steering)


def make_eligibility(
    snapshot: Snapshot, settings: Settings | None = None, cooldowns: Cooldowns | None = None
) -> Eligibility:
    return Eligibility(snapshot, cooldowns or Cooldowns(), settings or make_settings())
