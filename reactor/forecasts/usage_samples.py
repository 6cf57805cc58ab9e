"""Reads the usage history into arrays: at the start what was rolled up, then the minutes of each step."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from reactor.forecasts.samples import Rows, Samples
from reactor.history.chunk import Chunk
from reactor.history.codes import decode
from reactor.history.levels import FIVE_MINUTES, MINUTES, Axis
from reactor.history.rolling import read_chunk
from reactor.history.rollup import joined, merged
from storage.rows import ChunkRow, SeriesKind, SeriesRow
from storage.store import Store

NEEDED = (Axis.CPU, Axis.MEMORY)
OF_WORKLOADS = (*NEEDED, Axis.NETWORK, Axis.DISK)
MOST_COLUMNS = 8 * 288
"""Eight days: the same time a week ago, and a day more."""
FEWEST_COLUMNS = 300
"""A day and an hour."""
MOST_BYTES = 128 * 2**20
"""Of all samples; a larger cluster is forecast from fewer days."""
THROTTLED = 0.1
"""From this share of throttled periods on, demand was cut by the CPU limit."""
FULL = 0.9
"""From this share of its CPU on, a node may have cut the demand of its pods."""

Capacities = Callable[[], Mapping[str, float]]
"""Cores by node."""


class UsageSamples:
    def __init__(self, store: Store, capacities: Capacities) -> None:
        self._store = store
        self._capacities = capacities
        self.until = 0
        """The end of the last step that is here."""
        self.first = 0
        """When the oldest step begins that is here and has a sample."""
        self._make(MOST_COLUMNS)

    def _make(self, columns: int) -> None:
        self.pods = Samples(NEEDED, columns)
        self.workloads = Samples(OF_WORKLOADS, columns)
        self.nodes = Samples((Axis.CPU,), columns)
        self._minutes = np.full(columns, FIVE_MINUTES.step / MINUTES.step)
        """Recorded in each step of the hour that is being read: fewer where the controller was started or stopped."""
        self._by_kind: dict[SeriesKind, Samples] = {"pod": self.pods, "workload": self.workloads, "node": self.nodes}

    async def read_until(self, until: int) -> None:
        """All complete steps before `until`. What is not rolled up yet is merged from its minutes."""
        if not self.until:
            await self._choose_columns(until)
            self.until = until - self.pods.columns * FIVE_MINUTES.step
        since = self.until
        steps = (until - since) // FIVE_MINUTES.step
        if steps <= 0:
            return
        for samples in self._by_kind.values():
            await asyncio.to_thread(samples.shift, steps)
        self.until = until
        series = {row.id: row for row in await self._store.series()}
        for hour in range(FIVE_MINUTES.start_of(since), until, FIVE_MINUTES.chunk):
            rows = await self._store.chunks(FIVE_MINUTES.step, hour, hour + 1)
            rolled = {row.block for row in rows}
            minutes = await self._store.chunks(MINUTES.step, max(hour, since), min(hour + FIVE_MINUTES.chunk, until))
            await asyncio.to_thread(self._put_hour, rows, minutes, rolled, series, max(hour, since))
        self.first = self.first or self._first()

    async def _choose_columns(self, until: int) -> None:
        """As many days as fit into the memory that is meant for this."""
        seen = until - 86400
        rows = [row for row in await self._store.series() if row.seen >= seen]
        cells = sum(len(OF_WORKLOADS) if row.kind == "workload" else len(NEEDED) for row in rows)
        self._make(int(np.clip(MOST_BYTES / 4 // max(cells, 1), FEWEST_COLUMNS, MOST_COLUMNS)))

    def _put_hour(
        self,
        rows: Sequence[ChunkRow],
        minutes: Sequence[ChunkRow],
        rolled: set[int],
        series: Mapping[int, SeriesRow],
        begin: int,
    ) -> None:
        """Nodes first: whether a node was full says whether its pods were cut."""
        chunks = [(row.start, chunk) for row in rows if (chunk := read_chunk(row)) is not None]
        self._minutes[:] = FIVE_MINUTES.step / MINUTES.step
        chunks += _merged([row for row in minutes if row.block not in rolled])
        for of_nodes in (True, False):
            for start, chunk in chunks:
                self._put(start, chunk, series, begin, of_nodes=of_nodes)

    def _put(self, start: int, chunk: Chunk, series: Mapping[int, SeriesRow], begin: int, *, of_nodes: bool) -> None:
        known = [series.get(each) for each in chunk.ids.tolist()]
        first = (start - self.until) // FIVE_MINUTES.step + self.pods.columns
        left_out = max(0, (begin - start) // FIVE_MINUTES.step, -first)
        steps = min(chunk.nodes.shape[1], self.pods.columns - first)
        if left_out >= steps:
            return
        inside, columns = slice(left_out, steps), slice(first + left_out, first + steps)
        kinds: tuple[SeriesKind, ...] = ("node",) if of_nodes else ("workload", "pod")
        for kind in kinds:
            at = np.array([row for row, each in enumerate(known) if each is not None and each.kind == kind], np.intp)
            if not len(at):
                continue
            samples = self._by_kind[kind]
            if kind == "node" and Axis.READY in chunk.axes:
                recorded = chunk.axes[Axis.READY].counts[at, inside].max(axis=0)
                self._minutes[columns] = np.where(recorded > 0, recorded, self._minutes[columns])
            rows = samples.rows_of([each.name for each in known if each is not None and each.kind == kind])
            replicas = _replicas(chunk, at, inside, self._minutes[columns]) if kind == "workload" else 1.0
            for axis in samples.values:
                if axis in chunk.axes:
                    samples.put(axis, rows, columns, decode(chunk.axes[axis].means[at, inside]) * replicas)
            if kind == "pod":
                samples.cut[rows, columns] = self._cut(chunk, at, inside, columns, series)

    def _cut(
        self, chunk: Chunk, at: Rows, inside: slice, columns: slice, series: Mapping[int, SeriesRow]
    ) -> NDArray[np.bool_]:
        found = np.zeros((len(at), columns.stop - columns.start), np.bool_)
        if Axis.THROTTLED in chunk.axes:
            found |= decode(chunk.axes[Axis.THROTTLED].means[at, inside]) >= THROTTLED
        ids = chunk.nodes[at, inside]
        capacities = self._capacities()
        for node in np.unique(ids[ids > 0]).tolist():
            row = series.get(node)
            cores = capacities.get(row.name) if row is not None else None
            place = self.nodes.rows.get(row.name) if row is not None else None
            if cores and place is not None:
                full = self.nodes.values[Axis.CPU][place, columns] >= FULL * cores
                found |= (ids == node) & full
        return found

    def _first(self) -> int:
        """Of the first step with a sample."""
        heard = np.isfinite(self.workloads.values[Axis.CPU]).any(axis=0)
        columns = np.flatnonzero(heard)
        back = self.pods.columns - int(columns[0]) if len(columns) else 0
        return self.until - back * FIVE_MINUTES.step if back else 0


def _replicas(chunk: Chunk, at: Rows, inside: slice, minutes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Readiness is recorded once per minute and pod: its count is the number of pods times the recorded minutes."""
    ready = chunk.axes.get(Axis.READY)
    if ready is None:
        return np.ones((len(at), 1))
    return np.maximum(ready.counts[at, inside] / minutes, 1.0)


def _merged(rows: Sequence[ChunkRow]) -> list[tuple[int, Chunk]]:
    """Minutes as steps of five, by block."""
    by_block: defaultdict[tuple[int, int], dict[int, Chunk]] = defaultdict(dict)
    minutes = FIVE_MINUTES.step // MINUTES.step
    for row in rows:
        chunk = read_chunk(row)
        if chunk is not None:
            start = row.start // FIVE_MINUTES.step * FIVE_MINUTES.step
            by_block[start, row.block][(row.start - start) // MINUTES.step] = chunk
    return [(start, merged(joined(steps, minutes), minutes)) for (start, _), steps in sorted(by_block.items())]
