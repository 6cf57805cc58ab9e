"""Where the real kube-scheduler puts the pods: a real control plane with fake nodes, since only placements count."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from loadtests.controlplane import ControlPlaneOptions, control_plane
from loadtests.experiments.genetic.design import NODES, Placement, TestPod
from loadtests.kwok import PLANE_FLAGS, fake_node, kwok, nodes_open
from loadtests.workloads.api import LabApi

_PODS = "/api/v1/namespaces/default/pods"
_DEADLINE = 120.0
_POLL = 0.2


Place = Callable[[list[TestPod]], Awaitable[Placement]]


@asynccontextmanager
async def kube_scheduler(folder: Path) -> AsyncIterator[Place]:
    """What it yields creates a workload in order on empty nodes, and removes it again."""
    async with control_plane(ControlPlaneOptions(folder, flags=PLANE_FLAGS)) as plane, kwok(plane):
        api = plane.client()
        try:
            for node in NODES:
                resources = {"cpu": str(node.cores), "memory": f"{node.gigabytes}G", "pods": "110"}
                await api.create("/api/v1/nodes", fake_node(node.name, resources))
            await nodes_open(api)
            yield lambda pods: _placed(api, pods)
        finally:
            await api.close()


async def _placed(api: LabApi, pods: list[TestPod]) -> Placement:
    for pod in pods:
        await api.create(_PODS, _manifest(pod))
    async with asyncio.timeout(_DEADLINE):
        while not all(item["spec"].get("nodeName") for item in (await api.get(_PODS))["items"]):
            await asyncio.sleep(_POLL)
    items = (await api.get(_PODS))["items"]
    for pod in pods:
        await api.delete(f"{_PODS}/{pod.name}", {"gracePeriodSeconds": 0})
    async with asyncio.timeout(_DEADLINE):
        while (await api.get(_PODS))["items"]:
            await asyncio.sleep(_POLL)
    return {item["metadata"]["name"]: item["spec"]["nodeName"] for item in items}


def _manifest(pod: TestPod) -> dict[str, Any]:
    requests = {"cpu": f"{round(1000 * pod.request[0])}m", "memory": f"{round(1000 * pod.request[1])}M"}
    container = {"name": "web", "image": "none", "resources": {"requests": requests}}
    spec = {"terminationGracePeriodSeconds": 0, "automountServiceAccountToken": False, "containers": [container]}
    return {"metadata": {"name": pod.name}, "spec": spec}
