"""Fills the usage history from Prometheus at the first start, and after a gap: whole hours of which nothing is known.

Samples five minutes apart are recorded as minutes, and rolled up like these. Only pods that still exist are recorded:
of others it is not known which workload they belonged to.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import cast

import numpy as np
import structlog
from numpy.typing import NDArray

from reactor.background.minute_of_state import by_workload
from reactor.background.usage_recording import UsageRecording
from reactor.clock import Clock
from reactor.cluster.kinds import Kind
from reactor.cluster.records import Pod
from reactor.history.codes import Floats
from reactor.history.levels import FIVE_MINUTES, HOURS, MINUTES, Axis
from reactor.history.minute import Measured, Minute
from reactor.history.series import SeriesIndex
from reactor.settings.model import Settings
from reactor.signals.prometheus import PrometheusRound, PrometheusSource, Span
from reactor.signals.workloads import workload_key
from reactor.state.live_state import State
from storage import StorageError
from storage.rows import ChunkRow, SeriesKind
from storage.store import Store

log = structlog.get_logger(__name__)

Values = Mapping[Axis, Mapping[str, float | None]]
"""By axis and name."""


class UsageBackfill:
    def __init__(
        self,
        state: State,
        store: Store,
        prometheus: PrometheusSource,
        recording: UsageRecording,
        settings: Callable[[], Settings],
        clock: Clock,
    ) -> None:
        self._state = state
        self._store = store
        self._prometheus = prometheus
        self._recording = recording
        self._settings = settings
        self._clock = clock
        self._started = clock.now()

    async def run(self) -> None:
        """Once. Without Prometheus, or when it does not answer, the history begins now."""
        await self._state.until_synced()
        if not self._settings().metrics.prometheus.url:
            return
        try:
            hours = await self._unknown_hours()
            filled = 0
            for hour in hours:
                if not await self._fill(hour):
                    break
                await self._recording.roll_up()
                filled += 1
            if filled:
                log.info("the usage history was filled from Prometheus", hours=filled)
                await self._recording.restore(self._store)
        except StorageError as error:
            log.warning("the usage history is not filled from Prometheus", error=str(error))

    async def _unknown_hours(self) -> Sequence[int]:
        """Of the window, up to the hour in which the process started. Newest first: they count the most, and an older
        Prometheus has none of the others."""
        until = int(self._started // HOURS.step) * HOURS.step
        since = until - int(self._settings().history.window)
        known = {start for start, _ in await self._store.chunk_keys(FIVE_MINUTES.step, since)}
        known |= {FIVE_MINUTES.start_of(start) for start, _ in await self._store.chunk_keys(MINUTES.step, since)}
        return [hour for hour in range(until - HOURS.step, since - 1, -HOURS.step) if hour not in known]

    async def _fill(self, hour: int) -> bool:
        """False when Prometheus has nothing of this hour."""
        pods = [cast(Pod, pod) for pod in self._state.mirror.records(Kind.PODS).values()]
        span = Span(hour, hour + HOURS.step - FIVE_MINUTES.step, FIVE_MINUTES.step)
        prometheus = self._settings().metrics.prometheus
        found = await self._prometheus.read_range(prometheus, Counter(pod.namespace for pod in pods), span)
        for problem in found.problems[:1]:
            log.warning("the usage history is not filled from Prometheus", error=str(problem))
        series = await self._recording.known_series()
        if not found.rounds or series is None:
            return False
        named = {pod.key: pod for pod in pods if pod.node is not None}
        for at, past in found.rounds.items():
            minutes = list(self._minutes(MINUTES.start_of(at), past, named, series))
            self._store.add_series(*series.take_changed())
            for minute in minutes:
                self._store.add_chunks(*await asyncio.to_thread(_rows, minute))
            await self._state.yield_to_cycle()
        return True

    def _minutes(
        self, start: int, past: PrometheusRound, named: Mapping[str, Pod], series: SeriesIndex
    ) -> Iterator[Minute]:
        values = _of_pods(past)
        known = {name for by_name in values.values() for name in by_name}
        pods = [named[name] for name in sorted(known & named.keys()) if named[name].created <= start]
        axes = _axes(values, [pod.key for pod in pods])
        names, replicas = np.unique(np.array([workload_key(pod) for pod in pods], dtype=object), return_inverse=True)
        workloads = {axis: by_workload(each, replicas, len(names)) for axis, each in axes.items()}
        nodes = self._of_nodes(past)
        on = sorted({name for by_name in nodes.values() for name in by_name})
        yield _minute(start, series, "pod", [pod.key for pod in pods], axes)
        yield _minute(start, series, "workload", names.tolist(), workloads)
        yield _minute(start, series, "node", on, _axes(nodes, on))

    def _of_nodes(self, past: PrometheusRound) -> Values:
        names = {sample.node: self._state.usage.node_called(sample.node) for sample in past.nodes}
        known = [(name, sample) for sample in past.nodes if (name := names[sample.node]) is not None]
        return {
            Axis.CPU: {name: sample.cpu for name, sample in known},
            Axis.MEMORY: {name: sample.memory for name, sample in known},
        }


def _of_pods(past: PrometheusRound) -> Values:
    return {
        Axis.CPU: {f"{sample.namespace}/{sample.pod}": sample.cpu for sample in past.pods},
        Axis.MEMORY: {f"{sample.namespace}/{sample.pod}": sample.memory for sample in past.pods},
        Axis.NETWORK: {f"{sample.namespace}/{sample.pod}": sample.rate for sample in past.network},
        Axis.DISK: {f"{sample.namespace}/{sample.pod}": sample.rate for sample in past.disk},
        Axis.THROTTLED: {f"{sample.namespace}/{sample.pod}": sample.share for sample in past.throttled},
    }


def _axes(values: Values, names: Sequence[str]) -> dict[Axis, Measured]:
    return {axis: Measured.once(_sane([by_name.get(name) for name in names])) for axis, by_name in values.items()}


def _sane(values: Sequence[float | None]) -> Floats:
    """NaN for what is missing, negative or infinite."""
    numbers = np.array([np.nan if value is None else value for value in values], np.float64)
    return np.where((numbers >= 0) & (numbers < np.inf), numbers, np.nan)


def _minute(
    start: int, series: SeriesIndex, kind: SeriesKind, names: Sequence[str], axes: Mapping[Axis, Measured]
) -> Minute:
    nowhere: NDArray[np.uint32] = np.zeros(len(names), np.uint32)
    return Minute(start, series.assign(kind, names, start), nowhere, axes)


def _rows(minute: Minute) -> list[ChunkRow]:
    return list(minute.rows())
