"""Puts a fleet onto a control plane: nodes Ready, pods Running where the fleet says."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from loadtests.controlplane import Component, ControlPlane
from loadtests.kwok.fleet import NAMESPACE, Fleet
from loadtests.kwok.observing import PodObserver
from loadtests.workloads.api import Json, LabApi
from reactor.clock import SystemClock

_AT_ONCE = 32
_CALL_DEADLINE = 120.0
_NODES_DEADLINE = 180.0
_SLOWEST_RATE = 20.0
"""Pods per second below which something is wrong."""
_POLL_SECONDS = 0.5
_NODES = "/api/v1/nodes"
_PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
_REPLICA_SETS = f"/apis/apps/v1/namespaces/{NAMESPACE}/replicasets"

Say = Callable[[str], None]


async def fill(plane: ControlPlane, fleet: Fleet, observer: PodObserver, say: Say) -> None:
    """While the pods are made the controller manager is away: else it would make pods of its own, too."""
    api = LabApi(plane.url, SystemClock(), _CALL_DEADLINE, token=plane.admin_token, ca=plane.ca)
    try:
        await _at_once(api.create(_NODES, fleet.node(name)) for name in fleet.node_names)
        await _nodes_open(api)
        say(f"{fleet.nodes} nodes are Ready")
        plane.processes[Component.CONTROLLER_MANAGER].stop()
        await _at_once(_create_app(api, fleet, app) for app in range(fleet.apps))
        say(f"{fleet.pods} pods are created")
        await observer.until(lambda: observer.running == fleet.pods, _NODES_DEADLINE + fleet.pods / _SLOWEST_RATE)
        await plane.restart(Component.CONTROLLER_MANAGER)
        say(f"{fleet.pods} pods are Running")
    finally:
        await api.close()


async def _create_app(api: LabApi, fleet: Fleet, app: int) -> None:
    owner = await api.create(_REPLICA_SETS, fleet.replica_set(app))
    for replica in range(fleet.replicas):
        await api.create(_PODS, fleet.pod(app, replica, owner["metadata"]["uid"]))


async def _at_once(calls: Iterable[Awaitable[object]]) -> None:
    """Some at a time, in order; the first failure ends it."""
    waiting = iter(calls)

    async def work() -> None:
        for call in waiting:
            await call

    async with asyncio.TaskGroup() as tasks:
        for _ in range(_AT_ONCE):
            tasks.create_task(work())


async def _nodes_open(api: LabApi) -> None:
    """Every node is Ready and has lost the taint that admission gives to new ones."""
    async with asyncio.timeout(_NODES_DEADLINE):
        while not all(_is_open(node) for node in (await api.get(_NODES))["items"]):
            await asyncio.sleep(_POLL_SECONDS)


def _is_open(node: Json) -> bool:
    conditions = node["status"].get("conditions") or ()
    ready = any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
    return ready and not node["spec"].get("taints")
