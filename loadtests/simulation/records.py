"""The simulated cluster as the reactor's watchers would see it: records, and answers to evictions and bindings."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager

from loadtests.simulation.clock import VirtualClock
from loadtests.simulation.cluster import SimulatedCluster, SimulationSpec
from loadtests.simulation.controller import Measured, RecordSink
from loadtests.simulation.pod import FAILURE_THRESHOLD, SimulatedPod
from loadtests.workloads.placement import App, NodeSpec
from reactor.cluster.api import ApiRequest, ApiResponse, Query
from reactor.cluster.decoding.quantity import parse_quantity
from reactor.cluster.kinds import Kind
from reactor.cluster.records import (
    Container,
    Event,
    Node,
    NodeUsageSample,
    Owner,
    Pod,
    PodUsageSample,
    Probe,
    Record,
    Workload,
)
from reactor.errors import Unreachable
from reactor.settings.model import Settings, StrategyName
from reactor.signals.measurements import ProbeCounter

CONTAINER = "web"
_HASH = "5f7c9d4b8"


def node_record(node: NodeSpec) -> Node:
    room = {name: parse_quantity(amount) for name, amount in node.resources().items()}
    return Node(node.name, node.name, "1", node.all_labels(), allocatable=room, capacity=room, ready=True,
                addresses=(node.name,))  # fmt: skip


def owner_record(app: App, namespace: str) -> Workload:
    return Workload("ReplicaSet", _owner(app).uid, namespace, _owner(app).name, "1", replicas=1)


def pod_record(pod: SimulatedPod, version: int, spec: SimulationSpec, now: float) -> Pod:
    probe = Probe(spec.probe_period, FAILURE_THRESHOLD, 0.0)
    return Pod(
        uid=pod.uid,
        namespace=spec.namespace,
        name=pod.uid,
        resource_version=str(version),
        labels={"app": pod.app.name, "pod-template-hash": _HASH},
        annotations={},
        created=pod.created,
        scheduler_name="rematch",
        node=pod.node,
        owner=_owner(pod.app),
        phase="Pending" if pod.started is None else "Running",
        ready=pod.ready,
        deleting=now if pod.deleting else None,
        requests={name: parse_quantity(amount) for name, amount in spec.requests.items()},
        containers=(Container(CONTAINER, probe, pod.restarts, pod.started, pod.terminated),),
        started=pod.started,
    )


def event_record(pod: str, namespace: str, reason: str, count: int, now: float) -> Event:
    """`pod` is its name and its UID."""
    messages = {
        "Unhealthy": "Liveness probe failed: context deadline exceeded",
        "Killing": f"Container {CONTAINER} failed liveness probe, will be restarted",
    }
    name = f"{pod}.{reason}"
    kind = "Warning" if reason == "Unhealthy" else "Normal"
    return Event(
        uid=name,
        namespace=namespace,
        name=name,
        resource_version=str(count),
        reason=reason,
        type=kind,
        message=messages[reason],
        involved_name=pod,
        involved_uid=pod,
        field_path=f"spec.containers{{{CONTAINER}}}",
        count=count,
        first=now,
        last=now,
        component="kubelet",
    )


def evicting(settings: Settings) -> Settings:
    """The simulated ReplicaSets have one replica and nobody who would scale them."""
    evict = {"strategies": (StrategyName.EVICT,), "evict_single_replicas": True}
    return settings.model_copy(update={"execution": settings.execution.model_copy(update=evict)})


class WatchedCluster:
    """A `SimulatedCluster` for a `SimulatedController`."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self._cluster, self._namespace = cluster, cluster.spec.namespace
        self.connection = SimulatedConnection(cluster)
        self._sink: RecordSink | None = None
        self._version = 0
        self._events: dict[str, int] = {}
        self._used: dict[str, float] = {}
        self._used_by_nodes: dict[str, float] = {}
        self._measured_at = cluster.clock.time

    @property
    def clock(self) -> VirtualClock:
        return self._cluster.clock

    def records(self) -> Mapping[Kind, Sequence[Record]]:
        spec = self._cluster.spec
        return {
            Kind.NODES: [node_record(node) for node in spec.nodes],
            Kind.REPLICA_SETS: [owner_record(app, spec.namespace) for app in spec.apps],
            Kind.PODS: [self._record(pod) for pod in self._cluster.pods.values()],
        }

    def report_to(self, sink: RecordSink) -> None:
        self._sink = sink
        self._cluster.reporter = self

    def measure(self) -> Measured:
        now, pods = self.clock.now(), [pod for pod in self._cluster.pods.values() if pod.started is not None]
        window = self.clock.time - self._measured_at
        self._measured_at = self.clock.time
        memory = self._cluster.memory_bytes
        return Measured(
            [PodUsageSample(self._namespace, pod.uid, self._cores(pod, window), memory, now) for pod in pods],
            self._node_samples(now, window),
            [
                ProbeCounter(
                    self._namespace, pod.uid, CONTAINER, float(pod.successes), float(pod.failures), now, pod.uid
                )
                for pod in pods
            ],
        )

    def pod_changed(self, pod: SimulatedPod) -> None:
        assert self._sink is not None
        if pod.deleting and pod.node is None:
            self._sink.removed(Kind.PODS, pod.uid)
            self._used.pop(pod.uid, None)
        else:
            self._sink.changed(Kind.PODS, self._record(pod))

    def probe_failed(self, pod: SimulatedPod) -> None:
        self._report_event(pod, "Unhealthy")

    def container_killed(self, pod: SimulatedPod) -> None:
        self._report_event(pod, "Killing")

    def _record(self, pod: SimulatedPod) -> Pod:
        self._version += 1
        return pod_record(pod, self._version, self._cluster.spec, self.clock.now())

    def _report_event(self, pod: SimulatedPod, reason: str) -> None:
        assert self._sink is not None
        count = self._events[f"{pod.uid}.{reason}"] = self._events.get(f"{pod.uid}.{reason}", 0) + 1
        self._sink.changed(Kind.EVENTS, event_record(pod.uid, self._namespace, reason, count, self.clock.now()))

    def _cores(self, pod: SimulatedPod, window: float) -> float:
        used = pod.used()
        before, self._used[pod.uid] = self._used.get(pod.uid, 0.0), used
        return (used - before) / window

    def _node_samples(self, now: float, window: float) -> list[NodeUsageSample]:
        samples = []
        for name, used in self._cluster.used().items():
            before, self._used_by_nodes[name] = self._used_by_nodes.get(name, 0.0), used
            memory = self._cluster.memory_bytes * sum(pod.node == name for pod in self._cluster.pods.values())
            samples.append(NodeUsageSample(name, (used - before) / window, memory, now))
        return samples


