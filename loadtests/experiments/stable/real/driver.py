"""Runs steps of the experiment on real nodes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

from loadtests.experiments.stable.apps import NAMESPACE, REQUESTS, app_names
from loadtests.experiments.stable.design import Design, Pace, Phase
from loadtests.experiments.stable.driver import Collect, Observation, SessionSpec
from loadtests.experiments.stable.measurement import ControllerCounter, app_of_pod
from loadtests.experiments.stable.real.cpu_delay import CpuDelayMonitor
from loadtests.experiments.stable.real.earlier_version import EarlierVersion
from loadtests.experiments.stable.real.machine import cores_used, machine_between, read_machine, seconds_per_round
from loadtests.experiments.stable.real.observed_moves import ObservedMoves
from loadtests.experiments.stable.real.workload import KUBE_SCHEDULER, PODS, REMATCH, ExperimentWorkload
from loadtests.experiments.stable.settings import settings_tree
from loadtests.nodes import KubeletPace, Lab, LabNodeSpec, LabOptions, real_nodes
from loadtests.nodes.apps import ITERATIONS_PER_MS, LabApp, ProbeTimes
from loadtests.nodes.client_network import client_network
from loadtests.nodes.live_controller import fresh_folder, live_controller
from loadtests.nodes.spec import LabError
from loadtests.tools import ensure
from loadtests.tools.catalogue import program
from loadtests.workloads.k6 import K6
from loadtests.workloads.load_tools import Load, LoadTool
from loadtests.workloads.placement import App, Placement
from loadtests.workloads.samples import RequestOutcome
from loadtests.workloads.vegeta import Vegeta
from reactor.app import LiveController
from reactor.clock import SystemClock
from reactor.execution.cycle_outcome import Outcome
from reactor.record.recorder import Listener
from reactor.state.snapshot import Snapshot

TOOLS = ("vegeta", "k6")
FROZEN = "nobody"
"""The scheduler name of pods that only the experiment binds."""
_CALIBRATION = (0.4, 10.0)
"""Share of the nominal capacity and seconds of the load that the CPU per request is measured with."""
_CALIBRATIONS = 5
_SCRAPE = 2.0
_TRIALS = 20
_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class RealDriver:
    design: Design
    lab: Lab
    workload: ExperimentWorkload
    tool: LoadTool
    urls: Mapping[str, str]
    cpu_delay: CpuDelayMonitor
    earlier: EarlierVersion | None = None

    @classmethod
    @asynccontextmanager
    async def open(cls, design: Design, tool: str) -> AsyncIterator[Self]:
        """The lab stands and is removed with the block."""
        found = await ensure([tool, "kube-proxy"])
        pace = KubeletPace(housekeeping=2.0 if design.pace.probe_period < 10 else 10.0)
        nodes = tuple(
            LabNodeSpec(node.name, round(node.cores * 1000), node.memory_bytes // _MIB) for node in design.nodes
        )
        async with AsyncExitStack() as stack:
            lab = await stack.enter_async_context(real_nodes(LabOptions(nodes, pace, scrape_interval=_SCRAPE)))
            client = await stack.enter_async_context(client_network(lab, found["kube-proxy"]))
            made = Vegeta if tool == "vegeta" else K6
            workload = ExperimentWorkload(lab.api)
            urls = await workload.make_services(app_names(design))
            cpu_delay = await stack.enter_async_context(CpuDelayMonitor.running())
            earlier = stack.enter_context(EarlierVersion.checked_out(design.against)) if design.against else None
            yield cls(design, lab, workload, made(found[tool], client.prefix), urls, cpu_delay, earlier)

    @property
    def world(self) -> str:
        return "real"

    @property
    def versions(self) -> Mapping[str, str]:
        named = ("kube-apiserver", "kubelet", "kube-scheduler", "kube-proxy", "etcd", self.tool.name)
        return {**{name: program(name).version for name in named}, "cgroups": f"v{self.lab.cgroup_version}"}

    async def default_placement(self, seed: int) -> Placement:
        """Asked of the real kube-scheduler, which breaks ties by chance; it sees requests, so any work will do."""
        del seed
        apps = tuple(App(name, 1.0) for name in app_names(self.design))
        await self.workload.remove()
        await self.workload.deploy(_lab_apps(apps, self.design.pace.probe_period), KUBE_SCHEDULER)
        placement = await self.workload.until_bound(len(apps))
        await self.workload.remove()
        return placement

    async def capacity(self, apps: tuple[App, ...]) -> float:
        """From the CPU that a round of requests, one to each app, really took, less what the pods use at rest."""
        nominal = self.design.cores / sum(app.work_ms / 1000 for app in apps)
        spec = SessionSpec(0, apps, await self.default_placement(0), self.design.pace, None)
        async with self.session(spec):
            for _ in range(_CALIBRATIONS):
                found = await self._calibrate(nominal)
                if found is not None and nominal / 2 < found < nominal * 2:
                    return found
        raise LabError("this machine is too busy: the CPU per request could not be measured, since requests failed")

    async def _calibrate(self, nominal: float) -> float | None:
        """None when requests failed: then the CPU that was used says nothing."""
        share, seconds = _CALIBRATION
        rest = read_machine(self.lab.nodes)
        await asyncio.sleep(seconds / 2)
        before = read_machine(self.lab.nodes)
        resting = sum(cores_used(rest, before).values())
        result = await self.tool.attack(self.load(share * nominal, seconds, self.design.pace.timeout))
        after = read_machine(self.lab.nodes)
        failed = sum(sample.outcome is not RequestOutcome.OK for sample in result.samples)
        if failed > 0.01 * len(result.samples):
            return None
        rounds = len(result.samples) / self.design.apps
        return (self.design.cores - resting) / seconds_per_round(before, after, resting, rounds)

    def load(self, rate: float, seconds: float, timeout: float) -> Load:
        return Load(self.urls, rate, seconds, timeout, self.lab.addresses.everything)

    @asynccontextmanager
    async def session(self, spec: SessionSpec) -> AsyncIterator[RealSession]:
        workload = self.workload
        await workload.remove()
        try:
            scheduler = REMATCH if spec.arm.phase is Phase.LIVE else FROZEN
            await workload.deploy(_lab_apps(spec.apps, spec.pace.probe_period), scheduler)
            await workload.bind(spec.placement)
            await workload.until_ready(len(spec.apps))
            async with AsyncExitStack() as stack:
                counter = await stack.enter_async_context(self._controlled(spec))
                await self._until_routed()
                session = RealSession(self, spec.pace, counter)
                stack.push_async_callback(session.close)
                yield session
        finally:
            await workload.remove()

    async def _until_routed(self) -> None:
        """kube-proxy learns of the new pods a moment after they are Ready."""
        trial = self.load(rate=1.0, seconds=1.0, timeout=1.0)
        for _ in range(_TRIALS):
            result = await self.tool.attack(trial)
            if all(sample.outcome is RequestOutcome.OK for sample in result.samples):
                return
        raise LabError(f"the apps were not reachable through their Services in {_TRIALS} trials")

    @asynccontextmanager
    async def _controlled(self, spec: SessionSpec) -> AsyncIterator[ControllerCounter | ObservedMoves]:
        """With the controller of the arm, if it has one."""
        if spec.settings is not None:
            counter = ControllerCounter()
            async with live_controller(self.lab, spec.settings, partial(_counting, counter)):
                yield counter
        elif spec.arm.revision:
            async with self._earlier_controller(spec) as observed:
                yield observed
        else:
            yield ControllerCounter()

    @asynccontextmanager
    async def _earlier_controller(self, spec: SessionSpec) -> AsyncIterator[ObservedMoves]:
        earlier, lab = self.earlier, self.lab
        assert earlier is not None
        folder = fresh_folder(lab)
        settings = settings_tree(spec.arm, spec.pace, earlier.defaults, lab.prometheus.url)
        observed = ObservedMoves(SystemClock())
        watching = asyncio.create_task(lab.api.follow(PODS, {}, observed.see))
        try:
            async with earlier.running(settings, lab.plane.kubeconfig, folder):
                yield observed
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)


class RealSession:
    def __init__(self, driver: RealDriver, pace: Pace, counter: ControllerCounter | ObservedMoves) -> None:
        self._driver, self._pace, self._counter = driver, pace, counter
        self._tasks: list[asyncio.Task[Any]] = []

    async def close(self) -> None:
        """Ends what still attacks."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def placement(self) -> Placement:
        return await self._driver.workload.placement()

    async def step(self, rate: float, seconds: float) -> Collect:
        driver, workload = self._driver, self._driver.workload
        restarts = await workload.restarts()
        driver.cpu_delay.take()
        before = read_machine(driver.lab.nodes)
        attack = asyncio.create_task(driver.tool.attack(driver.load(rate, seconds, self._pace.timeout)))
        self._tasks.append(attack)
        await asyncio.sleep(seconds)
        after, delay_ms = read_machine(driver.lab.nodes), driver.cpu_delay.take()
        now, counts, settled = await workload.restarts(), self._counter.take(), self._counter.settled
        without_node = asyncio.create_task(self._without_node())
        self._tasks.append(without_node)

        async def collect() -> Observation:
            result = await attack
            return Observation(
                samples=result.samples,
                began=result.began,
                rematches=counts.rematches,
                moves=counts.moves,
                spans=self._counter.spans(),
                settled=settled,
                left_out=sorted(counts.left_out),
                without_node=await without_node,
                restarts=sum(max(0, count - restarts.get(uid, 0)) for uid, count in now.items()),
                cpu=cores_used(before, after),
                machine=machine_between(before, after, driver.design.cores, result, delay_ms),
            )

        return collect

    async def _without_node(self) -> int:
        """A new replacement gets three seconds before it counts."""
        for _ in range(10):
            left = await self._driver.workload.without_node()
            if left == 0:
                return 0
            await asyncio.sleep(0.3)
        return left


def _lab_apps(apps: Iterable[App], probe_period: int) -> list[LabApp]:
    return [
        LabApp(
            app.name,
            cpu=REQUESTS["cpu"],
            memory=REQUESTS["memory"],
            environment={"ITERATIONS": str(round(app.work_ms * ITERATIONS_PER_MS)), "GOMAXPROCS": "1"},
            probe=ProbeTimes(period=probe_period),
        )
        for app in apps
    ]


def _counting(counter: ControllerCounter, live: LiveController) -> Listener:
    def listen(cycle: str, snapshot: Snapshot, outcome: Outcome) -> None:
        del cycle
        counter.count(outcome)
        pods = [pod for pod in snapshot.cluster.pods.values() if pod.namespace == NAMESPACE and pod.deleting is None]
        if not live.controller.executor.busy and all(pod.node is not None for pod in pods):
            counter.settled = {app_of_pod(pod.name): pod.node or "" for pod in pods}

    return listen
