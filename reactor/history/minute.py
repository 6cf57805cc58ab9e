"""One minute of many series as chunks, one for each block."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reactor.history.chunk import Chunk, Columns, Ids
from reactor.history.codes import Floats, encode
from reactor.history.levels import MINUTES, Axis
from storage.rows import ChunkRow, SeriesRow


@dataclass(frozen=True, slots=True)
class Measured:
    """One number per series, NaN where nothing was measured; and the number of samples, 0 there."""

    counts: NDArray[np.integer]
    means: Floats
    maxima: Floats

    @classmethod
    def once(cls, values: Floats) -> Measured:
        """One sample each."""
        return cls(~np.isnan(values), values, values)


@dataclass(frozen=True, slots=True)
class Minute:
    """What some series used in the minute that begins at `start`."""

    start: int
    series: Sequence[SeriesRow]
    nodes: Ids
    axes: Mapping[Axis, Measured]

    def rows(self) -> Iterator[ChunkRow]:
        """Takes long for many series: call it in a thread."""
        ids = np.fromiter((row.id for row in self.series), np.uint32, len(self.series))
        blocks = np.fromiter((row.block for row in self.series), np.int64, len(self.series))
        columns = {axis: _columns(measured) for axis, measured in self.axes.items() if measured.counts.any()}
        order = np.lexsort((ids, blocks))
        for rows in np.split(order, np.flatnonzero(np.diff(blocks[order])) + 1):
            if len(rows):
                yield ChunkRow(MINUTES.step, self.start, int(blocks[rows[0]]), self._chunk(rows, ids, columns))

    def _chunk(self, rows: NDArray[np.intp], ids: Ids, columns: Mapping[Axis, Columns]) -> bytes:
        axes = {
            axis: Columns(each.counts[rows], each.means[rows], each.maxima[rows])
            for axis, each in columns.items()
            if each.counts[rows].any()
        }
        return Chunk(ids[rows], self.nodes[rows][:, np.newaxis], axes).to_bytes()


def _columns(measured: Measured) -> Columns:
    counts = measured.counts.astype(np.uint32)
    return Columns(counts[:, np.newaxis], encode(measured.means)[:, np.newaxis], encode(measured.maxima)[:, np.newaxis])
