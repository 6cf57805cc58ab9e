"""A recorded usage history in steps of five minutes, for tests of what reads it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from reactor.history.chunk import Chunk, Columns
from reactor.history.codes import encode
from reactor.history.levels import FIVE_MINUTES, Axis
from reactor.history.series import SeriesIndex
from storage.rows import ChunkRow, SeriesKind
from storage.store import Store

Series = Mapping[str, NDArray[np.floating]]
"""Means of five minutes by name."""


async def record(
    store: Store,
    index: SeriesIndex,
    kind: SeriesKind,
    start: int,
    axes: Mapping[Axis, Series],
    *,
    nodes: Mapping[str, int] | None = None,
    counts: Mapping[str, int] | None = None,
) -> None:
    """`start` is a full hour. `nodes`: the number of each pod's node; `counts`: samples of readiness per step."""
    names = sorted({name for series in axes.values() for name in series})
    ids = np.array([row.id for row in index.assign(kind, names, start)], np.uint32)
    order = np.argsort(ids)
    steps = len(next(iter(next(iter(axes.values())).values())))
    on = np.array([(nodes or {}).get(name, 0) for name in names], np.uint32)[order]
    for begin in range(0, steps, FIVE_MINUTES.buckets):
        part = slice(begin, begin + FIVE_MINUTES.buckets)
        columns = {}
        for axis, series in axes.items():
            values = np.stack([_padded(series.get(name, np.full(steps, np.nan))[part]) for name in names])[order]
            number = np.array([(counts or {}).get(name, 1) for name in names], np.uint32)[order]
            counted = np.where(np.isfinite(values), number[:, np.newaxis], 0).astype(np.uint32)
            columns[axis] = Columns(counted, encode(values), encode(values))
        chunk = Chunk(ids[order], np.repeat(on[:, np.newaxis], FIVE_MINUTES.buckets, axis=1), columns)
        block = index.assign(kind, names[:1], start)[0].block
        at = start + begin * FIVE_MINUTES.step
        store.add_chunks(ChunkRow(FIVE_MINUTES.step, at, block, chunk.to_bytes()))
    store.add_series(*index.take_changed())
    assert await store.flush()


def _padded(values: NDArray[np.floating]) -> NDArray[np.floating]:
    return np.concatenate((values, np.full(FIVE_MINUTES.buckets - len(values), np.nan)))
