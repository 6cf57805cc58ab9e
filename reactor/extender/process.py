"""`rematch extender`: an extender without a controller. It watches nodes, pods, hints and settings, and asks Prometheus
for network rates only."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import cast

import structlog

from predictors.peaks import SigmaOrPercentile
from reactor.background.active_settings import ActiveSettings
from reactor.clock import Clock, SystemClock
from reactor.cluster.connection import KubernetesConnection, open_connection, own_namespace
from reactor.cluster.extender_sign import EVERY, ExtenderSign
from reactor.cluster.hints import HintReader
from reactor.cluster.kinds import Kind, ObjectName
from reactor.cluster.mirror import ClusterMirror
from reactor.cluster.reads import ClusterReader
from reactor.cluster.records import ConfigMap, Node, Pod, Record
from reactor.cluster.watch import ClusterWatch, WatchTiming
from reactor.errors import ClusterError
from reactor.execution.leader import new_identity
from reactor.extender.state import ExtenderState
from reactor.record.failures import Failures, problems
from reactor.record.metrics import Instruments
from reactor.record.recorder import WatchRecorder
from reactor.settings.model import Prometheus, Queries
from reactor.settings.source import watch_file
from reactor.signals.prometheus import PrometheusAccess, PrometheusSource
from reactor.signals.usage import UsageHistory
from reactor.web.view import Health

log = structlog.get_logger(__name__)

KINDS = (Kind.NODES, Kind.PODS)
_USED = ("pod_network", "node_network", "node_bandwidth")
_SWITCHED_OFF = 2.0


@dataclass(frozen=True, slots=True)
class ExtenderOptions:
    kubeconfig: str | None = None
    context: str | None = None
    settings_file: Path | None = None
    config_map: ObjectName | None = None
    namespace: str = ""
    prometheus: PrometheusAccess = field(default_factory=PrometheusAccess)


class SignOfLife:
    """Renews the Lease that says that kube-scheduler has an extender. An extender without this right answers all the
    same; only `placement.steering: extender` waits."""

    def __init__(self, sign: ExtenderSign, state: ExtenderState, clock: Clock) -> None:
        self._sign, self._state, self._clock = sign, state, clock
        self._identity = new_identity()

    async def run(self) -> None:
        told = ""
        while True:
            try:
                await self._sign.renew(self._identity, self._state.asked)
                told = ""
            except ClusterError as error:
                if str(error) != told:
                    log.warning("the Lease of the extender is not renewed", error=str(error))
                told = str(error)
            await self._clock.sleep(EVERY)


class ExtenderProcess:
    """Implements `HealthSource`."""

    def __init__(self, options: ExtenderOptions, connection: KubernetesConnection, clock: Clock) -> None:
        self._options = options
        self._clock = clock
        self._failures = Failures(clock, Instruments())
        self._settings = ActiveSettings(options.settings_file, None, clock)
        metrics = self._settings.get().metrics
        self._usage = UsageHistory(metrics.freshness, metrics.peak_window, SigmaOrPercentile())
        self._prometheus = PrometheusSource(options.prometheus)
        self.problem = "Prometheus was not asked yet"
        self._hints = HintReader(connection, clock)
        self.state = ExtenderState(self._usage, lambda: self._hints.hints, clock)
        reader = ClusterReader(connection, options.config_map, KINDS)
        self.mirror = ClusterMirror(reader.kinds, self._changed)
        self._watch = ClusterWatch(reader, self.mirror, WatchRecorder(Instruments()), WatchTiming(clock))
        namespace = own_namespace(options.config_map, options.namespace)
        self._sign = SignOfLife(ExtenderSign(connection, namespace, clock), self.state, clock)

    def live(self) -> Health:
        return Health(ok=True)

    def ready(self) -> Health:
        """With an unreachable Prometheus it has no say, but hints are still followed."""
        missing = [f"{kind.value} are not listed yet" for kind in self.mirror.missing]
        return Health(not missing, (*missing, *problems(self._failures.current)))

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            self._keep_running(tasks, "watch", self._watch.run)
            self._keep_running(tasks, "hints", self._hints.run)
            self._keep_running(tasks, "measurements", self._measure)
            self._keep_running(tasks, "sign of life", self._sign.run)
            if self._options.settings_file is not None:
                file = partial(watch_file, self._options.settings_file, self._settings.source, self._clock)
                self._keep_running(tasks, "settings", file)

    def _keep_running(self, tasks: asyncio.TaskGroup, name: str, work: Callable[[], Awaitable[None]]) -> None:
        tasks.create_task(self._failures.keep_running(name, work), name=name)

    async def _measure(self) -> None:
        await self.mirror.until_synced()
        while True:
            metrics = self._settings.get().metrics
            self._usage.configure(metrics.freshness, metrics.peak_window)
            if not metrics.prometheus.url:
                self._report("metrics.prometheus.url is not set: no node can be judged")
                await self._clock.sleep(_SWITCHED_OFF)
                continue
            pods = (cast(Pod, pod).namespace for pod in self.mirror.records(Kind.PODS).values())
            reading = self._prometheus.read(_network_only(metrics.prometheus), Counter(pods))
            # In a thread: parsing many thousand samples would hold up the answers.
            found = await asyncio.to_thread(asyncio.run, reading)
            await self.state.record(found)
            self._report("; ".join(map(str, found.problems)))
            await self._clock.sleep(metrics.prometheus.interval)

    def _report(self, problem: str) -> None:
        if problem != self.problem:
            self.problem = problem
            if problem:
                log.warning("network rates", problem=problem)
            else:
                log.info("network rates are read")

    def _changed(self, kind: Kind, old: Record | None, new: Record | None) -> None:
        if kind is Kind.CONFIG_MAPS:
            self._settings.config_map_changed(cast("ConfigMap | None", new))
        elif kind is Kind.PODS and new is not None:
            self._usage.observe_pod(cast(Pod, new))
        elif kind is Kind.NODES and new is not None:
            node = cast(Node, new)
            self._usage.observe_node(node.name, node.addresses)
        self.state.changed(kind, old, new)
        if kind is Kind.PODS and new is None and old is not None:
            self._usage.forget_pod(cast(Pod, old), self._clock.now())
        elif kind is Kind.NODES and new is None and old is not None:
            self._usage.forget_node(cast(Node, old).name)


def _network_only(settings: Prometheus) -> Prometheus:
    unused = dict.fromkeys(set(Queries.model_fields) - set(_USED), "")
    return settings.model_copy(update={"queries": settings.queries.model_copy(update=unused)})


@asynccontextmanager
async def open_extender(options: ExtenderOptions, clock: Clock | None = None) -> AsyncIterator[ExtenderProcess]:
    async with AsyncExitStack() as stack:
        connection = await open_connection(options.kubeconfig, options.context)
        stack.push_async_callback(connection.close)
        yield ExtenderProcess(options, connection, clock or SystemClock())
