"""The real control plane with three fake nodes, a Prometheus that tells what their links carry, the extender as a
process, and a kube-scheduler of each arm."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import yaml

from loadtests.controlplane import ControlPlane, ControlPlaneOptions, control_plane, install_crds
from loadtests.controlplane.process import ComponentProcess
from loadtests.experiments.bnip.design import CPU, DEMANDS, MBIT, MEMORY, NODES, Arm, Placement
from loadtests.kwok import PLANE_FLAGS, fake_node, kwok, nodes_open
from loadtests.metrics.prometheus import LabPrometheus
from loadtests.metrics.series import VectorSample
from loadtests.tools import ensure
from loadtests.tools.ports import free_ports
from loadtests.workloads.api import LabApi
from reactor.clock import SystemClock
from reactor.errors import ClusterError

Json = dict[str, Any]
Manifest = Callable[[str, str], Json]
LOOPBACK = "127.0.0.1"
DEFAULT_SCHEDULER = "default-scheduler"
SECOND_SCHEDULER = "with-extender"
PODS = "/api/v1/namespaces/default/pods"
_DEADLINE = 60.0
_POLL = 0.1
_SETTLE = 1.0
"""Seconds from a binding until the extender has seen it for certain, on a busy machine, too."""
_DURATION = re.compile(r'scheduler_scheduling_algorithm_duration_seconds_bucket\{le="([^"]+)"\} ([0-9.e+]+)')


@dataclass
class NominalSeries:
    """Every pod sends and receives what it states, and nodes have no traffic of their own."""

    placed: dict[str, str] = field(default_factory=dict)

    def named(self, name: str) -> Iterator[VectorSample]:
        if name == "lab_pod_network_bps":
            for pod in self.placed:
                yield VectorSample({"namespace": "default", "pod": pod}, DEMANDS[pod] * MBIT)
        for node in NODES if name.startswith("lab_node_") else ():
            carried = sum(DEMANDS[pod] for pod, where in self.placed.items() if where == node.name)
            yield VectorSample({"node": node.name}, MBIT * (node.mbit if name == "lab_node_link_bps" else carried))


@dataclass(frozen=True, slots=True)
class SchedulerFigures:
    """By kube-scheduler's own histogram: the bound that a share of its decisions stay below, in milliseconds."""

    p50_ms: float
    p99_ms: float


@dataclass(frozen=True, slots=True)
class Deployed:
    placement: Placement
    scheduler: SchedulerFigures | None


class BnipLab:
    """`manifest` makes a pod of a name, for the scheduler of a name."""

    def __init__(
        self,
        plane: ControlPlane,
        series: NominalSeries,
        api: LabApi,
        manifest: Manifest,
        extender: str,
        scheduler: Path,
    ) -> None:
        self.plane = plane
        self._series = series
        self._manifest = manifest
        self.api = api
        self._extender = extender
        self._scheduler = scheduler

    @asynccontextmanager
    async def deployed(self, arm: Arm) -> AsyncIterator[Deployed]:
        """The nine pods in order, each when the one before has its node and is seen there. Gone afterwards."""
        async with self.scheduler_of(arm) as (name, metrics):
            await self._until_judged(arm)
            try:
                for pod in DEMANDS:
                    await self.api.create(PODS, self._manifest(pod, name))
                    self._series.placed[pod] = await self._node_of(pod)
                    await asyncio.sleep(_SETTLE)
                yield Deployed(dict(self._series.placed), await self._figures(metrics) if metrics else None)
            finally:
                await self._remove_all()

    @asynccontextmanager
    async def scheduler_of(self, arm: Arm) -> AsyncIterator[tuple[str, str]]:
        """Its name for pods, and the URL of its metrics; without the extender the control plane's own."""
        if not arm.weight:
            yield DEFAULT_SCHEDULER, ""
            return
        folder, layout = self.plane.layout.options.folder, self.plane.layout
        (port,) = free_ports(LOOPBACK, 1)
        config = folder / f"scheduler-{arm.weight}.yaml"
        config.write_text(yaml.safe_dump(_configuration(self.plane.kubeconfig, self._extender, arm.weight)))
        command = [
            str(self._scheduler),
            f"--config={config}",
            f"--bind-address={LOOPBACK}",
            f"--secure-port={port}",
            f"--tls-cert-file={layout.credentials.server.certificate}",
            f"--tls-private-key-file={layout.credentials.server.key}",
            "--authorization-always-allow-paths=/readyz,/metrics",
        ]
        process = ComponentProcess(SECOND_SCHEDULER, command, folder / "log" / f"{SECOND_SCHEDULER}.log")
        process.start()
        try:
            await self._until_ready(process, f"https://{LOOPBACK}:{port}")
            yield SECOND_SCHEDULER, f"https://{LOOPBACK}:{port}/metrics"
        finally:
            process.stop()

    async def _until_ready(self, process: ComponentProcess, url: str) -> None:
        api = LabApi(url, SystemClock(), ca=self.plane.ca)
        try:
            async with asyncio.timeout(_DEADLINE):
                while not await api.ready():
                    process.check()
                    await asyncio.sleep(_POLL)
        finally:
            await api.close()

    async def _until_judged(self, arm: Arm) -> None:
        """The extender has measurements of every node, and sees that they are idle."""
        if not arm.weight:
            return
        wanted = f'rematch_extender_nodes{{state="known"}} {float(len(NODES))}'
        async with asyncio.timeout(_DEADLINE), aiohttp.ClientSession() as session:
            while True:
                async with session.get(f"{self._extender}/metrics") as answer:
                    if wanted in await answer.text():
                        return
                await asyncio.sleep(_POLL)

    async def _node_of(self, pod: str) -> str:
        async with asyncio.timeout(_DEADLINE):
            while True:
                found = await self.api.get(f"{PODS}/{pod}")
                if node := found["spec"].get("nodeName"):
                    return str(node)
                await asyncio.sleep(_POLL)

    async def _remove_all(self) -> None:
        await self.api.delete(PODS, {"gracePeriodSeconds": 0})
        async with asyncio.timeout(_DEADLINE):
            while (await self.api.get(PODS))["items"]:
                await asyncio.sleep(_POLL)
        self._series.placed.clear()
        await asyncio.sleep(2 * _SETTLE)  # one round of measurements

    async def _figures(self, url: str) -> SchedulerFigures | None:
        async with aiohttp.ClientSession() as session, session.get(url, ssl=False) as answer:
            buckets = [(float(bound), float(count)) for bound, count in _DURATION.findall(await answer.text())]
        if not buckets or not buckets[-1][1]:
            return None
        total = buckets[-1][1]
        p50, p99 = (next(bound for bound, count in buckets if count >= share * total) for share in (0.5, 0.99))
        return SchedulerFigures(1000 * p50, 1000 * p99)


