"""Everything that one run needs: control plane with audit log, nodes, workloads, metrics and controllers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from loadtests.chaos.audit import AuditLog, audit_flags, log_path
from loadtests.chaos.controllers import CONTROLLER_NAMES, ControllerProcess
from loadtests.chaos.observer import DriftingUsage, PodObserver
from loadtests.chaos.patience import insist
from loadtests.chaos.proxy import ArmedFaults, FaultProxy
from loadtests.chaos.requests import HOME, Step
from loadtests.chaos.scripted_nodes import ScriptedNodes
from loadtests.chaos.workloads import NAMESPACE, WORKLOADS, Workload
from loadtests.chaos.write_kinds import WriteKind, workloads_with, write_kind
from loadtests.controlplane import (
    Component,
    ControlPlane,
    ControlPlaneOptions,
    control_plane,
    install_crds,
    serve_metrics,
)
from loadtests.nodes.in_cluster import COLLECTIONS, create, manifests
from loadtests.workloads.api import LabApi, has_condition
from reactor.clock import Clock, SystemClock
from reactor.errors import Conflict

Json = dict[str, Any]
NODES: Mapping[str, float] = {f"node-{number}": 8.0 for number in range(1, 6)}
_NO_LIMIT = {"per10Minutes": 10**6, "perDay": 10**6}
SETTINGS: Json = {
    "mode": "act",
    "managed": {"namespaces": [NAMESPACE], "anySchedulerNamespaces": [NAMESPACE]},
    "triggers": {"evaluationInterval": "1s", "rematchInterval": "1s"},
    "decision": {"cooldown": "0s", "settle": "0s"},
    "planner": {"name": "balance", "inertia": 0, "maxMoves": 12, "maxMovesPerWorkload": 1},
    "execution": {
        "maxMovesInFlight": 12,
        "maxMovesInFlightPerNamespace": 12,
        "limits": dict.fromkeys(("cluster", "namespace", "workload"), _NO_LIMIT),
        "brake": {"duration": "1s", "movesWithoutEffect": 10**6, "failedWrites": 10**6, "notReadyNodes": 1},
        "maxPlanAge": "20s",
        "readyDeadline": "15s",
        "reservation": "10s",
        "drainDelay": "1s",
        "evictSingleReplicas": True,
    },
    "history": {"maxBytes": 16 * 2**20},
    "metrics": {"freshness": "20s", "peakWindow": "3s", "metricsApi": {"interval": "1s", "timeout": "5s"}},
}
"""Moves all the time: nothing is left to cool down, and what pods use drifts."""
_STABLE = {"triggers": {"evaluationInterval": "1s", "rematchInterval": "0s"}}
_GRACE = {Component.CONTROLLER_MANAGER: ("--node-monitor-grace-period=2h",)}
"""Scripted nodes send no heartbeats; they are down when a fault says so."""
_NOT_NEEDED = frozenset({"Deployment", "StatefulSet", "Service", "PersistentVolumeClaim"})
"""Of the manifests: the controllers run beside the cluster."""
_CONFIG = f"/api/v1/namespaces/{HOME}/configmaps/rematch"
_START_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class Wish:
    """From this time on the user wants so many replicas."""

    at: float
    workload: str
    replicas: int


@dataclass(slots=True)
class World:
    clock: Clock
    plane: ControlPlane
    api: LabApi
    """The admin's."""
    observer: PodObserver
    nodes: ScriptedNodes
    usage: DriftingUsage
    audit: AuditLog
    armed: ArmedFaults
    controllers: tuple[ControllerProcess, ...]
    wanted: dict[str, int] = field(default_factory=dict)
    """Replicas by workload: what its user last asked for."""
    wishes: list[Wish] = field(default_factory=list)
    """Every change of `wanted`."""
    _settings: Json = field(default_factory=dict)

    async def moving(self, yes: bool) -> None:
        """Whether there is a reason to move pods; the controllers go on to act in any case."""
        self.usage.calm = not yes
        self._settings = SETTINGS if yes else {**SETTINGS, **_STABLE}
        await self.write_settings()

    async def write_settings(self, text: str = "") -> None:
        """Those in force, or another text in their place."""
        text = text or settings_text(self._settings)
        await insist(lambda: self.api.patch(_CONFIG, {"data": {"settings.yaml": text}}))

    async def deploy(self, workload: Workload) -> None:
        """One of its name may be there already, by a request of ours whose answer was lost."""
        with suppress(Conflict):
            await insist(lambda: self.api.create(workload.collection, workload.manifest(workload.replicas)))
        self.want(workload, workload.replicas)

    def want(self, workload: Workload, replicas: int) -> None:
        self.wanted[workload.name] = replicas
        self.wishes.append(Wish(self.clock.now(), workload.name, replicas))

    def write_kind(self, step: Step, path: str, body: bytes) -> WriteKind | None:
        orphans = {pod["metadata"]["name"] for pod in self.observer.pods.values() if not is_owned(pod)}
        return write_kind(step, path, body, self.wanted, orphans)

    def complete(self, workload: Workload) -> bool:
        """As many Ready pods as wanted, and no others."""
        pods = self.observer.of(workload.name)
        staying = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"] and has_condition(pod, "Ready")]
        return len(pods) == len(staying) == self.wanted[workload.name]


