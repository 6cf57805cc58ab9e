"""A small shop on a real control plane, with lab kubelets as nodes."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime
from typing import Any

from loadtests.controlplane import ControlPlane
from loadtests.embedded import NodeMetrics, PodMetrics
from loadtests.kubelet.addresses import AddressPool, port_for_pods
from loadtests.kubelet.kubelet import KubeletOptions, LabKubelet
from loadtests.workloads.api import Changed, LabApi, Listed, has_condition
from loadtests.workloads.app_spec import AppSpec
from loadtests.workloads.placement import NodeSpec
from reactor.clock import SystemClock
from tests.support.clock import eventually
from tests.support.dump import stamp

Json = dict[str, Any]
CORES = {"web": 0.9, "db": 2.9}
_GIB = 2**30
_APP = AppSpec(work_ms=20, startup_ms=1, drain_ms=20)
_CLOCK = SystemClock()
_GONE_SECONDS = 30.0


class RealShop:
    """Implements the lab's `MetricsProvider`: what each app is known to use, on the node where it runs."""

    def __init__(self, plane: ControlPlane, api: LabApi) -> None:
        self.plane = plane
        self.api = api
        self.namespace = f"shop-{uuid.uuid4().hex[:6]}"
        self.port = port_for_pods()
        self.kubelets: list[LabKubelet] = []
        self.nodes: list[str] = []
        self._pods: dict[str, Json] = {}

    def pods(self, app: str) -> list[Json]:
        return [pod for pod in self._pods.values() if pod["metadata"]["labels"].get("app") == app]

    def where(self, app: str) -> list[str]:
        return [pod["spec"].get("nodeName", "") for pod in self.pods(app)]

    def ready(self, app: str) -> bool:
        """All pods of the app, at least one, and none is on its way out."""
        pods = self.pods(app)
        return bool(pods) and all(
            has_condition(pod, "Ready") and "deletionTimestamp" not in pod["metadata"] for pod in pods
        )

    async def said(self) -> list[tuple[str, str]]:
        """Our own Events: reason and message."""
        events = (await self.api.get(f"/api/v1/namespaces/{self.namespace}/events"))["items"]
        return [
            (event["reason"], event["message"]) for event in events if event["source"].get("component") == "rematch"
        ]

    async def hears(self, reason: str, words: str = "") -> None:
        """Until we have told of this reason, with these words in the message."""
        async with asyncio.timeout(20):
            while not any(told == reason and words in message for told, message in await self.said()):
                await asyncio.sleep(0.05)

    async def deploy(self, app: str, scheduler: str = "rematch", replicas: int = 1) -> None:
        path = f"/apis/apps/v1/namespaces/{self.namespace}/deployments"
        await self.api.create(path, _deployment(app, scheduler, replicas, self.port))
        await eventually(lambda: len(self.pods(app)) == replicas, 20)

    async def open(self, app: str, node: str) -> None:
        """An app on a node of our choice."""
        await self.deploy(app)
        name = self.pods(app)[0]["metadata"]["name"]
        binding = {"metadata": {"name": name}, "target": {"kind": "Node", "name": node}}
        await self.api.create(f"/api/v1/namespaces/{self.namespace}/pods/{name}/binding", binding)
        await eventually(lambda: self.ready(app), 20)

    async def fail(self, app: str, count: int = 20) -> None:
        """As the kubelet tells of failed liveness probes, once the pod is so old that a few can have failed."""
        meta = self.pods(app)[0]["metadata"]
        created = datetime.fromisoformat(meta["creationTimestamp"]).timestamp()
        await eventually(lambda: _CLOCK.now() - created > 4, 20)
        now = stamp(_CLOCK.now())
        involved = {"kind": "Pod", "namespace": self.namespace, "name": meta["name"], "uid": meta["uid"]}
        event = {
            "metadata": {"name": f"{meta['name']}.{uuid.uuid4().hex[:8]}", "namespace": self.namespace},
            "involvedObject": involved | {"fieldPath": "spec.containers{web}"},
            "reason": "Unhealthy",
            "type": "Warning",
            "message": "Liveness probe failed: HTTP probe failed with statuscode: 500",
            "count": count,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "source": {"component": "kubelet"},
        }
        await self.api.create(f"/api/v1/namespaces/{self.namespace}/events", event)

    def node_usage(self) -> Iterable[NodeMetrics]:
        for node in self.nodes:
            cores = sum(CORES.get(app, 0.1) for app, place in self._placed() if place == node)
            yield NodeMetrics(node, cores + 0.1, _GIB, _CLOCK.now())

    def pod_usage(self) -> Iterable[PodMetrics]:
        for pod in self._pods.values():
            app = pod["metadata"]["labels"].get("app", "")
            if pod["spec"].get("nodeName"):
                container = (("web", CORES.get(app, 0.1), 0.2 * _GIB),)
                yield PodMetrics(self.namespace, pod["metadata"]["name"], container, _CLOCK.now())

    async def follow(self) -> None:
        await self.api.follow(f"/api/v1/namespaces/{self.namespace}/pods", {}, self._heard)

    def _placed(self) -> Iterable[tuple[str, str]]:
        for pod in self._pods.values():
            yield pod["metadata"]["labels"].get("app", ""), pod["spec"].get("nodeName", "")

    def _heard(self, change: Listed | Changed) -> None:
        match change:
            case Listed(items):
                self._pods = {item["metadata"]["uid"]: item for item in items}
            case Changed("DELETED", item):
                self._pods.pop(item["metadata"]["uid"], None)
            case Changed(_, item):
                self._pods[item["metadata"]["uid"]] = item


