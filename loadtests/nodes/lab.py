"""The lab of real nodes: control plane, kubelets with containerd, Prometheus, metrics.k8s.io; all on this machine."""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from loadtests.controlplane import (
    Component,
    ControlPlane,
    ControlPlaneOptions,
    User,
    control_plane,
    prepare_journal,
    serve_metrics,
)
from loadtests.controlplane.credentials import write_kubeconfig
from loadtests.images.build import app_images
from loadtests.kubelet.pod_runner import together
from loadtests.nodes.cgroups import Cgroups
from loadtests.nodes.claims import Claim, claimed_slot, control_plane_folder
from loadtests.nodes.event_clock import wrong_clock
from loadtests.nodes.kubelet_usage import KubeletUsage, PodLabels
from loadtests.nodes.network import Addresses, connect, make_bridge, serve_pods
from loadtests.nodes.node import Node, Programs
from loadtests.nodes.node_files import KubeletPace, NodePlace
from loadtests.nodes.prometheus import Prometheus, scrape_config
from loadtests.nodes.spec import LabError, LabNodeSpec, check_nodes, set_capacities
from loadtests.tools import ensure
from loadtests.tools.cache import Cache
from loadtests.tools.processes import Progress
from loadtests.tools.programs import to_stderr
from loadtests.workloads.api import LabApi, has_condition
from reactor.clock import SystemClock
from reactor.errors import RematchError

READY_SECONDS = 90.0
API_SECONDS = 30.0
_PLUGIN = "/usr/lib/cni/bridge"
_PROGRAMS = ("kubelet", "containerd", "ctr", "runc", _PLUGIN, "iptables", "ip", "prometheus")


@dataclass(frozen=True, slots=True)
class LabOptions:
    nodes: tuple[LabNodeSpec, ...]
    pace: KubeletPace = field(default_factory=KubeletPace)
    node_grace: float = 50.0
    """A node that has not been heard of for so long is NotReady."""
    scrape_interval: float = 5.0
    metrics_resolution: float = 2.0
    """How often metrics.k8s.io asks the kubelets; metrics-server's default is 15 s."""
    root: Path = Path.home() / ".cache" / "rematch" / "nodes"
    for_people: bool = False
    """Until somebody ends it, so `rematch lab nodes down` may."""
    progress: Progress = to_stderr


@dataclass(frozen=True, slots=True)
class Lab:
    claim: Claim
    addresses: Addresses
    plane: ControlPlane
    api: LabApi
    """As the admin."""
    nodes: Mapping[str, Node]
    prometheus: Prometheus

    @property
    def folder(self) -> Path:
        return Path(self.claim.folder)

    @property
    def cgroup_version(self) -> int:
        return next(iter(self.nodes.values())).cgroups.version

    def kubelets(self) -> dict[str, str]:
        """Where the metrics of the nodes that are up are."""
        return {node.name: node.metrics for node in self.nodes.values() if node.up}

    async def start_node(self, name: str) -> None:
        """Also one that was killed."""
        node = self.nodes[name]
        await node.boot()
        await connect(self.addresses, node.number, node.pid, len(self.nodes))
        await serve_pods(self.addresses, node.pid, self.plane.layout.ports.api)
        await node.run()

    async def until_ready(self, *names: str) -> None:
        wanted = set(names or self.nodes)
        try:
            async with asyncio.timeout(READY_SECONDS):
                while not wanted <= await self._ready_nodes():
                    for name in wanted:
                        self.nodes[name].check()
                    await asyncio.sleep(0.1)
        except TimeoutError as error:
            missing = ", ".join(sorted(wanted - await self._ready_nodes()))
            raise LabError(f"{missing} not Ready within {READY_SECONDS:g} s; see {self.folder}/*/log") from error

    async def _ready_nodes(self) -> set[str]:
        items = (await self.api.get("/api/v1/nodes"))["items"]
        return {item["metadata"]["name"] for item in items if has_condition(item, "Ready")}


