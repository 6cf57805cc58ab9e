"""The usage of one pod, workload or node over time, for charts, commands and forecasts."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from reactor.history.chunk import Chunk, ChunkError, Columns
from reactor.history.codes import Floats, decode
from reactor.history.levels import FIVE_MINUTES, HOURS, MINUTES, Axis, Level
from reactor.history.rolling import damaged
from reactor.history.rollup import joined, merged
from storage.rows import ChunkRow, SeriesKind, SeriesRow
from storage.store import Store

MINUTES_KEPT = 6 * 3600.0
FIVE_MINUTES_KEPT = 30 * 86400.0


@dataclass(frozen=True, slots=True)
class AxisSeries:
    """By bucket; NaN where nothing was measured."""

    mean: Floats
    maximum: Floats
    samples: NDArray[np.uint32]


@dataclass(frozen=True, slots=True)
class UsageSeries:
    step: int
    """Seconds of a bucket."""
    times: Floats
    """When the buckets begin, oldest first, without gaps."""
    axes: Mapping[Axis, AxisSeries]
    """Axes that were measured at all."""
    nodes: tuple[str, ...] = field(default=())
    """By bucket, the node of a pod; empty where it is not known."""


def finest(since: float, until: float, now: float) -> Level:
    """The finest level that has all of this time and no more than some hundreds of buckets."""
    if since >= now - MINUTES_KEPT:
        return MINUTES
    return FIVE_MINUTES if since >= now - FIVE_MINUTES_KEPT and until - since <= 3 * 86400.0 else HOURS


async def read_series(
    store: Store, kind: SeriesKind, name: str, since: float, until: float, level: Level
) -> UsageSeries | None:
    """None for a name that was never recorded. What is not rolled up yet is merged on the way."""
    series = await store.series_named(kind, name)
    if series is None:
        return None
    begin = int(since // level.step) * level.step
    rows = await store.chunks(level.step, begin - level.chunk + 1, until, [series.block])
    recent = await _not_rolled_up(store, series, begin, until, level)
    return await asyncio.to_thread(_series, series, rows, recent, (begin, until), level, await _node_names(store, kind))


async def _node_names(store: Store, kind: SeriesKind) -> dict[int, str]:
    return {row.id: row.name for row in await store.series("node")} if kind == "pod" else {}


async def _not_rolled_up(
    store: Store, series: SeriesRow, since: float, until: float, level: Level
) -> Sequence[ChunkRow]:
    if level is MINUTES:
        return ()
    done = [
        start
        for start, block in await store.chunk_keys(FIVE_MINUTES.step, until - MINUTES_KEPT)
        if block == series.block
    ]
    begin = max(done[-1] + FIVE_MINUTES.chunk if done else since, since)
    return await store.chunks(MINUTES.step, begin, until, [series.block])


def _series(
    series: SeriesRow,
    rows: Sequence[ChunkRow],
    recent: Sequence[ChunkRow],
    window: tuple[int, float],
    level: Level,
    names: Mapping[int, str],
) -> UsageSeries:
    begin, until = window
    buckets = max(0, -int(-(until - begin) // level.step))
    into = _Cells(begin, level.step, buckets)
    for row in rows:
        chunk = _only(row, series.id)
        if chunk is not None:
            into.put(chunk, row.start)
    for start, chunk in _merged(recent, series.id, level):
        into.put(chunk, start)
    times = begin + np.arange(buckets, dtype=np.float64) * level.step
    axes = {
        axis: AxisSeries(decode(cells.means[0]), decode(cells.maxima[0]), cells.counts[0])
        for axis, cells in sorted(into.axes.items())
    }
    return UsageSeries(level.step, times, axes, tuple(names.get(node, "") for node in into.nodes.tolist()))


class _Cells:
    """The buckets of one series in a window of time."""

    def __init__(self, begin: int, step: int, buckets: int) -> None:
        self._begin, self._step, self._buckets = begin, step, buckets
        self.nodes = np.zeros(buckets, np.uint32)
        self.axes: dict[Axis, Columns] = {}

    def put(self, chunk: Chunk, start: int) -> None:
        """A chunk of this series alone. What is outside of the window is left out."""
        first = (start - self._begin) // self._step
        at = first + np.arange(chunk.nodes.shape[1])
        inside = (at >= 0) & (at < self._buckets)
        self.nodes[at[inside]] = chunk.nodes[0, inside]
        for axis, columns in chunk.axes.items():
            if axis not in self.axes:
                self.axes[axis] = _empty(self._buckets)
            into = self.axes[axis]
            into.counts[0, at[inside]] = columns.counts[0, inside]
            into.means[0, at[inside]] = columns.means[0, inside]
            into.maxima[0, at[inside]] = columns.maxima[0, inside]


def _empty(buckets: int) -> Columns:
    shape = (1, buckets)
    return Columns(np.zeros(shape, np.uint32), np.zeros(shape, np.uint16), np.zeros(shape, np.uint16))


def _only(row: ChunkRow, series: int) -> Chunk | None:
    """The axes of a series that have anything in this chunk."""
    try:
        chunk = Chunk.of_series(row.document, series)
    except ChunkError as error:
        damaged(row, error)
        return None
    if chunk is None:
        return None
    return replace(chunk, axes={axis: each for axis, each in chunk.axes.items() if each.counts.any()})


def _merged(rows: Sequence[ChunkRow], series: int, level: Level) -> list[tuple[int, Chunk]]:
    """Minutes as steps of the level, hour by hour."""
    by_hour: defaultdict[int, dict[int, Chunk]] = defaultdict(dict)
    for row in rows:
        chunk = _only(row, series)
        if chunk is not None:
            hour = row.start // HOURS.step * HOURS.step
            by_hour[hour][(row.start - hour) // MINUTES.step] = chunk
    minutes = HOURS.step // MINUTES.step
    return [
        (hour, merged(joined(steps, minutes), level.step // MINUTES.step)) for hour, steps in sorted(by_hour.items())
    ]
