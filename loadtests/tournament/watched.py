"""The model as the reactor's watchers would see it: records, measurements, and answers to what a controller writes."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager

import msgspec

from loadtests.simulation.clock import VirtualClock
from loadtests.simulation.controller import Measured, RecordSink
from loadtests.simulation.records import CONTAINER, event_record, node_record, status_response
from loadtests.tournament.cluster import FluidCluster
from loadtests.tournament.state import AppState, FluidPod, NodeState
from reactor.cluster.api import ApiRequest, ApiResponse, Query
from reactor.cluster.kinds import Kind
from reactor.cluster.records import (
    Container,
    Node,
    NodeUsageSample,
    Owner,
    Pod,
    PodUsageSample,
    Probe,
    Record,
    Workload,
)
from reactor.cluster.surge_writes import DELETION_COST
from reactor.errors import Unreachable
from reactor.signals.measurements import ProbeCounter, ThrottleSample

NAMESPACE = "shop"
SCHEDULER = "rematch"


class WatchedModel:
    """A `FluidCluster` for a `SimulatedController`."""

    def __init__(self, cluster: FluidCluster) -> None:
        self._cluster = cluster
        self.connection = ModelConnection(cluster)
        self._sink: RecordSink | None = None
        self._version = 0
        self._events: dict[str, int] = {}
        self._used: dict[str, tuple[float, float]] = {}
        self._measured_at = 0.0

    @property
    def clock(self) -> VirtualClock:
        return self._cluster.clock

    def records(self) -> Mapping[Kind, Sequence[Record]]:
        cluster = self._cluster
        owned = [state for state in cluster.apps.values() if not state.model.pinned]
        return {
            Kind.NODES: [self._node(node) for node in cluster.nodes.values()],
            Kind.DEPLOYMENTS: [self._deployment(state) for state in owned],
            Kind.REPLICA_SETS: [self._replica_set(state, state.revision) for state in owned],
            Kind.DAEMON_SETS: [self._daemon_set(state) for state in cluster.apps.values() if state.model.pinned],
            Kind.PODS: [self._pod(pod) for pod in cluster.pods.values()],
        }

    def report_to(self, sink: RecordSink) -> None:
        self._sink = sink
        self._cluster.listener = self

    def measure(self) -> Measured:
        cluster, now = self._cluster, self.clock.now()
        seconds = max(self.clock.time - self._measured_at, 1e-9)
        self._measured_at = self.clock.time
        pods, counters, throttled = [], [], []
        cores, memory = dict.fromkeys(cluster.nodes, 0.0), dict.fromkeys(cluster.nodes, 0.0)
        before, self._used = self._used, {}
        for pod in cluster.pods.values():
            if pod.started is None or pod.node is None:
                continue
            slot = pod.slot
            used, held = float(cluster.slots.used[slot]), float(cluster.slots.throttled[slot])
            known_used, known_held = before.get(pod.uid, (0.0, 0.0))
            self._used[pod.uid] = (used, held)
            use, bytes_used = (used - known_used) / seconds, cluster.memory_of(pod)
            cores[pod.node] += use
            memory[pod.node] += bytes_used
            if not cluster.nodes[pod.node].reachable:
                continue
            pods.append(PodUsageSample(NAMESPACE, pod.uid, use, bytes_used, now))
            if not pod.app.pinned:
                good, bad = float(cluster.slots.successes[slot]), float(cluster.slots.failures[slot])
                counters.append(ProbeCounter(NAMESPACE, pod.uid, CONTAINER, good, bad, now, pod.uid))
            if pod.app.limit < float("inf"):
                throttled.append(ThrottleSample(NAMESPACE, pod.uid, min((held - known_held) / seconds, 1.0), now))
        nodes = [
            NodeUsageSample(name, cores[name], memory[name], now)
            for name, node in cluster.nodes.items()
            if node.reachable
        ]
        return Measured(pods, nodes, counters, throttled)

    def pod_changed(self, pod: FluidPod) -> None:
        self._report(Kind.PODS, self._pod(pod))

    def pod_gone(self, pod: FluidPod) -> None:
        assert self._sink is not None
        self._sink.removed(Kind.PODS, pod.uid)

    def owner_changed(self, app: AppState) -> None:
        if app.model.pinned:
            return
        self._report(Kind.DEPLOYMENTS, self._deployment(app))
        for revision in range(1, app.revision + 1):
            self._report(Kind.REPLICA_SETS, self._replica_set(app, revision))

    def node_changed(self, node: NodeState) -> None:
        self._report(Kind.NODES, self._node(node))

    def probe_failed(self, pod: FluidPod) -> None:
        self._report_event(pod, "Unhealthy")

    def container_killed(self, pod: FluidPod) -> None:
        self._report_event(pod, "Killing")

    def _report_event(self, pod: FluidPod, reason: str) -> None:
        count = self._events[f"{pod.uid}.{reason}"] = self._events.get(f"{pod.uid}.{reason}", 0) + 1
        self._report(Kind.EVENTS, event_record(pod.uid, NAMESPACE, reason, count, self.clock.now()))

    def _report(self, kind: Kind, record: Record) -> None:
        assert self._sink is not None
        self._sink.changed(kind, record)

    def _next_version(self) -> str:
        self._version += 1
        return str(self._version)

    def _node(self, node: NodeState) -> Node:
        return msgspec.structs.replace(
            node_record(node.model.spec),
            resource_version=self._next_version(),
            taints=node.model.taints,
            ready=node.ready,
            pressure=("MemoryPressure",) if node.pressure else (),
        )

    def _deployment(self, state: AppState) -> Workload:
        pods = self._cluster.active(state)
        return Workload(
            "Deployment",
            _deployment_uid(state),
            NAMESPACE,
            state.model.name,
            self._next_version(),
            replicas=state.replicas,
            generation=state.generation,
            observed_generation=state.generation,
            existing=len(pods),
            ready=sum(self._cluster.ready(pod) for pod in pods),
            updated=sum(pod.revision == state.revision for pod in pods),
            update_strategy="RollingUpdate",
            max_surge=1,
        )

    def _replica_set(self, state: AppState, revision: int) -> Workload:
        owner = Owner("Deployment", state.model.name, _deployment_uid(state))
        here = sum(pod.revision == revision for pod in self._cluster.active(state))
        rolling = any(pod.revision != state.revision for pod in self._cluster.active(state))
        wanted = state.replicas if revision == state.revision and not rolling else here
        uid = _replica_set_uid(state.model.name, revision)
        return Workload("ReplicaSet", uid, NAMESPACE, uid, self._next_version(), owner, replicas=wanted)

    def _daemon_set(self, state: AppState) -> Workload:
        return Workload("DaemonSet", f"ds-{state.model.name}", NAMESPACE, state.model.name, "1", replicas=1)

    def _pod(self, pod: FluidPod) -> Pod:
        probes, pinned = self._cluster.instance.scenario.probes, pod.app.pinned
        probe = None if pinned else Probe(probes.period, probes.failure_threshold, 0.0)
        revision = str(pod.revision)
        uid = _replica_set_uid(pod.app.name, pod.revision)
        owner = Owner("DaemonSet", pod.app.name, f"ds-{pod.app.name}") if pinned else Owner("ReplicaSet", uid, uid)
        return Pod(
            uid=pod.uid,
            namespace=NAMESPACE,
            name=pod.uid,
            resource_version=self._next_version(),
            labels={"app": pod.app.name, "pod-template-hash": revision},
            annotations={DELETION_COST: str(pod.cost)} if pod.cost else {},
            created=pod.created,
            scheduler_name=SCHEDULER,
            node=pod.node,
            owner=owner,
            phase="Pending" if pod.started is None else "Running",
            ready=self._cluster.ready(pod),
            deleting=self.clock.now() if pod.deleting else None,
            requests={"cpu": pod.app.cpu_request, "memory": pod.app.memory_request},
            rules=pod.app.rules,
            containers=(Container(CONTAINER, probe, pod.restarts, pod.started, pod.terminated),),
            started=pod.started,
            ready_since=pod.ready_since,
            pre_stop=True,
        )


def _deployment_uid(state: AppState) -> str:
    return f"deployment-{state.model.name}"


def _replica_set_uid(app: str, revision: int) -> str:
    return f"{app}-{revision}"


class ModelConnection:
    """The calls of a scale surge, evictions and bindings. No pod has a Service that would have to be drained first."""

    def __init__(self, cluster: FluidCluster) -> None:
        self._cluster = cluster

    async def send(self, call: ApiRequest) -> ApiResponse:
        parts = call.path.strip("/").split("/")
        at = parts.index("namespaces") + 2
        resource, name, action = (*parts[at:], "", "")[:3]
        if resource in ("services", "endpointslices"):
            return _json({"items": []})
        if resource in ("deployments", "replicasets"):
            return self._owner(call, resource, name, action)
        if name not in self._cluster.pods or self._cluster.pods[name].deleting:
            return status_response(404, "NotFound", f'pods "{name}" not found')
        return self._pod(call, name, action)

    def _pod(self, call: ApiRequest, name: str, action: str) -> ApiResponse:
        body = call.body or {}
        if action == "eviction":
            self._cluster.evict(name)
        elif action == "binding":
            target = body["target"]
            assert isinstance(target, dict)
            if not self._cluster.bind(name, str(target["name"])):
                return status_response(409, "Conflict", f"pod {name} is already assigned to a node")
        elif call.method == "PATCH" and action == "":
            metadata = body["metadata"]
            assert isinstance(metadata, dict)
            self._cluster.set_cost(name, int((metadata.get("annotations") or {}).get(DELETION_COST) or 0))
        elif action != "status":
            return status_response(405, "MethodNotAllowed", f"{call.method} {call.path} is not modelled")
        return status_response(201, "", "")

    def _owner(self, call: ApiRequest, resource: str, name: str, action: str) -> ApiResponse:
        app, revision = (name, 0) if resource == "deployments" else (name.rpartition("-")[0], 1)
        state = self._cluster.apps.get(app)
        if state is None:
            return status_response(404, "NotFound", f'{resource} "{name}" not found')
        if action == "scale" and call.body is not None:
            spec = call.body["spec"]
            assert isinstance(spec, dict)
            self._cluster.scale(app, int(spec["replicas"]))
            return status_response(200, "", "")
        return _json(
            {
                "metadata": {
                    "name": name,
                    "uid": name if revision else _deployment_uid(state),
                    "resourceVersion": str(state.generation),
                    "generation": state.generation,
                },
                "spec": {"replicas": state.replicas, "strategy": {"type": "RollingUpdate"}},
                "status": {
                    "observedGeneration": state.generation,
                    "replicas": len(self._cluster.active(state)),
                    "updatedReplicas": sum(pod.revision == state.revision for pod in self._cluster.active(state)),
                },
            }
        )

    def stream(self, path: str, query: Query, idle_timeout: float) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        del query, idle_timeout
        raise Unreachable(f"{path}: nothing is watched in simulated time")

    async def close(self) -> None:
        return None


def _json(value: object) -> ApiResponse:
    return ApiResponse(200, json.dumps(value).encode())
