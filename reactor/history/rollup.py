"""Roll-ups: minutes to steps of five minutes and of an hour.

Counts, maxima and histograms of a roll-up are exactly those of its minutes. A mean is rounded once, to its code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from reactor.history.chunk import Chunk, Columns, Histogram, Ids
from reactor.history.codes import amounts, bins_of, encode
from reactor.history.levels import NEEDED, Axis

T = TypeVar("T", np.uint16, np.uint32)

_MINUTES = 60
_NO_MINUTES = Histogram(np.zeros(0, np.int64), np.zeros(0, np.uint16), np.zeros(0, np.uint16))


def joined(chunks: Mapping[int, Chunk], steps: int) -> Chunk:
    """Chunks of one step each as one chunk of many; the keys are the steps. Without histograms."""
    ids: Ids = np.unique(np.concatenate([chunk.ids for chunk in chunks.values()]))
    shape = (len(ids), steps)
    nodes: Ids = np.zeros(shape, np.uint32)
    axes: dict[Axis, Columns] = {}
    for step, chunk in chunks.items():
        rows = np.searchsorted(ids, chunk.ids)
        nodes[rows, step] = chunk.nodes[:, 0]
        for axis, columns in chunk.axes.items():
            into = axes.setdefault(axis, _empty(shape))
            into.counts[rows, step] = columns.counts[:, 0]
            into.means[rows, step] = columns.means[:, 0]
            into.maxima[rows, step] = columns.maxima[:, 0]
    return Chunk(ids, nodes, axes)


def merged(chunk: Chunk, steps: int) -> Chunk:
    """So many steps as one."""
    number, all_steps = chunk.nodes.shape
    shape = (number, all_steps // steps, steps)
    axes = {axis: _merged(columns, shape) for axis, columns in chunk.axes.items()}
    return Chunk(chunk.ids, _last(chunk.nodes.reshape(shape)), axes)


def hour_of(minutes: Chunk) -> Chunk:
    """60 minutes as one step, with histograms of what is needed."""
    hour = merged(minutes, _MINUTES)
    axes = {
        axis: replace(columns, histogram=_histogram(minutes.axes[axis])) if axis in NEEDED else columns
        for axis, columns in hour.axes.items()
    }
    return Chunk(hour.ids, hour.nodes, axes)


def with_step(chunk: Chunk | None, step: int, added: Chunk, steps: int) -> Chunk:
    """A chunk with this step, too. One that it has already stays as it is: doing it again changes nothing."""
    if chunk is None:
        chunk = Chunk(added.ids[:0], np.zeros((0, steps), np.uint32), {})
    if any(columns.counts[:, step].any() for columns in chunk.axes.values()):
        return chunk
    ids: Ids = np.union1d(chunk.ids, added.ids)
    rows = np.searchsorted(ids, chunk.ids), np.searchsorted(ids, added.ids)
    nodes = _with_column(chunk.nodes, added.nodes, rows, (len(ids), step))
    axes = {
        axis: _with_step(
            chunk.axes.get(axis, _empty(chunk.nodes.shape)),
            added.axes.get(axis, _empty(added.nodes.shape)),
            rows,
            (len(ids), step),
        )
        for axis in sorted({*chunk.axes, *added.axes})
    }
    return Chunk(ids, nodes, axes)


Rows = tuple[NDArray[np.intp], NDArray[np.intp]]
"""Where the series of a chunk, and those that are added, are among all of them."""


def _with_step(known: Columns, added: Columns, rows: Rows, into: tuple[int, int]) -> Columns:
    return Columns(
        _with_column(known.counts, added.counts, rows, into),
        _with_column(known.means, added.means, rows, into),
        _with_column(known.maxima, added.maxima, rows, into),
        _together(known.histogram, added.histogram, rows),
    )


def _with_column(known: NDArray[T], added: NDArray[T], rows: Rows, into: tuple[int, int]) -> NDArray[T]:
    """`into`: the number of series, and the step."""
    number, step = into
    wide: NDArray[T] = np.zeros((number, known.shape[1]), known.dtype)
    wide[rows[0]] = known
    wide[rows[1], step] = added[:, 0]
    return wide


def _together(known: Histogram | None, added: Histogram | None, rows: Rows) -> Histogram | None:
    if known is None and added is None:
        return None
    before, new = known or _NO_MINUTES, added or _NO_MINUTES
    return _counted(
        np.concatenate([rows[0][before.rows], rows[1][new.rows]]),
        np.concatenate([before.bins, new.bins]),
        np.concatenate([before.counts, new.counts]),
    )


def _empty(shape: tuple[int, ...]) -> Columns:
    return Columns(np.zeros(shape, np.uint32), np.zeros(shape, np.uint16), np.zeros(shape, np.uint16))


def _merged(columns: Columns, shape: tuple[int, int, int]) -> Columns:
    counts = columns.counts.reshape(shape)
    total = counts.sum(axis=2, dtype=np.uint32)
    known = amounts(columns.means.reshape(shape))
    with np.errstate(invalid="ignore"):
        means = (known * counts).sum(axis=2) / total
    return Columns(total, encode(means), columns.maxima.reshape(shape).max(axis=2))


def _last(nodes: Ids) -> Ids:
    """The last node in each step that is known."""
    steps = nodes.shape[2]
    at = steps - 1 - np.argmax(nodes[:, :, ::-1] > 0, axis=2)
    last: Ids = np.take_along_axis(nodes, at[:, :, np.newaxis], axis=2)[:, :, 0]
    return last


def _histogram(minutes: Columns) -> Histogram:
    rows, steps = np.nonzero(minutes.counts)
    return _counted(rows, bins_of(minutes.maxima[rows, steps]), np.ones(len(rows), np.uint16))


def _counted(rows: NDArray[np.integer], bins: NDArray[np.uint16], counts: NDArray[np.uint16]) -> Histogram:
    """Equal bins of a series as one."""
    found, at = np.unique(rows.astype(np.int64) << 16 | bins, return_inverse=True)
    total = np.bincount(at, counts, len(found)).astype(np.uint16)
    return Histogram(found >> 16, (found & 0xFFFF).astype(np.uint16), total)
