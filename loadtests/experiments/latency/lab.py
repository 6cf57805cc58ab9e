"""One lab: a real control plane, a lab kubelet per worker, and the delayed way to each."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from ipaddress import IPv4Network
from pathlib import Path
from random import Random
from typing import Any

import yaml

from loadtests.controlplane import (
    ControlPlane,
    ControlPlaneOptions,
    control_plane,
    forget_journal,
    prepare_journal,
    serve_metrics,
)
from loadtests.experiments.latency.design import DELAY, LOSS, Arm, Case, Trouble, worker_names
from loadtests.experiments.latency.endpoints import ServiceEndpoints
from loadtests.experiments.latency.network import node_address, pod_network
from loadtests.experiments.latency.relay import NodeRelay, Way
from loadtests.kubelet.addresses import AddressPool
from loadtests.kubelet.kubelet import KubeletOptions, LabKubelet
from loadtests.kubelet.pod_runner import together
from loadtests.metrics.rates import LabMetrics, UsageSampler
from loadtests.nodes.in_cluster import COLLECTIONS, RIGHTS, create, grant_rights
from loadtests.workloads.api import LabApi, has_condition
from loadtests.workloads.app_spec import AppSpec
from loadtests.workloads.placement import NodeSpec
from reactor.clock import SystemClock
from reactor.errors import NotFound

Json = dict[str, Any]
NAMESPACE = "edge"
TARGET, PROBE = "app", "latency-probe"
"""The Deployments."""
APP_SERVICE, ECHO_SERVICE = "app", "latency"
APP_PORT, ECHO_PORT = 8080, 9500
APP_NODE_PORT, ECHO_NODE_PORT = 30951, 30950
TARGET_HOOK_SECONDS, PROBE_HOOK_SECONDS = 5, 1
"""Of preStop, as in deploy/latency: a request that is on its way still finds the pod."""
METER_MANIFEST = Path(__file__).parents[3] / "deploy" / "latency" / "meter.yaml"
_ROLE = "rematch.io/latency"
_PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
_DEPLOYMENTS = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"
_SERVICES = f"/api/v1/namespaces/{NAMESPACE}/services"
_APP = AppSpec(work_ms=1, startup_ms=20, probe_work_ms=0.2, drain_ms=100, echo_port=ECHO_PORT)
_DEADLINE = 60.0
_POLL = 0.1
_CLOCK = SystemClock()


@dataclass(frozen=True, slots=True)
class EdgeLab:
    plane: ControlPlane
    api: LabApi
    number: int
    folder: Path

    @asynccontextmanager
    async def opened(self, case: Case, pace: float) -> AsyncIterator[Edge]:
        """The workers of the seed with the pods of the case, Ready at the start's places; gone afterwards."""
        names = worker_names(case.seed)
        async with AsyncExitStack() as stack:
            kubelets = await self._workers(names, stack)
            sampler = UsageSampler(kubelets, _CLOCK)
            endpoints = ServiceEndpoints(self.api, NAMESPACE)
            await stack.enter_async_context(together(sampler.run(), endpoints.run()))
            await stack.enter_async_context(serve_metrics(self.plane, LabMetrics(sampler)))
            await forget_journal(self.api)
            ways = await self._ways(case, names, endpoints, pace, stack)
            stack.push_async_callback(self._clear)
            edge = Edge(self, case, names, ways, endpoints)
            await edge.deploy()
            yield edge

    async def _workers(self, names: Mapping[int, str], stack: AsyncExitStack) -> list[LabKubelet]:
        pool = AddressPool(_CLOCK, network=IPv4Network(pod_network(self.number)))
        kubelets = []
        stack.push_async_callback(self._remove_nodes, list(names.values()))
        for rank, name in names.items():
            spec = NodeSpec(name, 2, 4 * 2**30, address=node_address(self.number, rank))
            kubelet = LabKubelet(spec, self.api, pool, _CLOCK, KubeletOptions(seed=rank))
            kubelets.append(kubelet)
            await kubelet.start()
            stack.push_async_callback(kubelet.stop)
        async with asyncio.timeout(_DEADLINE):
            while any(node["spec"].get("taints") for node in (await self.api.get("/api/v1/nodes"))["items"]):
                await asyncio.sleep(_POLL)
        return kubelets

    async def _remove_nodes(self, names: list[str]) -> None:
        for name in names:
            with suppress(NotFound):
                await self.api.delete(f"/api/v1/nodes/{name}", {})

    async def _ways(
        self, case: Case, names: Mapping[int, str], endpoints: ServiceEndpoints, pace: float, stack: AsyncExitStack
    ) -> dict[int, Way]:
        loss = LOSS if case.trouble is Trouble.LOSS else 0.0
        ways = {rank: Way(DELAY * rank * pace, loss, Random(f"way {case.seed} {rank}")) for rank in names}
        for rank, name in names.items():
            of_echo, of_app = (partial(endpoints.on_node, each, name) for each in (ECHO_SERVICE, APP_SERVICE))
            relay = NodeRelay(node_address(self.number, rank), ways[rank], of_echo, of_app)
            await relay.start(ECHO_NODE_PORT, APP_NODE_PORT)
            stack.push_async_callback(relay.stop)
        return ways

    async def _clear(self) -> None:
        """While the kubelets still run: they let the pods go."""
        for collection, name in ((_SERVICES, APP_SERVICE), (_SERVICES, ECHO_SERVICE)):
            with suppress(NotFound):
                await self.api.delete(f"{collection}/{name}", {})
        await self.api.delete(_DEPLOYMENTS, {"propagationPolicy": "Background"})
        async with asyncio.timeout(_DEADLINE):
            while pods := (await self.api.get(_PODS))["items"]:
                for pod in pods:
                    with suppress(NotFound):
                        await self.api.delete(f"{_PODS}/{pod['metadata']['name']}", {"gracePeriodSeconds": 0})
                await asyncio.sleep(_POLL)