@asynccontextmanager
async def open_world(folder: Path, replicas: int, clock: Clock | None = None) -> AsyncIterator[World]:
    """Ready to move: all workloads are complete and every controller has started."""
    clock = clock or SystemClock()
    options = ControlPlaneOptions(folder / "plane", flags={**_GRACE, **audit_flags(folder)}, client_qps=500)
    async with AsyncExitStack() as stack:
        plane = await stack.enter_async_context(control_plane(options))
        api = plane.client(clock)
        stack.push_async_callback(api.close)
        await create(api, [_settled(item) for item in manifests() if item["kind"] not in _NOT_NEEDED])
        await install_crds(api)
        await api.create(COLLECTIONS["Namespace"], {"metadata": {"name": NAMESPACE}})
        observer = PodObserver(api, clock, NAMESPACE)
        nodes = ScriptedNodes(api, observer, clock, NODES)
        armed = ArmedFaults(clock)
        usage = DriftingUsage(observer, NODES, clock, hungry=partial(_hungry, armed))
        controllers, proxies = [], []
        for name in CONTROLLER_NAMES[:replicas]:
            proxy = FaultProxy(clock, plane.url, plane.ca, armed)
            await stack.enter_async_context(proxy.serving())
            controllers.append(ControllerProcess(name, plane, proxy, folder, clock))
            proxies.append(proxy)
        log = AuditLog(log_path(folder))
        world = World(clock, plane, api, observer, nodes, usage, log, armed, tuple(controllers))
        for proxy in proxies:
            proxy.write_kind = world.write_kind
        await stack.enter_async_context(_background(observer.run(), nodes.run()))
        await stack.enter_async_context(serve_metrics(plane, usage))
        await nodes.register()
        await world.moving(False)
        for controller in controllers:
            await stack.enter_async_context(controller.running())
        for workload in WORKLOADS:
            for collection, item in workload.companions:
                await api.create(collection, item)
            await world.deploy(workload)
        async with asyncio.timeout(_START_SECONDS):
            while not all(world.complete(workload) for workload in WORKLOADS):
                await clock.sleep(0.2)
        yield world


def _hungry(armed: ArmedFaults) -> frozenset[str]:
    """Workloads that have the writes that kills wait for: what uses most is moved most."""
    return frozenset(name for kind in armed.awaited for name in workloads_with(kind))


def is_owned(pod: Json) -> bool:
    return any(each.get("controller") for each in pod["metadata"].get("ownerReferences", ()))


def settings_text(settings: Json) -> str:
    """JSON is YAML without the anchors that a YAML writer makes of equal parts, and that settings refuse."""
    return json.dumps(settings)


def _settled(item: Json) -> Json:
    return {**item, "data": {"settings.yaml": settings_text(SETTINGS)}} if item["kind"] == "ConfigMap" else item


@asynccontextmanager
async def _background(*works: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """If one of them fails the block is cancelled, and the failure raised at its end."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(work) for work in works]
        yield
        for task in tasks:
            task.cancel()
