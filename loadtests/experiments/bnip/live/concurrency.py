"""Many concurrent users on the nine pods, where kube-scheduler put them alone and with the extender."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from statistics import fmean
from typing import Any

from loadtests.experiments.bnip.design import DEMANDS, Arm
from loadtests.experiments.bnip.lab import BnipLab, with_extender
from loadtests.experiments.bnip.live.design import LINKS, LOAD_SECONDS, NODES, TIMEOUT, USERS_SCALE, web_app
from loadtests.experiments.bnip.live.records import UsersRun
from loadtests.nodes import Lab, LabOptions, real_nodes
from loadtests.nodes.apps import PORT, deployment
from loadtests.nodes.client import client_network
from loadtests.nodes.network import inside
from loadtests.nodes.spec import LabError
from loadtests.tools import ensure
from loadtests.workloads.api import has_condition
from loadtests.workloads.load_tools import ClosedLoad
from loadtests.workloads.samples import RequestOutcome, RequestSample, percentile
from loadtests.workloads.vegeta import Vegeta

_SCRAPE = 60.0
"""The lab's own Prometheus shares the links."""
_SERVICES = "/api/v1/namespaces/default/services"
_PODS = "/api/v1/namespaces/default/pods"
_DEADLINE = 60.0
_TRIALS = 20

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Placed:
    """The nine pods, reachable."""

    bench: ConcurrencyBench
    arm: Arm
    placement: dict[str, str]

    async def run(self, paper_users: int, repeat: int) -> UsersRun:
        users = paper_users // USERS_SCALE
        samples = await self.bench.attack(users, LOAD_SECONDS)
        outcomes = Counter(sample.outcome.value for sample in samples if sample.outcome is not RequestOutcome.OK)
        times = sorted(1000 * sample.latency for sample in samples)
        at = datetime.now(UTC).isoformat(timespec="seconds")
        load = (paper_users, users, len(samples), dict(outcomes))
        figures = (round(fmean(times), 2), round(percentile(times, 0.95), 2))
        return UsersRun(self.arm.name, repeat, *load, *figures, self.placement, at)


@dataclass(frozen=True, slots=True)
class ConcurrencyBench:
    lab: Lab
    placing: BnipLab
    tool: Vegeta
    urls: dict[str, str]

    @classmethod
    @asynccontextmanager
    async def open(cls) -> AsyncIterator[ConcurrencyBench]:
        found = await ensure(["vegeta", "kube-proxy"])
        async with (
            real_nodes(LabOptions(NODES, scrape_interval=_SCRAPE)) as lab,
            client_network(lab, found["kube-proxy"]) as client,
            with_extender(lab.plane, lab.api, _pod) as placing,
        ):
            await _limit_links(lab)
            urls = {pod: await _serve(lab, pod) for pod in DEMANDS}
            yield cls(lab, placing, Vegeta(found["vegeta"], client.prefix), urls)

    @asynccontextmanager
    async def placed(self, arm: Arm) -> AsyncIterator[Placed]:
        async with self.placing.deployed(arm) as deployed:
            await self._until_routed()
            yield Placed(self, arm, dict(deployed.placement))

    async def attack(self, users: int, seconds: float) -> list[RequestSample]:
        load = ClosedLoad(self.urls, users, seconds, TIMEOUT, self.lab.addresses.everything)
        return await self.tool.attack_closed(load)

    async def _until_routed(self) -> None:
        async with asyncio.timeout(_DEADLINE):
            while not all(has_condition(pod, "Ready") for pod in (await self.lab.api.get(_PODS))["items"]):
                await asyncio.sleep(0.2)
        for _ in range(_TRIALS):
            if _all_good(await self.attack(len(DEMANDS), 1.0)):
                return
        raise LabError(f"the pods were not reachable through their Services in {_TRIALS} trials")


def _all_good(samples: Sequence[RequestSample]) -> bool:
    return all(sample.outcome is RequestOutcome.OK for sample in samples)


async def _limit_links(lab: Lab) -> None:
    """What a node sends; what is queued for longer than 100 ms is dropped, as by a switch with little memory."""
    for name, mbit in LINKS.items():
        limit = ["rate", f"{mbit:g}mbit", "burst", "32kb", "latency", "100ms"]
        await inside(lab.nodes[name].pid, "tc", "qdisc", "replace", "dev", "eth0", "root", "tbf", *limit)


async def _serve(lab: Lab, pod: str) -> str:
    spec = {"selector": {"app": pod}, "ports": [{"port": PORT, "targetPort": PORT}]}
    made = await lab.api.create(_SERVICES, {"metadata": {"name": pod}, "spec": spec})
    return f"http://{made['spec']['clusterIP']}:{PORT}/"


def _pod(name: str, scheduler: str) -> Json:
    template: Json = deployment(web_app(name), "default", scheduler)["spec"]["template"]
    return {**template, "metadata": {"name": name, **template["metadata"]}}
