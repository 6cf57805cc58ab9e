"""The simulated cluster as the reactor's watchers would see it: records, and answers to evictions and bindings."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager

from loadtests.simulation.cluster import SimulatedCluster, SimulationSpec
from loadtests.simulation.pod import FAILURE_THRESHOLD, SimulatedPod
from loadtests.workloads.placement import App, NodeSpec
from reactor.cluster.api import ApiRequest, ApiResponse, Query
from reactor.cluster.decoding.quantity import parse_quantity
from reactor.cluster.records import Container, Event, Node, Owner, Pod, Probe, Workload
from reactor.errors import Unreachable

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


def event_record(pod: SimulatedPod, namespace: str, reason: str, count: int, now: float) -> Event:
    messages = {
        "Unhealthy": "Liveness probe failed: context deadline exceeded",
        "Killing": f"Container {CONTAINER} failed liveness probe, will be restarted",
    }
    name = f"{pod.uid}.{reason}"
    kind = "Warning" if reason == "Unhealthy" else "Normal"
    return Event(
        uid=name,
        namespace=namespace,
        name=name,
        resource_version=str(count),
        reason=reason,
        type=kind,
        message=messages[reason],
        involved_name=pod.uid,
        involved_uid=pod.uid,
        field_path=f"spec.containers{{{CONTAINER}}}",
        count=count,
        first=now,
        last=now,
        component="kubelet",
    )


class SimulatedConnection:
    """The two writes that the executor asks for."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self._cluster = cluster

    async def send(self, call: ApiRequest) -> ApiResponse:
        *_, name, action = call.path.split("/")
        pod = self._cluster.pods.get(name)
        if pod is None or pod.deleting:
            return _status(404, "NotFound", f'pods "{name}" not found')
        if action == "eviction":
            self._cluster.evict(name)
        elif action == "binding" and call.body is not None:
            target = call.body["target"]
            assert isinstance(target, dict)
            self._cluster.bind(name, str(target["name"]))
        elif action == "status":
            return _status(200, "", "")
        else:
            return _status(405, "MethodNotAllowed", f"{call.method} {call.path} is not simulated")
        return _status(201, "", "")

    def stream(self, path: str, query: Query, idle_timeout: float) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        del query, idle_timeout
        raise Unreachable(f"{path}: nothing is watched in simulated time")

    async def close(self) -> None:
        return None


def _owner(app: App) -> Owner:
    return Owner("ReplicaSet", f"{app.name}-{_HASH}", f"rs-{app.name}")


def _status(code: int, reason: str, message: str) -> ApiResponse:
    success = "Success" if code < 300 else "Failure"
    body = {"kind": "Status", "apiVersion": "v1", "status": success, "reason": reason, "message": message, "code": code}
    return ApiResponse(code, json.dumps(body).encode())
