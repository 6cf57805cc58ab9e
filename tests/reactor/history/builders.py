"""Minutes of usage for tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from reactor.history.levels import Axis
from reactor.history.minute import Measured, Minute
from reactor.history.series import SeriesIndex
from storage.rows import ChunkRow, SeriesKind
from storage.store import Store

Samples = Mapping[str, Sequence[float]]
"""Samples of one axis by name."""


def minute(
    series: SeriesIndex, start: int, samples: Mapping[Axis, Samples], kind: SeriesKind = "pod"
) -> list[ChunkRow]:
    names = sorted({name for by_name in samples.values() for name in by_name})
    rows = series.assign(kind, names, start)
    axes = {axis: _measured([by_name.get(name, ()) for name in names]) for axis, by_name in samples.items()}
    return list(Minute(start, rows, np.zeros(len(rows), np.uint32), axes).rows())


def _measured(samples: Sequence[Sequence[float]]) -> Measured:
    return Measured(
        np.array([len(each) for each in samples]),
        np.array([np.mean(each) if each else np.nan for each in samples], np.float64),
        np.array([max(each, default=np.nan) for each in samples], np.float64),
    )


async def add(store: Store, series: SeriesIndex, chunks: Iterable[ChunkRow]) -> None:
    store.add_chunks(*chunks)
    store.add_series(*series.take_changed())
    assert await store.flush()
