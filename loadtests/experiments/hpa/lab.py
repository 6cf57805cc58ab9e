"""Real nodes with a Deployment and a real HorizontalPodAutoscaler for each arm, the real controller as a process of its
own, and k6 that loads all arms alike at the same time."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from loadtests.controlplane.api_service import ApiService, registered
from loadtests.controlplane.credentials import OUR_HOST
from loadtests.controlplane.process import ComponentProcess
from loadtests.experiments.hpa.design import AHEAD, ARMS, LEAST, NAMESPACE, NODES, TIMEOUT, TOP, app_of, autoscaler
from loadtests.nodes import KubeletPace, Lab, LabOptions, real_nodes
from loadtests.nodes.apps import PORT, deployment
from loadtests.nodes.client_network import client_network
from loadtests.nodes.in_cluster import install_policies
from loadtests.nodes.prometheus import queries_over
from loadtests.nodes.spec import LabError
from loadtests.tools import ensure
from loadtests.tools.ports import free_ports
from loadtests.workloads.k6 import K6
from loadtests.workloads.load_tools import FallingLoad
from loadtests.workloads.samples import RequestSample
from reactor.errors import ClusterError

Json = dict[str, Any]
_GROUP, _VERSION = "external.metrics.k8s.io", "v1beta1"
_DEPLOYMENTS = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"
_AUTOSCALERS = f"/apis/autoscaling/v2/namespaces/{NAMESPACE}/horizontalpodautoscalers"
_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_SCRAPE = 2.0
_WINDOW = 10
"""Seconds of Prometheus' rates."""
_RESOLUTION = 15.0
"""Of metrics.k8s.io, as metrics-server's default."""
_DEADLINE = 120.0
_POLL = 1.0


@dataclass
class Replicas:
    """Of one arm, looked at every second."""

    times: list[float] = field(default_factory=list)
    """Seconds since the burst began."""
    wanted: list[int] = field(default_factory=list)
    ready: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Burst:
    began: float
    """Seconds since the epoch."""
    due: float
    """Requests to each arm."""
    samples: list[RequestSample]
    replicas: Mapping[str, Replicas]


@dataclass(frozen=True, slots=True)
class HpaLab:
    lab: Lab
    k6: K6
    urls: Mapping[str, str]

    async def burst(self, seconds: float) -> Burst:
        """The load begins a moment after k6 is started; seconds count from there."""
        load = FallingLoad(self.urls, TOP, seconds, TIMEOUT, self.lab.addresses.everything)
        replicas = {arm.name: Replicas() for arm in ARMS}
        started = time.time()
        attack = asyncio.create_task(self.k6.fall(load))
        try:
            while not attack.done():
                await self._look(replicas, started)
                await asyncio.wait({attack}, timeout=_POLL)
            samples = attack.result()
        finally:
            attack.cancel()
        began = min(sample.start for sample in samples)
        for each in replicas.values():
            each.times = [round(at - (began - started), 2) for at in each.times]
        return Burst(began, load.requests / len(self.urls), samples, replicas)

    async def _look(self, replicas: Mapping[str, Replicas], started: float) -> None:
        items = (await self.lab.api.get(_DEPLOYMENTS))["items"]
        at = time.time() - started
        for item in items:
            found = replicas[item["metadata"]["name"]]
            found.times.append(at)
            found.wanted.append(item["spec"]["replicas"])
            found.ready.append(item["status"].get("readyReplicas", 0))


@asynccontextmanager
async def open_lab(folder: Path) -> AsyncIterator[HpaLab]:
    programs = await ensure(["k6", "kube-proxy"])
    options = LabOptions(
        NODES, KubeletPace(housekeeping=2.0, status=2.0), scrape_interval=_SCRAPE, metrics_resolution=_RESOLUTION
    )
    async with AsyncExitStack() as stack:
        lab = await stack.enter_async_context(real_nodes(options))
        client = await stack.enter_async_context(client_network(lab, programs["kube-proxy"]))
        await install_policies(lab.api)
        await lab.api.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        (port,) = free_ports("127.0.0.1", 1)
        stack.enter_context(_controller(lab, folder, port))
        service = ApiService(_GROUP, _VERSION, OUR_HOST, port)
        await stack.enter_async_context(registered(lab.plane, lab.api, service))
        await _let_autoscalers_read(lab)
        urls = await _deploy(lab)
        await _until_all_measured(lab)
        yield HpaLab(lab, K6(programs["k6"], client.prefix), urls)