@asynccontextmanager
async def real_nodes(options: LabOptions) -> AsyncIterator[Lab]:
    """All nodes Ready; everything is taken down at the end, and by the next start if this process is killed."""
    check_nodes(options.nodes)
    if os.geteuid() != 0:
        raise LabError("real nodes need root (namespaces, control groups, network): run this with sudo")
    programs, prometheus = await _programs(options)
    async with AsyncExitStack() as stack:
        names = tuple(spec.name for spec in options.nodes)
        slot = claimed_slot(options.root, names, for_people=options.for_people, progress=options.progress)
        claim = await stack.enter_async_context(slot)
        addresses = Addresses(claim.slot)
        await make_bridge(addresses, len(names))
        tokens = {spec.name: secrets.token_hex(16) for spec in options.nodes}
        plane = await stack.enter_async_context(control_plane(_plane_options(options, claim, addresses, tokens)))
        api = LabApi(plane.url, SystemClock(), API_SECONDS, token=plane.admin_token, ca=plane.ca)
        stack.push_async_callback(api.close)
        await set_capacities(api)
        await prepare_journal(api)
        builder = _Builder(options, claim, addresses, plane, programs)
        nodes = {
            spec.name: await builder.node(spec, number, tokens[spec.name], stack)
            for number, spec in enumerate(options.nodes, start=1)
        }
        watcher = Prometheus.prepare(
            prometheus,
            Path(claim.folder) / "prometheus",
            addresses.host,
            scrape_config({node.name: node.metrics for node in nodes.values()}, options.scrape_interval),
        )
        lab = Lab(claim, addresses, plane, api, nodes, watcher)
        stack.callback(_kill_all, nodes)
        await _start_all(lab)
        await lab.until_ready()
        stack.callback(watcher.stop)
        await watcher.start()
        labels = PodLabels()
        usage = KubeletUsage(lab.kubelets, SystemClock(), options.metrics_resolution, labels)
        await stack.enter_async_context(together(usage.run(), api.follow("/api/v1/pods", {}, labels.see)))
        await stack.enter_async_context(serve_metrics(plane, usage))
        yield lab


async def _programs(options: LabOptions) -> tuple[Programs, Path]:
    found = await ensure(_PROGRAMS, progress=options.progress)
    images = await app_images(Cache.usual(), options.progress)
    plugins = Path(found[_PLUGIN]).parent
    return Programs(found["kubelet"], found["containerd"], found["ctr"], plugins, images), found["prometheus"]


def _plane_options(
    options: LabOptions, claim: Claim, addresses: Addresses, tokens: Mapping[str, str]
) -> ControlPlaneOptions:
    users = tuple(User(token, f"system:node:{name}", ("system:nodes",)) for name, token in tokens.items())
    folder = control_plane_folder(Path(claim.folder))
    manager = (
        f"--node-monitor-grace-period={options.node_grace:g}s",
        "--node-monitor-period=2s",
    )
    return ControlPlaneOptions(
        folder=folder,
        address=addresses.host,
        users=users,
        service_range=addresses.services,
        flags={
            Component.API_SERVER: (
                "--enable-admission-plugins=NodeRestriction",
                "--kubelet-preferred-address-types=InternalIP",
            ),
            Component.CONTROLLER_MANAGER: manager,
        },
    )


@dataclass(frozen=True, slots=True)
class _Builder:
    options: LabOptions
    claim: Claim
    addresses: Addresses
    plane: ControlPlane
    programs: Programs

    async def node(self, spec: LabNodeSpec, number: int, token: str, stack: AsyncExitStack) -> Node:
        folder = Path(self.claim.folder) / spec.name
        folder.mkdir(parents=True)
        url = self.plane.url
        if spec.clock_ahead:
            proxy = wrong_clock(url, self.plane.ca, token, self.addresses.host, spec.clock_ahead)
            url = await stack.enter_async_context(proxy)
        kubeconfig = write_kubeconfig(folder / "kubeconfig", url, self.plane.ca, token=token)
        dns = self.addresses.api_service.rpartition(".")[0] + ".10"
        place = NodePlace(folder, self.addresses.node(number), self.addresses.pods(number), dns)
        group = self.claim.group(spec.name)
        cgroups = Cgroups.of_this_machine()
        return Node(spec, number, place, group, cgroups, self.programs, kubeconfig, self.options.pace)


async def _start_all(lab: Lab) -> None:
    """The first that fails ends the others: nothing may start any more while the lab is taken down."""
    try:
        async with asyncio.TaskGroup() as starting:
            for name in lab.nodes:
                starting.create_task(lab.start_node(name))
    except ExceptionGroup as failed:
        if failed.split(RematchError)[1] is not None:
            raise
        raise LabError("; ".join(map(str, failed.exceptions))) from failed


def _kill_all(nodes: Mapping[str, Node]) -> None:
    for node in nodes.values():
        node.kill()
