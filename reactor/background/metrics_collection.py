"""Reads Prometheus, metrics.k8s.io and users' own metrics at their intervals and writes the samples into the state."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import cast

import structlog

from reactor.clock import Clock
from reactor.cluster.kinds import Kind
from reactor.cluster.reads import ClusterReader
from reactor.cluster.records import NodeUsageSample, Pod, PodUsageSample
from reactor.errors import MetricsError
from reactor.record.metrics import Instruments
from reactor.settings.model import Metrics, Settings
from reactor.signals.measurements import MetricsSource
from reactor.signals.metrics_api import MetricsApiSource
from reactor.signals.prometheus import PrometheusAccess, PrometheusSource
from reactor.signals.sources import Reading, SourcePod, SourceReader
from reactor.state.live_state import State

log = structlog.get_logger(__name__)

SWITCHED_OFF_INTERVAL = 2.0
"""Seconds after which it is checked whether a source was switched on in the settings."""


@dataclass(frozen=True, slots=True)
class ServiceLevel:
    """Service level from Prometheus; None where there is no query or no result."""

    availability: float | None = None
    latency_p95: float | None = None


class MetricsCollector:
    def __init__(
        self,
        state: State,
        reader: ClusterReader,
        settings: Callable[[], Settings],
        clock: Clock,
        instruments: Instruments,
        prometheus: PrometheusAccess | None = None,
        measured: Iterable[Callable[[], Awaitable[None]]] = (),
    ) -> None:
        """`measured` are called after each round."""
        self.measured = list(measured)
        self._state = state
        self._settings = settings
        self._clock = clock
        self._instruments = instruments
        self._prometheus = PrometheusSource(prometheus)
        self._metrics_api = MetricsApiSource(reader, clock, state.yield_to_cycle)
        self._sources = SourceReader()
        self.problems: dict[MetricsSource, str] = {}
        """The current problem of each source, as text."""
        self.service_level = ServiceLevel()

    async def run(self) -> None:
        await self._state.until_synced()
        async with asyncio.TaskGroup() as tasks:
            for read in (self._read_prometheus, self._read_metrics_api, self._read_sources):
                tasks.create_task(self._poll(read))

    async def once(self) -> None:
        """One round of every source, for commands that run once."""
        await self._read_prometheus(self._settings().metrics)
        await self._read_metrics_api(self._settings().metrics)
        await self._read_sources(self._settings().metrics)

    async def _poll(self, read: Callable[[Metrics], Awaitable[float]]) -> None:
        while True:
            await self._clock.sleep(await read(self._settings().metrics))

    async def _read_prometheus(self, metrics: Metrics) -> float:
        """Returns the seconds until the next round."""
        if not metrics.prometheus.url:
            self.service_level = ServiceLevel()
            self.problems.pop(MetricsSource.PROMETHEUS, None)
            return SWITCHED_OFF_INTERVAL
        pods = (cast(Pod, pod).namespace for pod in self._state.mirror.records(Kind.PODS).values())
        found = await self._prometheus.read(metrics.prometheus, Counter(pods))
        now = self._clock.now()
        self._state.observe_counters(found.probes)
        self._state.usage.record_network(found.network, found.node_network, found.links, now)
        self._state.usage.record_disk(found.disk, found.node_disk, now)
        self._state.usage.record_throttling(found.throttled, now)
        self._state.usage.record_pressure(found.pressure, now)
        self.service_level = ServiceLevel(found.availability, found.latency_p95)
        unknown_nodes = await self._write(found.pods, found.nodes, MetricsSource.PROMETHEUS, found.cpu_window)
        self._report(MetricsSource.PROMETHEUS, (*found.problems, *unknown_nodes))
        return metrics.prometheus.interval

    async def _read_metrics_api(self, metrics: Metrics) -> float:
        """Returns the seconds until the next round."""
        if not metrics.metrics_api.enabled:
            self.problems.pop(MetricsSource.METRICS_API, None)
            return SWITCHED_OFF_INTERVAL
        found = await self._metrics_api.read(metrics.metrics_api.timeout)
        if not found.absent or found.problems:
            unknown_nodes = await self._write(found.pods, found.nodes, MetricsSource.METRICS_API)
            self._report(MetricsSource.METRICS_API, (*found.problems, *unknown_nodes))
        return metrics.metrics_api.interval

    async def _read_sources(self, metrics: Metrics) -> float:
        """Returns the seconds until the next round. What a source said last stays until it is not fresh any more."""
        names = metrics.sources.names
        for name in self._state.sources.keys() - set(names):
            del self._state.sources[name]
        if not names:
            self.problems.pop(MetricsSource.PLUGINS, None)
            return SWITCHED_OFF_INTERVAL
        cluster = self._state.cluster()
        running = [pod for pod in cluster.pods.values() if pod.node is not None and not pod.finished]
        pods = [SourcePod(pod.namespace, pod.name, pod.uid, pod.node or "") for pod in running]
        readings, problems = await self._sources.read(names, pods, list(cluster.nodes), metrics.sources.timeout)
        now = self._clock.now()
        self._state.sources.update({name: Reading(now, reading) for name, reading in readings.items()})
        self._report(MetricsSource.PLUGINS, problems)
        return metrics.sources.interval

    async def _write(
        self,
        pods: Sequence[PodUsageSample],
        nodes: Sequence[NodeUsageSample],
        source: MetricsSource,
        cpu_window: float = 0.0,
    ) -> tuple[MetricsError, ...]:
        """An error when none of the nodes is one of this cluster."""
        now = self._clock.now()
        metrics = self._settings().metrics
        self._state.usage.configure(metrics.freshness, metrics.peak_window)
        self._state.usage.record_pods(pods, source, now, cpu_window=cpu_window)
        unknown = self._state.usage.record_nodes(nodes, source, now)
        self._state.usage_changed()
        await self._state.yield_to_cycle()
        self._state.usage.estimate()
        for listener in self.measured:
            await listener()
        if not unknown or any(node.node not in unknown for node in nodes):
            return ()
        return (MetricsError(f"measures no node of this cluster; it reports {min(unknown)} and the like"),)

    def _report(self, source: MetricsSource, problems: tuple[MetricsError, ...]) -> None:
        """Logged when it changes; the metric counts every time."""
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