@contextmanager
def _controller(lab: Lab, folder: Path, port: int) -> Iterator[None]:
    """`rematch run` in mode observe, fed by Prometheus alone."""
    folder.mkdir(parents=True, exist_ok=True)
    prometheus = {"url": lab.prometheus.url, "interval": f"{_SCRAPE:g}s", "queries": queries_over(_WINDOW)}
    metrics = {"prometheus": prometheus, "metricsApi": {"enabled": False}}
    settings = folder / "settings.yaml"
    settings.write_text(yaml.safe_dump({"mode": "observe", "metrics": metrics}))
    given = lab.plane.credentials.metrics
    command = [
        *(sys.executable, "-c", "from reactor.cli.main import main; main()", "run"),
        *(f"--settings={settings}", f"--kubeconfig={lab.plane.kubeconfig}", f"--store={lab.folder / 'rematch.db'}"),
        *("--port=0", f"--external-metrics-port={port}"),
        *(f"--external-metrics-certificate={given.certificate}", f"--external-metrics-key={given.key}"),
    ]
    process = ComponentProcess("controller", command, folder / "controller.log")
    process.start()
    try:
        yield
    finally:
        process.stop()


async def _let_autoscalers_read(lab: Lab) -> None:
    """As the chart does."""
    name = {"name": "rematch-external-metrics-reader"}
    rules = [{"apiGroups": [_GROUP], "resources": ["*"], "verbs": ["get", "list"]}]
    await lab.api.create(f"{_RBAC}/clusterroles", {"metadata": name, "rules": rules})
    subject = {"kind": "ServiceAccount", "name": "horizontal-pod-autoscaler", "namespace": "kube-system"}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", **name}
    binding = {"metadata": name, "roleRef": reference, "subjects": [subject]}
    await lab.api.create(f"{_RBAC}/clusterrolebindings", binding)


async def _deploy(lab: Lab) -> dict[str, str]:
    """The URL by arm."""
    urls = {}
    for arm in ARMS:
        spec = {"selector": {"app": arm.name}, "ports": [{"port": PORT, "targetPort": PORT}]}
        service = {"metadata": {"name": arm.name}, "spec": spec}
        made = await lab.api.create(f"/api/v1/namespaces/{NAMESPACE}/services", service)
        urls[arm.name] = f"http://{made['spec']['clusterIP']}:{PORT}/"
        await lab.api.create(_DEPLOYMENTS, deployment(app_of(arm), NAMESPACE, "default-scheduler"))
        await lab.api.create(_AUTOSCALERS, autoscaler(arm))
    return urls


async def _until_all_measured(lab: Lab) -> None:
    """Every autoscaler knows its metrics and wants the least."""
    last = ""
    try:
        async with asyncio.timeout(_DEADLINE):
            while last := await _still_missing(lab):
                await asyncio.sleep(_POLL)
    except TimeoutError as error:
        raise LabError(f"the autoscalers were not ready within {_DEADLINE:g} s: {last}") from error


async def _still_missing(lab: Lab) -> str:
    for item in (await lab.api.get(_DEPLOYMENTS))["items"]:
        if item["status"].get("readyReplicas") != LEAST or item["spec"]["replicas"] != LEAST:
            return f"{item['metadata']['name']} has not its {LEAST} replicas"
    for item in (await lab.api.get(_AUTOSCALERS))["items"]:
        active = [each for each in item["status"].get("conditions") or () if each["type"] == "ScalingActive"]
        if not active or active[0]["status"] != "True":
            return f"{item['metadata']['name']}: {active[0]['message'] if active else 'not looked at yet'}"
    path = f"/apis/{_GROUP}/{_VERSION}/namespaces/{NAMESPACE}/{AHEAD}"
    try:
        known = await lab.api.get(path, {"labelSelector": "horizon=1m"})
    except ClusterError as error:
        return str(error)
    return "" if len(known["items"]) == len(ARMS) else "not every arm is predicted"
