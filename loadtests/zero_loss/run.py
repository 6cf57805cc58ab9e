"""One way of moving after the other, under constant load from both tools, with new and with kept connections."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from loadtests.demo.controller import ControllerSpec, running_controller
from loadtests.experiments.stable.real.client import client_network
from loadtests.kubelet.pod_runner import together
from loadtests.nodes.apps import PORT, deployment
from loadtests.nodes.in_cluster import grant_rights, install_policies
from loadtests.nodes.lab import Lab
from loadtests.tools import ensure
from loadtests.tools.ports import free_ports
from loadtests.workloads.k6 import K6
from loadtests.workloads.load_tools import Load, LoadTool
from loadtests.workloads.samples import RequestOutcome
from loadtests.workloads.vegeta import Vegeta
from loadtests.zero_loss.design import APPS, MovedApp, Way
from loadtests.zero_loss.mover import Mover
from loadtests.zero_loss.results import Failed, Lane, Leg, Row, row
from loadtests.zero_loss.routes import EmptyServices
from reactor.clock import Clock, SystemClock
from reactor.errors import RematchError

NAMESPACE = "zero-loss"
LANES = (Lane("vegeta", False), Lane("vegeta", True), Lane("k6", False), Lane("k6", True))
PROXY_DELAY = "1s"
"""Between two updates of kube-proxy's rules: its default, in the lab as in clusters."""
LEG_SECONDS = 120.0
_FIRST_ROUND = 40.0
"""Seconds that a round is given before one was measured."""
_TOOL_START = 4.0
_TIMEOUT = 2.0
_SCOPES = ("cluster", "namespace", "workload")
_TRIALS = 20
_MAX_FAILED_ROUNDS = 10
"""In a row."""

Json = dict[str, Any]
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Bench:
    """What all ways have in common: the lab, the client's network, the Services."""

    lab: Lab
    nodes: Sequence[str]
    apps: Sequence[MovedApp]
    tools: dict[str, LoadTool]
    urls: dict[str, str]
    empty: EmptyServices
    folder: Path
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
            await lab.api.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
            urls = {}
            for moved in apps:
                path = f"/api/v1/namespaces/{NAMESPACE}/services"
                made = await lab.api.create(path, _service(moved.app.name))
                urls[moved.app.name] = f"http://{made['spec']['clusterIP']}:{PORT}/"
            empty = EmptyServices(lab.api, NAMESPACE, clock)
            await stack.enter_async_context(together(empty.run()))
            yield cls(lab, nodes, apps, tools, urls, empty, folder, clock)

    def load(self, rate: float, seconds: float, *, keep_alive: bool) -> Load:
        everything = self.lab.addresses.everything
        return Load(self.urls, rate, seconds, _TIMEOUT, everything, keep_alive)

    def mover(self, way: Way) -> Mover:
        return Mover(self.lab.api, NAMESPACE, self.nodes, self.apps, way, self.clock)

    @asynccontextmanager
    async def deployed(self, mover: Mover) -> AsyncIterator[None]:
        """Pods of kube-scheduler, with manifests that know nothing of Rematch."""
        path = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"
        for moved in self.apps:
            await self.lab.api.create(path, deployment(moved.app, NAMESPACE, "default-scheduler"))
        try:
            await mover.until_complete()
            await self._until_routed()
            yield
        finally:
            await self.lab.api.delete(path, {"propagationPolicy": "Background"})
            async with asyncio.timeout(90):
                while (await self.lab.api.get(f"/api/v1/namespaces/{NAMESPACE}/pods"))["items"]:
                    await asyncio.sleep(0.2)

    @asynccontextmanager
    async def controller(self, way: Way) -> AsyncIterator[None]:
        if way is Way.PLAIN:
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
            result = await self.tools["vegeta"].attack(self.load(2.0, 1.0, keep_alive=False))
            if all(sample.outcome is RequestOutcome.OK for sample in result.samples):
                return
        raise RematchError(f"the apps were not reachable through their Services in {_TRIALS} trials")


def settings_of(way: Way) -> Json:
    """It moves only what it is asked to."""
    return {
        "apiVersion": "rematch/v1alpha1",
        "mode": "act",
        "managed": {"namespaces": [NAMESPACE], "anySchedulerNamespaces": [NAMESPACE]},
        "decision": {"cooldown": "0s", "settle": "0s"},
        "metrics": {"metricsApi": {"interval": "5s"}},
        "execution": {
            "strategies": way.strategies,
            "evictSingleReplicas": True,
            "maxMovesInFlight": len(APPS),
            "maxMovesInFlightPerNamespace": len(APPS),
            "limits": {scope: {"per10Minutes": 10_000, "perDay": 10_000} for scope in _SCOPES},
            "brake": {"movesWithoutEffect": 1000},
        },
    }


@dataclass(slots=True)
class Measured:
    rows: list[Row] = field(default_factory=list)
    failed: list[Failed] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


async def measure(bench: Bench, way: Way, rounds: int, rate: float, tell: Tell) -> Measured:
    """Every pod is moved `rounds` times."""
    mover = bench.mover(way)
    async with bench.controller(way), bench.deployed(mover):
        legs = await _legs(bench, mover, rounds, rate, tell)
    measured = Measured(problems=mover.problems)
    for moved in bench.apps:
        made, failed = row(way.value, moved, legs, mover.landed, bench.empty)
        measured.rows.append(made)
        measured.failed += failed
        tell(f"{way}: {made.app}: {made.moves} moves, {made.lost} of {made.requests} requests lost")
    return measured


async def _legs(bench: Bench, mover: Mover, rounds: int, rate: float, tell: Tell) -> list[Leg]:
    """A round begins only where the load lasts longer than it."""
    legs: list[Leg] = []
    needed, left, failures = _FIRST_ROUND, rounds, 0
    while left and failures < _MAX_FAILED_ROUNDS:
        seconds = min(LEG_SECONDS, left * needed + 2 * _TOOL_START)
        attacks = [
            asyncio.create_task(bench.tools[lane.tool].attack(bench.load(rate, seconds, keep_alive=lane.keep_alive)))
            for lane in LANES
        ]
        end = bench.clock.monotonic() + seconds
        try:
            await asyncio.sleep(_TOOL_START)
            while left and bench.clock.monotonic() + needed <= end:
                began = bench.clock.monotonic()
                moved = await mover.round()
                failures = 0 if moved else failures + 1
                left -= moved
                needed = max(1.3 * (bench.clock.monotonic() - began), 5.0)
                tell(f"{mover.way}: {rounds - left} of {rounds} rounds; the last took {needed / 1.3:.0f} s")
                if failures >= _MAX_FAILED_ROUNDS:
                    break
            results = await asyncio.gather(*attacks)
        finally:
            for attack in attacks:
                attack.cancel()
            await asyncio.gather(*attacks, return_exceptions=True)
        legs.append(Leg(tuple(zip(LANES, results, strict=True))))
    return legs


def _service(app: str) -> Json:
    spec = {"selector": {"app": app}, "ports": [{"port": PORT, "targetPort": PORT}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": app}, "spec": spec}
