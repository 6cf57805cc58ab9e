"""A cluster of fake pods: an embedded API server with pods that never run, for benches of the controller.

Half of the nodes are crowded to just above the pressure at which a move can help, the other half have room.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from loadtests.embedded import Change, ChangeType, ClusterOptions, EmbeddedCluster, NodeMetrics, PodMetrics, changed
from loadtests.embedded.deletion import DeleteOptions, delete
from loadtests.embedded.objects import is_deleting, name_of, namespace_of, timestamp, uid_of
from loadtests.embedded.resources import EVENTS, NODES, PODS, REPLICASETS, Json
from reactor.background.start_up import freeze_heap
from reactor.clock import Clock

CORES = 10
MEMORY = 32 * 2**30
CROWDED, ROOMY = 0.98, 0.30
SCHEDULER = "rematch"
_AGE = 3600.0
"""Seconds: probes of younger pods could not have failed as often as the reported Events say."""


@dataclass(frozen=True, slots=True)
class Size:
    nodes: int = 100
    pods_per_node: int = 10

    @property
    def pods(self) -> int:
        return self.nodes * self.pods_per_node


def unhealthy_event(reference: Mapping[str, str], node: str | None, name: str, count: int, now: float) -> Json:
    """The Event of a kubelet after `count` failed liveness probes of the pod with this namespace, name and UID."""
    return {
        "metadata": {"name": name, "namespace": reference["namespace"]},
        "involvedObject": {"apiVersion": "v1", "kind": "Pod", **reference, "fieldPath": "spec.containers{web}"},
        "reason": "Unhealthy",
        "message": "Liveness probe failed: HTTP probe failed with statuscode: 500",
        "type": "Warning",
        "count": count,
        "firstTimestamp": timestamp(now),
        "lastTimestamp": timestamp(now),
        "source": {"component": "kubelet", "host": node},
        "reportingComponent": "kubelet",
    }


class FakePodCluster:
    def __init__(self, size: Size, clock: Clock) -> None:
        self.size = size
        self._clock = clock
        options = ClusterOptions(schedule=frozenset())
        self.cluster = EmbeddedCluster(options, clock=clock, metrics=self)
        self._events = 0

    def node_usage(self) -> Iterable[NodeMetrics]:
        """Implements the embedded server's MetricsProvider: a pod uses what its name's node was built with."""
        now = self._clock.now()
        used: dict[str, float] = {}
        for stored in self.cluster.store.all(PODS):
            node = stored.obj["spec"].get("nodeName")
            if node:
                used[node] = used.get(node, 0.0) + _cores(stored.obj, self.size)
        for stored in self.cluster.store.all(NODES):
            yield NodeMetrics(name_of(stored.obj), used.get(name_of(stored.obj), 0.0), MEMORY / 4, now)

    def pod_usage(self) -> Iterable[PodMetrics]:
        now = self._clock.now()
        for stored in self.cluster.store.all(PODS):
            pod = stored.obj
            if pod["spec"].get("nodeName"):
                usage = (("web", _cores(pod, self.size), 2.0**28),)
                yield PodMetrics(namespace_of(pod), name_of(pod), usage, now)

    def fill(self) -> None:
        for number in range(self.size.nodes):
            self.cluster.api.create(NODES, _node(_node_name(number), self._clock))
        for number in range(self.size.pods):
            self._workload(number)
        self.cluster.store.observe(self._play_kubelet)

    def crowded_pod(self, number: int) -> Json:
        """A pod on the crowded node of that number."""
        node = _node_name(2 * number)
        return next(s.obj for s in self.cluster.store.all(PODS) if s.obj["spec"].get("nodeName") == node)

    def report_unhealthy(self, pod: Json, count: int = 10) -> None:
        """What a kubelet says after so many failed liveness probes."""
        self._events += 1
        reference = {"namespace": namespace_of(pod), "name": name_of(pod), "uid": uid_of(pod)}
        name, now = f"{name_of(pod)}.{self._events}", self._clock.now()
        event = unhealthy_event(reference, pod["spec"]["nodeName"], name, count, now)
        self.cluster.api.create(EVENTS, event, namespace=namespace_of(pod))

    def _workload(self, number: int) -> None:
        """A ReplicaSet of one, its pod bound and Ready at once."""
        name = f"app-{number:05}"
        labels = {"app": name, "pod-template-hash": "1"}
        owner = self.cluster.api.create(
            REPLICASETS,
            {
                "metadata": {"name": name, "labels": labels},
                "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": _template(labels)},
            },
            namespace="default",
        )
        counts = dict.fromkeys(("replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas"), 1)
        status = {
            **counts,
            "observedGeneration": owner["metadata"]["generation"],
        }  # else its controller writes them all
        self.cluster.store.replace(REPLICASETS, changed(owner, status=status))
        reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": uid_of(owner)}
        pod = {
            "metadata": {
                "name": f"{name}-a",
                "labels": labels,
                "ownerReferences": [{**reference, "controller": True, "blockOwnerDeletion": True}],
            },
            "spec": _template(labels)["spec"] | {"nodeName": _node_name(number // self.size.pods_per_node)},
        }
        born = timestamp(self._clock.now() - _AGE)
        created = self.cluster.api.create(PODS, pod, namespace="default")
        aged = changed(created, metadata={**created["metadata"], "creationTimestamp": born})
        self._run(self.cluster.store.replace(PODS, aged).obj)

    def _run(self, pod: Json) -> None:
        self.cluster.api.update_status(PODS, changed(pod, status=_running(self._clock.now())))

    def _play_kubelet(self, change: Change) -> None:
        """Bound pods run at once; deleted pods are removed right after the response."""
        if change.resource is not PODS or change.type is ChangeType.DELETED:
            return
        pod = change.new.obj
        if is_deleting(pod):
            asyncio.get_running_loop().call_soon(self._remove, pod)
        elif pod["spec"].get("nodeName") and pod.get("status", {}).get("phase") != "Running":
            self._run(pod)

    def _remove(self, pod: Json) -> None:
        if self.cluster.store.find(PODS, namespace_of(pod), name_of(pod)) is not None:
            delete(self.cluster.api, PODS, namespace_of(pod), name_of(pod), DeleteOptions(0, uid_of(pod)))


@asynccontextmanager
async def fake_pod_cluster(size: Size, clock: Clock) -> AsyncIterator[FakePodCluster]:
    paper = FakePodCluster(size, clock)
    gc.disable()  # a pass over millions of objects that stay takes seconds
    try:
        paper.fill()
    finally:
        gc.enable()
    freeze_heap()
    async with paper.cluster:
        yield paper


def _node_name(number: int) -> str:
    return f"node-{number:04}"


def _cores(pod: Json, size: Size) -> float:
    """Pods that were born on an even node are the hungry ones, wherever they are now."""
    number = int(pod["metadata"]["labels"]["app"].removeprefix("app-"))
    crowded = (number // size.pods_per_node) % 2 == 0
    return CORES * (CROWDED if crowded else ROOMY) / size.pods_per_node


def _node(name: str, clock: Clock) -> Json:
    resources = {"cpu": str(CORES), "memory": str(MEMORY), "pods": "110"}
    now = timestamp(clock.now())
    ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": now, "lastTransitionTime": now}
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"capacity": resources, "allocatable": resources, "conditions": [ready]},
    }


def _template(labels: dict[str, str]) -> dict[str, Any]:
    container = {
        "name": "web",
        "image": "paper",
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
        "livenessProbe": {"httpGet": {"path": "/", "port": 80}, "periodSeconds": 10, "failureThreshold": 3},
    }
    return {"metadata": {"labels": labels}, "spec": {"schedulerName": SCHEDULER, "containers": [container]}}


def _running(now: float) -> Json:
    stamp = timestamp(now)
    return {
        "phase": "Running",
        "startTime": stamp,
        "podIP": "127.0.0.1",
        "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": stamp}],
        "containerStatuses": [
            {"name": "web", "ready": True, "restartCount": 0, "state": {"running": {"startedAt": stamp}}}
        ],
    }