@asynccontextmanager
async def open_real_shop(plane: ControlPlane, *nodes: NodeSpec) -> AsyncIterator[RealShop]:
    """An empty shop; nodes default to two of 4 cores. Whatever happens its nodes and pods are gone afterwards."""
    specs = nodes or tuple(NodeSpec(name, 4, 8 * _GIB) for name in ("n1", "n2"))
    async with AsyncExitStack() as stack:
        api = plane.client(_CLOCK)
        stack.push_async_callback(api.close)
        shop = RealShop(plane, api)
        await api.create("/api/v1/namespaces", {"metadata": {"name": shop.namespace}})
        stack.push_async_callback(_clear, shop)
        await _start_nodes(shop, specs, stack)
        following = asyncio.create_task(shop.follow())
        stack.push_async_callback(_end, following)
        yield shop


async def _start_nodes(shop: RealShop, specs: Iterable[NodeSpec], stack: AsyncExitStack) -> None:
    addresses, options = AddressPool(_CLOCK), KubeletOptions(sandbox_seconds=0.01, backoff_scale=0.01)
    for spec in specs:
        kubelet = LabKubelet(spec, shop.api, addresses, _CLOCK, options)
        shop.nodes.append(spec.name)
        shop.kubelets.append(kubelet)
        await kubelet.start()
        stack.push_async_callback(kubelet.stop)
    async with asyncio.timeout(20):
        while any(node["spec"].get("taints") for node in (await shop.api.get("/api/v1/nodes"))["items"]):
            await asyncio.sleep(0.05)


async def _clear(shop: RealShop) -> None:
    """A pod that stayed would be bound by the controller of the next test."""
    deployments = f"/apis/apps/v1/namespaces/{shop.namespace}/deployments"
    pods = f"/api/v1/namespaces/{shop.namespace}/pods"
    await shop.api.delete(deployments, {"propagationPolicy": "Foreground"})
    async with asyncio.timeout(_GONE_SECONDS):
        while (await shop.api.get(deployments))["items"] or (await shop.api.get(pods))["items"]:
            # No kubelet is left to let them go, and until its ReplicaSet is deleted others follow.
            await shop.api.delete(pods, {"gracePeriodSeconds": 0})
            await asyncio.sleep(0.05)
    for node in shop.nodes:
        await shop.api.delete(f"/api/v1/nodes/{node}", {})
    await shop.api.delete(f"/api/v1/namespaces/{shop.namespace}", {})


async def _end(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def _deployment(app: str, scheduler: str, replicas: int, port: int) -> Json:
    def probe(path: str) -> Json:
        return {"httpGet": {"path": path, "port": port}, "periodSeconds": 1, "timeoutSeconds": 1}

    container = {
        "name": "web",
        "image": "lab.local/web:1",
        "ports": [{"containerPort": port}],
        "resources": {"requests": {"cpu": "500m", "memory": "256Mi"}},
        "livenessProbe": {**probe("/healthz"), "failureThreshold": 10, "initialDelaySeconds": 1},
        "readinessProbe": {**probe("/readyz"), "failureThreshold": 10},
    }
    spec = {"schedulerName": scheduler, "terminationGracePeriodSeconds": 1, "containers": [container]}
    template = {"metadata": {"labels": {"app": app}, "annotations": _APP.annotations()}, "spec": spec}
    return {
        "metadata": {"name": app},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": app}}, "template": template},
    }
