"""What pods and workloads needed in the past: mean, peak and idle CPU over a window, from the hours of the store."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, groupby
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reactor.history.chunk import Chunk, ChunkError, Columns
from reactor.history.codes import Floats, amounts, decode, highest_of, middle_of
from reactor.history.levels import HOURS, NEEDED, Axis
from reactor.settings.model import History, HistoryPeak
from storage.rows import ChunkRow, SeriesKind
from storage.store import Store

HOUR = 3600.0
_IDLE = 0.05
"""CPU while unloaded: the share of the minutes in which less is used."""
_QUANTILES = {HistoryPeak.P95: 0.95, HistoryPeak.P99: 0.99}
_BLOCKS_READ = 64
"""At once: the chunks of more blocks would take much memory."""


@dataclass(frozen=True, slots=True)
class PastNeeds:
    """By row: hours with measurements, mean and peak of CPU and memory, idle CPU."""

    pods: Mapping[str, int] = field(default_factory=dict)
    """Rows by `namespace/name`."""
    workloads: Mapping[str, int] = field(default_factory=dict)
    hours: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    means: Floats = field(default_factory=lambda: np.zeros((0, len(NEEDED))))
    peaks: Floats = field(default_factory=lambda: np.zeros((0, len(NEEDED))))
    idle: Floats = field(default_factory=lambda: np.zeros(0))
    until: float = 0.0

    def __bool__(self) -> bool:
        return bool(self.pods or self.workloads)

    def rows_of(self, pods: Iterable[tuple[str, str]], minimum: float) -> NDArray[np.intp]:
        """By `namespace/name` and workload: the row of the pod if its own history covers so many seconds, else that of
        its workload if that one does, else -1. A replacement inherits the history of its workload."""
        long_enough = ((self.hours * HOUR >= minimum) & ~np.isnan(self.means).any(axis=1)).tolist()
        return np.fromiter((self._row(pod, workload, long_enough) for pod, workload in pods), np.intp)

    def _row(self, pod: str, workload: str, long_enough: Sequence[bool]) -> int:
        for row in (self.pods.get(pod, -1), self.workloads.get(workload, -1)):
            if row >= 0 and long_enough[row]:
                return row
        return -1


@dataclass(frozen=True, slots=True)
class HistoryNeeds:
    """The needs of the past as the settings use them."""

    past: PastNeeds = field(default_factory=PastNeeds)
    settings: History = field(default_factory=History)

    def of(self, pods: Sequence[tuple[str, str]]) -> PastAmounts:
        """By `namespace/name` and workload."""
        past = self.past
        rows = past.rows_of(pods, self.settings.minimum)
        nothing = np.full((1, len(NEEDED)), math.nan)
        idle = np.append(past.idle if self.settings.rank_by_idle_cpu else np.full(len(past.idle), math.nan), math.nan)
        return PastAmounts(np.vstack((past.means, nothing))[rows], np.vstack((past.peaks, nothing))[rows], idle[rows])


class PastAmounts(NamedTuple):
    """One row per pod, NaN where its history is too short; of idle CPU also where nothing ranks by it."""

    means: Floats
    peaks: Floats
    idle: Floats


async def read_past_needs(store: Store, now: float, window: float, peak: HistoryPeak) -> PastNeeds:
    """Of the complete hours of the window."""
    until = now // HOUR * HOUR
    since = until - window
    series = await store.series_seen_since(since - HOURS.chunk, "pod", "workload")
    blocks = sorted({block for _, _, _, block in series})
    batches = [blocks[begin : begin + _BLOCKS_READ] for begin in range(0, len(blocks), _BLOCKS_READ)]
    found: list[_Block] = []
    rows: Sequence[ChunkRow] = ()
    for batch in (*batches, None):  # what was read is decoded while the next is read
        async with asyncio.TaskGroup() as together:
            decoding = together.create_task(_in_thread(rows, since, until, peak))
            if batch is not None:
                reading = together.create_task(store.chunks(HOURS.step, since - HOURS.chunk + 1, until, batch))
        found += decoding.result()
        rows = reading.result() if batch is not None else ()
    return _needs(series, found, until)


async def _in_thread(rows: Sequence[ChunkRow], since: float, until: float, peak: HistoryPeak) -> list[_Block]:
    return await asyncio.to_thread(lambda: list(_blocks(rows, since, until, peak)))


@dataclass(frozen=True, slots=True)
class _Block:
    ids: NDArray[np.uint32]
    hours: NDArray[np.int64]
    means: Floats
    peaks: Floats
    idle: Floats


def _needs(series: Sequence[tuple[int, SeriesKind, str, int]], blocks: Sequence[_Block], until: float) -> PastNeeds:
    if not blocks:
        return PastNeeds(until=until)
    ids = np.concatenate([block.ids for block in blocks])
    row_of = dict(zip(ids.tolist(), range(len(ids)), strict=True))
    named: dict[str, dict[str, int]] = {"pod": {}, "workload": {}}
    for number, kind, name, _ in series:
        if number in row_of:
            named[kind][name] = row_of[number]
    return PastNeeds(
        named["pod"],
        named["workload"],
        np.concatenate([block.hours for block in blocks]),
        np.concatenate([block.means for block in blocks]),
        np.concatenate([block.peaks for block in blocks]),
        np.concatenate([block.idle for block in blocks]),
        until,
    )


def _blocks(rows: Sequence[ChunkRow], since: float, until: float, peak: HistoryPeak) -> Iterator[_Block]:
    by_block = sorted(rows, key=lambda row: (row.block, row.start))
    for _, group in groupby(by_block, key=lambda row: row.block):
        chunks = [(row.start, chunk) for row in group if (chunk := _readable(row)) is not None]
        if chunks:
            yield _block(chunks, since, until, peak)


def _readable(row: ChunkRow) -> Chunk | None:
    """A damaged chunk is a gap: the roll-up says so once, and the rest of the history still counts."""
    try:
        return Chunk.from_bytes(row.document, NEEDED)
    except ChunkError:
        return None


def _block(chunks: Sequence[tuple[int, Chunk]], since: float, until: float, peak: HistoryPeak) -> _Block:
    ids = np.unique(np.concatenate([chunk.ids for _, chunk in chunks]))
    sums = [_sums(chunks, axis, ids, (since, until)) for axis in NEEDED]
    idle = sums[0].quantile(_IDLE, highest=False)
    means = np.stack([each.mean() for each in sums], axis=1)
    peaks = np.stack([each.peak(peak) for each in sums], axis=1)
    return _Block(ids, sums[0].hours, means, peaks, idle)


@dataclass(frozen=True, slots=True)
class _Sums:
    """Of one axis over the window, by series."""

    hours: NDArray[np.int64]
    counts: Floats
    totals: Floats
    maxima: NDArray[np.uint16]
    lowest_bin: int
    histogram: Floats
    """One row per series, one column per bin."""

    def mean(self) -> Floats:
        with np.errstate(invalid="ignore"):
            return self.totals / self.counts

    def peak(self, chosen: HistoryPeak) -> Floats:
        most = decode(self.maxima)
        if chosen is HistoryPeak.MAX:
            return most
        return np.minimum(most, self.quantile(_QUANTILES[chosen], highest=True))

    def quantile(self, share: float, *, highest: bool) -> Floats:
        total = self.histogram.sum(axis=1)
        if not self.histogram.size:
            return np.full(len(total), math.nan)
        reached = np.cumsum(self.histogram, axis=1) >= share * total[:, np.newaxis]
        bins = self.lowest_bin + np.argmax(reached, axis=1)
        return np.where(total > 0, (highest_of if highest else middle_of)(bins), math.nan)


def _sums(
    chunks: Sequence[tuple[int, Chunk]], axis: Axis, ids: NDArray[np.uint32], window: tuple[float, float]
) -> _Sums:
    """The days side by side, so that each sum is one pass over all of them."""
    days = [(chunk, chunk.axes[axis], _inside(start, window)) for start, chunk in chunks if axis in chunk.axes]
    widths = [max(inside.stop - inside.start, 0) for _, _, inside in days]
    shape = (len(ids), sum(widths))
    measured = np.zeros(shape, np.uint32)
    means, most = np.zeros(shape, np.uint16), np.zeros(shape, np.uint16)
    parts: list[tuple[NDArray[np.intp], NDArray[np.uint16], NDArray[np.uint16]]] = []
    for (chunk, columns, inside), end, width in zip(days, accumulate(widths), widths, strict=True):
        everybody = len(chunk.ids) == len(ids)
        rows = np.searchsorted(ids, chunk.ids)
        at = (slice(None) if everybody else rows, slice(end - width, end))
        measured[at] = columns.counts[:, inside]
        means[at] = columns.means[:, inside]
        most[at] = columns.maxima[:, inside]
        parts += _entries(columns, rows, inside)
    counts = measured.sum(axis=1, dtype=np.float64)
    totals = np.einsum("ij,ij->i", amounts(means), measured)
    maxima = most.max(axis=1, initial=0)
    return _Sums(np.count_nonzero(measured, axis=1), counts, totals, maxima, *_dense(parts, len(ids)))


def _inside(start: int, window: tuple[float, float]) -> slice:
    """Which hours of a day are in the window."""
    first, end = (math.ceil((at - start) / HOURS.step) for at in window)
    return slice(max(first, 0), min(max(end, 0), HOURS.buckets))


def _entries(
    columns: Columns, rows: NDArray[np.intp], inside: slice
) -> Iterator[tuple[NDArray[np.intp], NDArray[np.uint16], NDArray[np.uint16]]]:
    """Histograms are of whole days: those that the window touches."""
    if columns.histogram is not None and inside.start < inside.stop:
        yield rows[columns.histogram.rows], columns.histogram.bins, columns.histogram.counts


def _dense(
    parts: Sequence[tuple[NDArray[np.intp], NDArray[np.uint16], NDArray[np.uint16]]], number: int
) -> tuple[int, Floats]:
    if not any(len(part[1]) for part in parts):
        return 0, np.zeros((number, 0))
    rows, bins, counts = (np.concatenate(column) for column in zip(*parts, strict=True))
    lowest = int(bins.min())
    width = int(bins.max()) - lowest + 1
    cells = np.bincount(rows * width + (bins - lowest), counts, number * width)
    return lowest, cells.astype(np.float64).reshape(number, width)