@asynccontextmanager
async def open_lab(folder: Path) -> AsyncIterator[BnipLab]:
    """With fake nodes."""
    async with control_plane(ControlPlaneOptions(folder, flags=PLANE_FLAGS)) as plane, kwok(plane):
        api = plane.client()
        try:
            await install_crds(api)
            for node in NODES:
                resources = {"cpu": str(node.cores), "memory": f"{node.gigabytes}G", "pods": "110"}
                await api.create("/api/v1/nodes", fake_node(node.name, resources))
            await nodes_open(api)
            async with with_extender(plane, api, _pod) as lab:
                yield lab
        finally:
            await api.close()


@asynccontextmanager
async def with_extender(plane: ControlPlane, api: LabApi, manifest: Manifest) -> AsyncIterator[BnipLab]:
    """The extender beside a control plane that has the nodes and our custom resources."""
    series = NominalSeries()
    prometheus = LabPrometheus(series, SystemClock())
    programs = await ensure(["kube-scheduler"])
    await prometheus.start()
    try:
        async with _extender(plane, prometheus.url) as url:
            yield BnipLab(plane, series, api, manifest, url, programs["kube-scheduler"])
    finally:
        await prometheus.stop()


@asynccontextmanager
async def _extender(plane: ControlPlane, prometheus: str) -> AsyncIterator[str]:
    """`rematch extender` as a process of its own."""
    folder = plane.layout.options.folder
    queries = {"podNetwork": "lab_pod_network_bps", "nodeNetwork": "lab_node_network_bps"}
    queries["nodeBandwidth"] = "lab_node_link_bps"
    metrics = {"prometheus": {"url": prometheus, "interval": "0.5s", "queries": queries}}
    settings = folder / "extender-settings.yaml"
    settings.write_text(yaml.safe_dump({"apiVersion": "rematch/v1alpha1", "kind": "Settings", "metrics": metrics}))
    (port,) = free_ports(LOOPBACK, 1)
    start = [sys.executable, "-c", "from reactor.cli.main import main; main()"]
    flags = [f"--settings={settings}", f"--kubeconfig={plane.kubeconfig}", f"--port={port}", "--namespace=default"]
    process = ComponentProcess("extender", [*start, "extender", *flags], folder / "log" / "extender.log")
    process.start()
    url = f"http://{LOOPBACK}:{port}"
    try:
        async with asyncio.timeout(_DEADLINE), aiohttp.ClientSession() as session:
            while not await _answers(session, url):
                process.check()
                await asyncio.sleep(_POLL)
        yield url
    except TimeoutError as error:
        raise ClusterError(f"the extender was not ready within {_DEADLINE:g} s: {process.log_tail()}") from error
    finally:
        process.stop()


async def _answers(session: aiohttp.ClientSession, url: str) -> bool:
    try:
        async with session.get(f"{url}/readyz") as answer:
            return answer.status == 200
    except aiohttp.ClientConnectionError:
        return False


def _configuration(kubeconfig: Path, extender: str, weight: int) -> Json:
    """As in docs/extender.md."""
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": str(kubeconfig)},
        "leaderElection": {"leaderElect": False},
        "profiles": [{"schedulerName": SECOND_SCHEDULER}],
        "extenders": [
            {
                "urlPrefix": extender,
                "filterVerb": "filter",
                "prioritizeVerb": "prioritize",
                "weight": weight,
                "httpTimeout": "5s",
                "nodeCacheCapable": True,
                "ignorable": True,
            }
        ],
    }


def _pod(name: str, scheduler: str) -> Json:
    requests = {"cpu": CPU, "memory": MEMORY}
    container = {"name": "web", "image": "none", "resources": {"requests": requests}}
    return {
        "metadata": {"name": name, "annotations": {"rematch.io/network-bps": f"{DEMANDS[name]:g}M"}},
        "spec": {
            "schedulerName": scheduler,
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": False,
            "containers": [container],
        },
    }