class SimulatedConnection:
    """The two writes that the executor asks for."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self._cluster = cluster

    async def send(self, call: ApiRequest) -> ApiResponse:
        *_, name, action = call.path.split("/")
        pod = self._cluster.pods.get(name)
        if pod is None or pod.deleting:
            return status_response(404, "NotFound", f'pods "{name}" not found')
        if action == "eviction":
            self._cluster.evict(name)
        elif action == "binding" and call.body is not None:
            target = call.body["target"]
            assert isinstance(target, dict)
            self._cluster.bind(name, str(target["name"]))
        elif action == "status":
            return status_response(200, "", "")
        else:
            return status_response(405, "MethodNotAllowed", f"{call.method} {call.path} is not simulated")
        return status_response(201, "", "")

    def stream(self, path: str, query: Query, idle_timeout: float) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        del query, idle_timeout
        raise Unreachable(f"{path}: nothing is watched in simulated time")

    async def close(self) -> None:
        return None


def _owner(app: App) -> Owner:
    return Owner("ReplicaSet", f"{app.name}-{_HASH}", f"rs-{app.name}")


def status_response(code: int, reason: str, message: str) -> ApiResponse:
    success = "Success" if code < 300 else "Failure"
    body = {"kind": "Status", "apiVersion": "v1", "status": success, "reason": reason, "message": message, "code": code}
    return ApiResponse(code, json.dumps(body).encode())
