"""Asks the metric sources in turn and writes what they told into the state: Prometheus first, then metrics.k8s.io."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import cast

import structlog

from reactor.clock import Clock
from reactor.cluster.kinds import Kind
from reactor.cluster.reads import ClusterReader
from reactor.cluster.records import NodeUsageSample, Pod, PodUsageSample
from reactor.errors import MetricsError
from reactor.planning.network import asked_of_prometheus
from reactor.record.metrics import Instruments
from reactor.settings.model import Settings
from reactor.signals.measurements import MetricsSource
from reactor.signals.metrics_api import MetricsApiSource
from reactor.signals.prometheus import PrometheusSource
from reactor.state.live_state import State
from reactor.work_queue import PIECE
from storage.rows import SampleRow
from storage.store import Store

log = structlog.get_logger(__name__)

WHEN_OFF = 2.0
"""How soon a source that was just switched on in the settings is noticed."""


@dataclass(frozen=True, slots=True)
class ServiceLevel:
    """What users see of the services, as Prometheus tells it; None where it was not asked or did not say."""

    availability: float | None = None
    latency_p95: float | None = None


class Measuring:
    def __init__(
        self,
        state: State,
        reader: ClusterReader,
        store: Store,
        settings: Callable[[], Settings],
        clock: Clock,
        instruments: Instruments,
    ) -> None:
        self._state = state
        self._store = store
        self._settings = settings
        self._clock = clock
        self._instruments = instruments
        self._prometheus = PrometheusSource()
        self._metrics_api = MetricsApiSource(reader, clock, state.yield_to_cycle)
        self.problems: dict[MetricsSource, str] = {}
        """What is wrong with a source now, for people."""
        self.service_level = ServiceLevel()

    async def run(self) -> None:
        await self._state.until_synced()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._follow_prometheus())
            tasks.create_task(self._follow_metrics_api())

    async def once(self) -> None:
        """One round of every source: for commands that look once."""
        settings = self._settings()
        if settings.metrics.prometheus.url:
            await self._round_of_prometheus(settings)
        if settings.metrics.metrics_api.enabled:
            await self._round_of_metrics_api(settings)

    async def _follow_prometheus(self) -> None:
        while True:
            settings = self._settings()
            asked = bool(settings.metrics.prometheus.url)
            if asked:
                await self._round_of_prometheus(settings)
            else:
                self.service_level = ServiceLevel()
                self.problems.pop(MetricsSource.PROMETHEUS, None)
            await self._clock.sleep(settings.metrics.prometheus.interval if asked else WHEN_OFF)

    async def _follow_metrics_api(self) -> None:
        while True:
            settings = self._settings()
            asked = settings.metrics.metrics_api.enabled
            if asked:
                await self._round_of_metrics_api(settings)
            else:
                self.problems.pop(MetricsSource.METRICS_API, None)
            await self._clock.sleep(settings.metrics.metrics_api.interval if asked else WHEN_OFF)

    async def _round_of_prometheus(self, settings: Settings) -> None:
        pods = (cast(Pod, pod).namespace for pod in self._state.mirror.records(Kind.PODS).values())
        told = await self._prometheus.read(asked_of_prometheus(settings), Counter(pods))
        now = self._clock.now()
        self._state.count(told.probes)
        self._state.usage.record_network(told.network, told.links, now)
        self._state.usage.record_throttling(told.throttled, now)
        self.service_level = ServiceLevel(told.availability, told.latency_p95)
        strangers = await self._write(told.pods, told.nodes, MetricsSource.PROMETHEUS, told.cpu_window)
        self._judge(MetricsSource.PROMETHEUS, (*told.problems, *strangers))

    async def _round_of_metrics_api(self, settings: Settings) -> None:
        told = await self._metrics_api.read(settings.metrics.metrics_api.timeout)
        if told.absent and not told.problems:
            return
        strangers = await self._write(told.pods, told.nodes, MetricsSource.METRICS_API)
        self._judge(MetricsSource.METRICS_API, (*told.problems, *strangers))

    async def _write(
        self,
        pods: Sequence[PodUsageSample],
        nodes: Sequence[NodeUsageSample],
        source: MetricsSource,
        cpu_window: float = 0.0,
    ) -> tuple[MetricsError, ...]:
        """What is wrong with the names of the nodes, if none of them is one of ours."""
        now = self._clock.now()
        metrics = self._settings().metrics
        self._state.usage.configure(metrics.freshness, metrics.peak_window)
        self._state.usage.record_pods(pods, source, now, cpu_window=cpu_window)
        unknown = self._state.usage.record_nodes(nodes, source, now)
        self._state.measured()
        await self._state.yield_to_cycle()
        self._state.usage.estimate()
        await self._keep(pods, nodes, source)
        if not unknown or any(node.node not in unknown for node in nodes):
            return ()
        return (MetricsError(f"measures no node of this cluster; it tells of {min(unknown)} and the like"),)

    async def _keep(
        self, pods: Sequence[PodUsageSample], nodes: Sequence[NodeUsageSample], source: MetricsSource
    ) -> None:
        """In the store, in pieces; of pods that are known."""
        self._store.add_samples(
            *(SampleRow(node.at, "node", node.node, node.cpu, node.memory, source) for node in nodes)
        )
        for begin in range(0, len(pods), PIECE):
            if begin:
                await self._state.yield_to_cycle()
            self._store.add_samples(*self._rows(pods[begin : begin + PIECE], source))

    def _rows(self, pods: Sequence[PodUsageSample], source: MetricsSource) -> Iterator[SampleRow]:
        for sample in pods:
            pod = self._state.mirror.pod_named(sample.namespace, sample.pod)
            if pod is not None:
                yield SampleRow(sample.at, "pod", pod.uid, sample.cpu, sample.memory, source)

    def _judge(self, source: MetricsSource, problems: tuple[MetricsError, ...]) -> None:
        """Said once when it changes; the metric counts every time."""
        self._instruments.source_up.labels(source).set(0 if problems else 1)
        for _ in problems:
            self._instruments.source_errors.labels(source).inc()
        text = "; ".join(str(problem) for problem in problems)
        if text != self.problems.get(source, ""):
            if text:
                log.warning("metrics source", source=source, problem=text)
            else:
                log.info("metrics source works", source=source)
        self.problems[source] = text
