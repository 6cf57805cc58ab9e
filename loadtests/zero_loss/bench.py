"""What all ways of moving have in common: the lab, the client's network, the apps and their Services."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from loadtests.demo.controller import ControllerSpec, running_controller
from loadtests.kubelet.pod_runner import together
from loadtests.nodes.apps import PORT, deployment
from loadtests.nodes.client_network import client_network
from loadtests.nodes.in_cluster import create, grant_rights, install_policies
from loadtests.nodes.lab import Lab
from loadtests.tools import ensure
from loadtests.tools.ports import free_ports
from loadtests.workloads.k6 import K6
from loadtests.workloads.load_tools import Load, LoadResult, LoadTool
from loadtests.workloads.samples import RequestOutcome
from loadtests.workloads.vegeta import Vegeta
from loadtests.zero_loss.descheduler_mover import DeschedulerMover
from loadtests.zero_loss.design import APPS, MovedApp, Way
from loadtests.zero_loss.eviction_mover import EvictionMover
from loadtests.zero_loss.moving import Mover
from loadtests.zero_loss.pods import AppPods
from loadtests.zero_loss.request_mover import RequestMover
from loadtests.zero_loss.results import Lane
from loadtests.zero_loss.routes import EmptyServices
from reactor.clock import Clock, SystemClock
from reactor.errors import RematchError

NAMESPACE = "zero-loss"
PROXY_DELAY = "1s"
"""Between two updates of kube-proxy's rules: its default, in the lab as in clusters."""
_TIMEOUT = 2.0
_SCOPES = ("cluster", "namespace", "workload")
_TRIALS = 20
_DEPLOYMENTS = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Bench:
    lab: Lab
    nodes: Sequence[str]
    apps: Sequence[MovedApp]
    pods: AppPods
    tools: dict[str, LoadTool]
    urls: dict[str, str]
    empty: EmptyServices
    folder: Path
    """For settings, stores and logs of the controllers."""
    clock: Clock

    @classmethod
    @asynccontextmanager
    async def open(cls, lab: Lab, nodes: Sequence[str], apps: Sequence[MovedApp], folder: Path) -> AsyncIterator[Bench]:
        found = await ensure(["vegeta", "k6", "kube-proxy"])
        clock = SystemClock()
        async with AsyncExitStack() as stack:
            client = await stack.enter_async_context(client_network(lab, found["kube-proxy"], PROXY_DELAY))
            tools: dict[str, LoadTool] = {
                "vegeta": Vegeta(found["vegeta"], client.prefix),
                "k6": K6(found["k6"], client.prefix),
            }
            await grant_rights(lab.api)
            await install_policies(lab.api)
            await create(lab.api, [{"kind": "Namespace", "metadata": {"name": NAMESPACE}}])
            urls = {moved.app.name: await _serve(lab, moved) for moved in apps}
            empty = EmptyServices(lab.api, NAMESPACE, clock)
            await stack.enter_async_context(together(empty.run()))
            pods = AppPods(lab.api, NAMESPACE, apps)
            yield cls(lab, nodes, apps, pods, tools, urls, empty, folder, clock)

    async def attack(self, lane: Lane, rate: float, seconds: float) -> LoadResult:
        load = Load(self.urls, rate, seconds, _TIMEOUT, self.lab.addresses.everything, lane.keep_alive)
        return await self.tools[lane.tool].attack(load)

    async def mover(self, way: Way) -> Mover:
        if way.by_rematch:
            return RequestMover(self.pods, self.nodes, self.clock)
        if way is Way.PLAIN:
            return EvictionMover(self.pods, self.clock)
        program = (await ensure(["descheduler"]))["descheduler"]
        return DeschedulerMover(self.pods, program, self.lab.plane.kubeconfig, self.folder, self.clock)

    @asynccontextmanager
    async def deployed(self) -> AsyncIterator[None]:
        """Pods of kube-scheduler, with manifests that know nothing of Rematch."""
        for moved in self.apps:
            await self.lab.api.create(_DEPLOYMENTS, deployment(moved.app, NAMESPACE, "default-scheduler"))
        try:
            await self.pods.until_complete()
            await self._until_routed()
            yield
        finally:
            await self.lab.api.delete(_DEPLOYMENTS, {"propagationPolicy": "Background"})
            async with asyncio.timeout(90):
                while any((await self.pods.by_app()).values()):
                    await asyncio.sleep(0.2)

    @asynccontextmanager
    async def controller(self, way: Way) -> AsyncIterator[None]:
        if not way.by_rematch:
            yield
            return
        token = await self.lab.plane.token("rematch", "rematch")
        name = way.name.lower()
        kubeconfig = self.lab.plane.write_kubeconfig(self.folder / f"{name}.kubeconfig", token=token)
        settings = self.folder / f"{name}.yaml"
        settings.write_text(yaml.safe_dump(settings_of(way)))
        (port,) = free_ports("127.0.0.1", 1)
        files = (self.folder / f"{name}.db", self.folder / f"{name}.log")
        async with running_controller(ControllerSpec(kubeconfig, settings, *files, port)):
            yield

    async def _until_routed(self) -> None:
        for _ in range(_TRIALS):
            result = await self.attack(Lane("vegeta", False), 2.0, 1.0)
            if all(sample.outcome is RequestOutcome.OK for sample in result.samples):
                return
        raise RematchError(f"the apps were not reachable through their Services in {_TRIALS} trials")


def settings_of(way: Way) -> Json:
    """It moves only what it is asked to, all apps at once."""
    return {
        "apiVersion": "rematch/v1alpha1",
        "mode": "act",
        "managed": {"namespaces": [NAMESPACE], "anySchedulerNamespaces": [NAMESPACE]},
        "decision": {"cooldown": "0s", "settle": "0s"},
        "metrics": {"metricsApi": {"interval": "2s"}},
        "execution": {
            "strategies": way.strategies,
            "evictSingleReplicas": True,
            "maxMovesInFlight": len(APPS),
            "maxMovesInFlightPerNamespace": len(APPS),
            "limits": {scope: {"per10Minutes": 10_000, "perDay": 10_000} for scope in _SCOPES},
            "brake": {"movesWithoutEffect": 1000},
        },
    }


async def _serve(lab: Lab, moved: MovedApp) -> str:
    """A Service, and for an app with several replicas a PodDisruptionBudget; returns the Service's URL."""
    app = moved.app.name
    spec = {"selector": {"app": app}, "ports": [{"port": PORT, "targetPort": PORT}]}
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": app}, "spec": spec}
    if moved.app.replicas > 1 and moved.budget:
        budget = {"metadata": {"name": app}, "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": app}}}}
        await lab.api.create(f"/apis/policy/v1/namespaces/{NAMESPACE}/poddisruptionbudgets", budget)
    made = await lab.api.create(f"/api/v1/namespaces/{NAMESPACE}/services", service)
    return f"http://{made['spec']['clusterIP']}:{PORT}/"
