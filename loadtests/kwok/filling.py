"""Puts a fleet onto a control plane: nodes Ready, pods Running where the fleet says."""

from __future__ import annotations

import asyncio
from functools import partial

from loadtests.controlplane import Component, ControlPlane
from loadtests.kwok.fleet import NAMESPACE, Fleet
from loadtests.kwok.observing import PodObserver
from loadtests.tools.saying import Say
from loadtests.workloads.api import Json, LabApi
from loadtests.workloads.conditions import has_condition
from reactor.clock import SystemClock
from reactor.execution.some_at_once import some_at_once

_AT_ONCE = 32
_CALL_DEADLINE = 120.0
_NODES_DEADLINE = 180.0
_SLOWEST_RATE = 20.0
"""Pods per second below which something is wrong."""
_POLL_SECONDS = 0.5
_NODES = "/api/v1/nodes"
_PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
_REPLICA_SETS = f"/apis/apps/v1/namespaces/{NAMESPACE}/replicasets"


async def fill(plane: ControlPlane, fleet: Fleet, observer: PodObserver, say: Say) -> None:
    """While the pods are made the controller manager is away: else it would make pods of its own, too."""
    api = LabApi(plane.url, SystemClock(), _CALL_DEADLINE, token=plane.admin_token, ca=plane.ca)
    try:
        await some_at_once([partial(api.create, _NODES, fleet.node(name)) for name in fleet.node_names], _AT_ONCE)
        await _nodes_open(api)
        say(f"{fleet.nodes} nodes are Ready")
        plane.processes[Component.CONTROLLER_MANAGER].stop()
        await some_at_once([partial(_create_app, api, fleet, app) for app in range(fleet.apps)], _AT_ONCE)
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


async def _nodes_open(api: LabApi) -> None:
    """Every node is Ready and has lost the taint that admission gives to new ones."""
    async with asyncio.timeout(_NODES_DEADLINE):
        while not all(_is_open(node) for node in (await api.get(_NODES))["items"]):
            await asyncio.sleep(_POLL_SECONDS)


def _is_open(node: Json) -> bool:
    return has_condition(node, "Ready") and not node["spec"].get("taints")