@dataclass(frozen=True, slots=True)
class Edge:
    """The pods of one run."""

    lab: EdgeLab
    case: Case
    names: Mapping[int, str]
    ways: Mapping[int, Way]
    endpoints: ServiceEndpoints

    @property
    def ranks(self) -> dict[str, int]:
        return {name: rank for rank, name in self.names.items()}

    async def deploy(self) -> None:
        api, free = self.lab.api, self.case.arm is Arm.SCHEDULER
        scheduler = "default-scheduler" if free else "rematch"
        await api.create(_SERVICES, service(APP_SERVICE, {"app": TARGET}, "TCP", APP_PORT, APP_NODE_PORT))
        await api.create(_SERVICES, service(ECHO_SERVICE, {"edge": "echo"}, "UDP", ECHO_PORT, ECHO_NODE_PORT))
        targets = self.case.targets
        await api.create(_DEPLOYMENTS, deployment(TARGET, "target", targets, scheduler, TARGET_HOOK_SECONDS))
        await api.create(_DEPLOYMENTS, deployment(PROBE, "probe", 1, scheduler, PROBE_HOOK_SECONDS))
        if not free:
            await self._bind(TARGET, self.case.start)
            await self._bind(PROBE, (self.case.probe,))
        async with asyncio.timeout(_DEADLINE):
            while len(self.endpoints.ready(ECHO_SERVICE)) < self.case.targets + 1:
                await asyncio.sleep(_POLL)

    async def _bind(self, app: str, ranks: tuple[int, ...]) -> None:
        """To the places where the test starts."""
        async with asyncio.timeout(_DEADLINE):
            while len(pods := await self.pods(app)) < len(ranks):
                await asyncio.sleep(_POLL)
        for pod, rank in zip(pods, ranks, strict=True):
            name = pod["metadata"]["name"]
            binding = {"metadata": {"name": name}, "target": {"kind": "Node", "name": self.names[rank]}}
            await self.lab.api.create(f"{_PODS}/{name}/binding", binding)

    async def pods(self, app: str) -> list[Json]:
        found = await self.lab.api.get(_PODS)
        return [pod for pod in found["items"] if pod["metadata"]["labels"].get("app") == app]

    async def placed(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Ranks of the workers with Ready targets and probes that are not on their way out."""
        found: dict[str, list[int]] = {TARGET: [], PROBE: []}
        for pod in (await self.lab.api.get(_PODS))["items"]:
            app = pod["metadata"]["labels"].get("app")
            if app in found and has_condition(pod, "Ready") and "deletionTimestamp" not in pod["metadata"]:
                found[app].append(self.ranks[pod["spec"]["nodeName"]])
        return tuple(sorted(found[TARGET])), tuple(sorted(found[PROBE]))


@asynccontextmanager
async def edge_lab(number: int, folder: Path) -> AsyncIterator[EdgeLab]:
    async with control_plane(ControlPlaneOptions(folder)) as plane:
        api = plane.client(_CLOCK)
        try:
            await prepare_journal(api)
            await grant_rights(api)
            await create(api, [{"kind": "Namespace", "metadata": {"name": NAMESPACE}}, *meter_rights()])
            yield EdgeLab(plane, api, number, folder)
        finally:
            await api.close()


def meter_rights() -> list[Json]:
    documents = list(yaml.safe_load_all(METER_MANIFEST.read_text()))
    return [each for each in documents if each["kind"] in RIGHTS & COLLECTIONS.keys() - {"Namespace"}]


def service(name: str, selector: Mapping[str, str], protocol: str, port: int, node_port: int) -> Json:
    ports = [{"protocol": protocol, "port": port, "targetPort": port, "nodePort": node_port}]
    spec = {"type": "NodePort", "externalTrafficPolicy": "Local", "selector": dict(selector), "ports": ports}
    return {"metadata": {"name": name}, "spec": spec}


def deployment(name: str, role: str, replicas: int, scheduler: str, hook_seconds: int) -> Json:
    def probe(path: str) -> Json:
        return {"httpGet": {"path": path, "port": APP_PORT}, "periodSeconds": 1, "timeoutSeconds": 5}

    labels = {"app": name, "edge": "echo", _ROLE: role}
    container = {
        "name": "app",
        "image": "lab.local/app:1",
        "ports": [{"containerPort": APP_PORT}],
        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
        "lifecycle": {"preStop": {"sleep": {"seconds": hook_seconds}}},
        "livenessProbe": {**probe("/healthz"), "failureThreshold": 10, "initialDelaySeconds": 1},
        "readinessProbe": {**probe("/readyz"), "failureThreshold": 10},
    }
    spec = {"schedulerName": scheduler, "terminationGracePeriodSeconds": 10, "containers": [container]}
    template = {"metadata": {"labels": labels, "annotations": _APP.annotations()}, "spec": spec}
    return {
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template},
    }
