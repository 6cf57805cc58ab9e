"""Runs steps of the experiment in simulated time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from loadtests.experiments.stable.apps import NAMESPACE, REQUESTS, expected_placement
from loadtests.experiments.stable.design import Design
from loadtests.experiments.stable.driver import Collect, Observation, SessionSpec
from loadtests.experiments.stable.measurement import ControllerCounter
from loadtests.simulation.clock import VirtualClock
from loadtests.simulation.cluster import SimulatedCluster, SimulationSpec
from loadtests.simulation.controller import SimulatedController
from loadtests.simulation.pod import CALIBRATED, Parameters
from loadtests.simulation.records import WatchedCluster, evicting
from loadtests.workloads.placement import App, Placement
from loadtests.workloads.samples import RequestOutcome, RequestSample
from storage.store import Store

START_SECONDS = 8.0
"""Of quiet after all pods are bound: they are Ready and measured before the load comes."""


@dataclass(frozen=True, slots=True)
class SimulatedDriver:
    design: Design
    store: Store
    parameters: Parameters = CALIBRATED

    @property
    def world(self) -> str:
        return "simulated"

    @property
    def versions(self) -> Mapping[str, str]:
        return {"model": str(self.parameters)}

    async def default_placement(self, seed: int) -> Placement:
        """By the embedded imitation of kube-scheduler's scores."""
        return expected_placement(self.design, seed)

    async def capacity(self, apps: tuple[App, ...]) -> float:
        per_round = sum(self.parameters.request_ms(app.work_ms) for app in apps) / 1000
        return self.design.cores / per_round

    @asynccontextmanager
    async def session(self, spec: SessionSpec) -> AsyncIterator[SimulatedSession]:
        session = SimulatedSession(self, spec)
        await session.run_for(START_SECONDS)
        yield session


class SimulatedSession:
    def __init__(self, driver: SimulatedDriver, spec: SessionSpec) -> None:
        self._spec = spec
        self._clock = VirtualClock()
        self._cluster = SimulatedCluster(self._clock, _simulation(driver.design, spec), driver.parameters)
        self._controller: SimulatedController | None = None
        self._counter = ControllerCounter()
        if spec.settings is not None:
            window = max(driver.parameters.usage_seconds, spec.settings.metrics.metrics_api.interval)
            watched = WatchedCluster(self._cluster)
            self._controller = SimulatedController(watched, evicting(spec.settings), driver.store, window)
            self._controller.listen(self._counter.count)
        self._settled = spec.placement

    async def placement(self) -> Placement:
        return self._cluster.placement()

    async def step(self, rate: float, seconds: float) -> Collect:
        """As Vegeta: the targets in turn, evenly spaced."""
        began, used, restarts = self._clock.now(), self._cluster.used(), self._cluster.restarts
        by_app = self._cluster.used_by_apps()
        samples: list[RequestSample] = []
        number = self._schedule(rate, seconds, samples)
        await self.run_for(seconds)
        after, by_app_after = self._cluster.used(), self._cluster.used_by_apps()
        counts = self._counter.take()
        observation = Observation(
            samples=samples,
            began=began,
            rematches=counts.rematches,
            moves=counts.moves,
            left_out=sorted(counts.left_out),
            without_node=self._cluster.without_node(),
            restarts=self._cluster.restarts - restarts,
            cpu={name: (after[name] - used[name]) / seconds for name in after},
            memory=self._cluster.memory_by_nodes(),
            app_cpu={name: (by_app_after[name] - by_app[name]) / seconds for name in by_app},
            app_memory=self._cluster.memory_by_apps(),
            settled=self._settled,
        )

        async def collect() -> Observation:
            if len(samples) < number:
                await self.run_for(self._spec.pace.timeout)
            return replace(observation, spans=self._counter.spans())

        return collect

    async def run_for(self, seconds: float) -> None:
        until = self._clock.time + seconds
        while self._clock.step(until):
            if self._controller is not None and self._controller.may_be_due:
                await self._controller.step_if_due()
                if not self._controller.busy and self._cluster.without_node() == 0:
                    self._settled = self._cluster.placement()

    def _schedule(self, rate: float, seconds: float, samples: list[RequestSample]) -> int:
        apps = [app.name for app in self._spec.apps]
        total = rate * len(apps)
        for number in range(int(seconds * total)):
            app, at = apps[number % len(apps)], number / total
            self._clock.after(at, _Sending(self._cluster, app, at, self._spec.pace.timeout, samples))
        return int(seconds * total)


def _simulation(design: Design, spec: SessionSpec) -> SimulationSpec:
    return SimulationSpec(
        design.nodes, spec.apps, spec.placement, NAMESPACE, REQUESTS, probe_period=float(spec.pace.probe_period)
    )


@dataclass(frozen=True, slots=True)
class _Sending:
    cluster: SimulatedCluster
    app: str
    at: float
    timeout: float
    samples: list[RequestSample]

    def __call__(self) -> None:
        sample = RequestSample(self.app, self.at, self.timeout, RequestOutcome.TIMEOUT)
        self.cluster.request(self.app, sample, self.timeout, self.samples)
