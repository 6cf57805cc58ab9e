"""The lab of real nodes with the experiment's Services, and one run on it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from statistics import fmean

from loadtests.controlplane import forget_journal
from loadtests.experiments.kse.arms import ARMS, SettingsOf
from loadtests.experiments.kse.design import NODES, Scenario
from loadtests.experiments.kse.real.design import (
    CONTROLLER_AT,
    LAB_NODES,
    LOAD_SECONDS,
    METRICS_SECONDS,
    NODE_SCALE,
    PLAN_SECONDS,
    SNAPSHOTS,
    TIME_SCALE,
    TIMEOUT,
    lab_apps,
    real_settings,
    requests_of,
)
from loadtests.experiments.kse.real.records import RealRun
from loadtests.experiments.kse.real.seen_moves import SeenMoves
from loadtests.experiments.kse.results import count_returns, imbalance_of
from loadtests.experiments.stable.measurement import saturated
from loadtests.experiments.stable.real.cpu_delay import CpuDelayMonitor
from loadtests.experiments.stable.real.machine import Reading, cores_used, machine_between, read_machine
from loadtests.experiments.stable.real.workload import REMATCH, ExperimentWorkload
from loadtests.nodes import KubeletPace, Lab, LabOptions, real_nodes
from loadtests.nodes.client_network import client_network
from loadtests.nodes.live_controller import live_controller
from loadtests.nodes.spec import LabError
from loadtests.tools import ensure
from loadtests.workloads.load_tools import Load, LoadResult
from loadtests.workloads.samples import RequestOutcome, percentile
from loadtests.workloads.vegeta import Vegeta

FROZEN = "nobody"
"""The scheduler name of pods that only the experiment binds."""
_SCRAPE = 2.0
_TRIALS = 20
_CORES = sum(node.millicores for node in LAB_NODES) / 1000


@dataclass(frozen=True, slots=True)
class Course:
    """What was seen while the load lasted."""

    readings: Sequence[Reading]
    """At the begin, and after each interval."""
    load: LoadResult
    moves: Sequence[tuple[str, str, str]]
    restarts: int
    delay_ms: float | None


@dataclass(frozen=True, slots=True)
class RealBench:
    lab: Lab
    workload: ExperimentWorkload
    tool: Vegeta
    urls: Mapping[str, str]
    cpu_delay: CpuDelayMonitor

    @classmethod
    @asynccontextmanager
    async def open(cls, apps: Sequence[str]) -> AsyncIterator[RealBench]:
        """The lab stands and is removed with the block."""
        found = await ensure(["vegeta", "kube-proxy"])
        options = LabOptions(
            LAB_NODES, KubeletPace(housekeeping=2.0), scrape_interval=_SCRAPE, metrics_resolution=METRICS_SECONDS
        )
        async with (
            real_nodes(options) as lab,
            client_network(lab, found["kube-proxy"]) as client,
            CpuDelayMonitor.running() as cpu_delay,
        ):
            workload = ExperimentWorkload(lab.api)
            urls = await workload.make_services(apps)
            yield cls(lab, workload, Vegeta(found["vegeta"], client.prefix), urls, cpu_delay)

    async def run(self, scenario: Scenario, arm: str, repeat: int) -> RealRun:
        settings = ARMS[arm].settings
        await forget_journal(self.lab.api)
        try:
            await self.workload.deploy(lab_apps(scenario), FROZEN if settings is None else REMATCH)
            await self.workload.bind(scenario.placement())
            await self.workload.until_ready(scenario.pods)
            await self._until_routed(scenario)
            course = await self._loaded(scenario, settings, repeat)
        finally:
            await self.workload.remove()
        return record_of(scenario, arm, repeat, course)

    async def _loaded(self, scenario: Scenario, settings: SettingsOf | None, repeat: int) -> Course:
        """The controller begins in the course of the load, so that it plans with measurements of it."""
        seen = SeenMoves()
        restarts = await self.workload.restarts()
        self.cpu_delay.take()
        rate = scenario.target * TIME_SCALE / scenario.pods
        order = requests_of(scenario, repeat)
        attack = asyncio.create_task(self.tool.attack(self._load(scenario, rate, LOAD_SECONDS), order))
        watch = asyncio.create_task(self._watch())
        try:
            async with AsyncExitStack() as stack:
                if settings is not None:
                    await asyncio.sleep(CONTROLLER_AT)
                    chosen = real_settings(settings, scenario.metric, self.lab.prometheus.url)
                    await stack.enter_async_context(live_controller(self.lab, chosen, lambda _live: seen.listen))
                readings = await watch
                delay_ms = self.cpu_delay.take()
                now = await self.workload.restarts()
                load = await attack
        finally:
            for task in (attack, watch):
                task.cancel()
            await asyncio.gather(attack, watch, return_exceptions=True)
        more = sum(max(0, count - restarts.get(uid, 0)) for uid, count in now.items())
        return Course(readings, load, seen.steps(), more, delay_ms)

    async def _watch(self) -> list[Reading]:
        """A reading says when it was made, so that a late one does no harm."""
        loop = asyncio.get_running_loop()
        began, readings = loop.time(), [read_machine(self.lab.nodes)]
        for number in range(1, SNAPSHOTS + 1):
            await asyncio.sleep(began + number * PLAN_SECONDS - loop.time())
            readings.append(read_machine(self.lab.nodes))
        return readings

    def _load(self, scenario: Scenario, rate: float, seconds: float) -> Load:
        urls = {app: self.urls[app] for app in scenario.apps()}
        return Load(urls, rate, seconds, TIMEOUT, self.lab.addresses.everything)

    async def _until_routed(self, scenario: Scenario) -> None:
        """kube-proxy learns of the new pods a moment after they are Ready."""
        for _ in range(_TRIALS):
            result = await self.tool.attack(self._load(scenario, 1.0, 1.0))
            if all(sample.outcome is RequestOutcome.OK for sample in result.samples):
                return
        raise LabError(f"the apps were not reachable through their Services in {_TRIALS} trials")


def record_of(scenario: Scenario, arm: str, repeat: int, course: Course) -> RealRun:
    used = [cores_used(before, after) for before, after in pairwise(course.readings)]
    trace = [[round(cores[node] * 1000 * NODE_SCALE, 1) for node in NODES] for cores in used]
    first, last = course.readings[0], course.readings[-1]
    answered = sorted(1000 * each.latency for each in course.load.samples if each.outcome is RequestOutcome.OK)
    number = len(course.load.samples)
    machine = machine_between(first, last, _CORES, course.load, course.delay_ms)
    cpu = sum(cores_used(first, last).values()) * (last.at - first.at)
    return RealRun(
        scenario=scenario.name,
        arm=arm,
        seed=repeat,
        imbalance=round(imbalance_of(trace), 3),
        node_mean=round(fmean(value for nodes in trace for value in nodes), 2),
        moves=len(course.moves),
        returns=count_returns(course.moves),
        availability=round(100 * len(answered) / number, 4),
        p95_ms=round(percentile(answered, 0.95), 1) if answered else 0.0,
        restarts=course.restarts,
        trace=trace,
        requests=number,
        request_ms=round(1000 * cpu / number, 3),
        outside_idle=round(machine.outside_idle, 3),
        late_ms=round(machine.late_ms, 2),
        unsent=round(machine.unsent, 5),
        delay_ms=None if machine.delay_ms is None else round(machine.delay_ms, 2),
        saturated=saturated(machine),
        at=datetime.now(UTC).isoformat(timespec="seconds"),
    )
