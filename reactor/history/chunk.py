"""A chunk: the usage of some series in some steps of time, by axis; and its bytes.

The columns of each axis are compressed apart, so that a reader of CPU does not decompress the others. Numbers are
written as differences in time, byte by byte of equal weight, which is what zlib compresses best.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reactor.history.codes import Codes
from reactor.history.levels import Axis

Ids = NDArray[np.uint32]
Counts = NDArray[np.uint32]

_VERSION = 1
_HEADER = struct.Struct("<BBHH")
"""Version, axes as bits, series, steps."""
_LENGTH = struct.Struct("<I")
_COMPRESSION = 6


class ChunkError(Exception):
    """The bytes are no chunk: the disk has lost or changed some."""


@dataclass(frozen=True, slots=True)
class Histogram:
    """How many minutes of a series fall into which bin, over all steps of the chunk; by row of the series and bin."""

    rows: NDArray[np.int64]
    bins: NDArray[np.uint16]
    counts: NDArray[np.uint16]


@dataclass(frozen=True, slots=True)
class Columns:
    """One row per series, one column per step."""

    counts: Counts
    """Samples; 0 where nothing was measured."""
    means: Codes
    maxima: Codes
    histogram: Histogram | None = None
    """Of the highest sample of each minute; only with steps of an hour."""


@dataclass(frozen=True, slots=True)
class Chunk:
    ids: Ids
    """Sorted."""
    nodes: Ids
    """The node's series, one row per series and one column per step; 0 is none."""
    axes: Mapping[Axis, Columns]

    def rows_of(self, ids: Ids) -> NDArray[np.intp]:
        """Where these series are in the chunk, which has all of them."""
        return np.searchsorted(self.ids, ids)

    def to_bytes(self) -> bytes:
        number, steps = self.nodes.shape
        present = sorted(self.axes)
        sections = [_pack([self.ids[np.newaxis, :]]), _pack([self.nodes])]
        sections += [_pack(_arrays(self.axes[axis])) for axis in present]
        lengths = b"".join(_LENGTH.pack(len(section)) for section in sections)
        header = _HEADER.pack(_VERSION, sum(1 << axis for axis in present), number, steps)
        return b"".join((header, lengths, *sections))

    @classmethod
    def of_series(cls, document: bytes, series: int) -> Chunk | None:
        """Of one series alone, without histograms; None if it is not in the chunk."""
        try:
            return cls._read(document, None, series)
        except KeyError:
            return None
        except (struct.error, zlib.error, ValueError, IndexError) as error:
            raise ChunkError(f"not readable: {error}") from error

    @classmethod
    def from_bytes(cls, document: bytes, only: Collection[Axis] | None = None) -> Chunk:
        """Nodes and all axes, or only some axes."""
        try:
            return cls._read(document, only)
        except (struct.error, zlib.error, ValueError, IndexError) as error:
            raise ChunkError(f"not readable: {error}") from error

    @classmethod
    def _read(cls, document: bytes, only: Collection[Axis] | None, series: int | None = None) -> Chunk:
        version, bits, number, steps = _HEADER.unpack_from(document)
        if version != _VERSION:
            raise ValueError(f"version {version}")
        present = [axis for axis in Axis if bits >> axis & 1]
        named, placed, *sections = _sections(document, len(present) + 2)
        ids = _Reader(named).take(np.uint32, (1, number))[0]
        row = None if series is None else _row(ids, series)
        nodes: Ids = np.zeros((number, steps), np.uint32)
        if only is None:
            nodes = _Reader(placed).take(np.uint32, (number, steps), row)
        axes = {
            axis: _columns(_Reader(section), (number, steps), row)
            for axis, section in zip(present, sections, strict=True)
            if only is None or axis in only
        }
        return cls(ids if row is None else ids[row : row + 1], nodes, axes)


def _sections(document: bytes, number: int) -> list[bytes]:
    begin = _HEADER.size + number * _LENGTH.size
    lengths = [length for (length,) in _LENGTH.iter_unpack(document[_HEADER.size : begin])]
    ends = [begin, *(begin + length for length in accumulate(lengths))]
    if len(lengths) != number or ends[-1] != len(document):
        raise ValueError("cut off")
    return [document[first:end] for first, end in pairwise(ends)]


def _arrays(columns: Columns) -> list[NDArray[Any]]:
    """The maximum as its distance from the mean: most often a small number."""
    found: list[NDArray[Any]] = [columns.counts, columns.means, columns.maxima - columns.means]
    histogram = columns.histogram
    if histogram is not None:
        sizes = np.bincount(histogram.rows, minlength=len(columns.means)).astype(np.uint16)
        found += [sizes[:, np.newaxis], histogram.bins[np.newaxis, :], histogram.counts[np.newaxis, :]]
    return found


def _row(ids: Ids, series: int) -> int:
    found = np.flatnonzero(ids == series)
    if not len(found):
        raise KeyError(series)
    return int(found[0])


def _columns(reader: _Reader, shape: tuple[int, int], row: int | None) -> Columns:
    counts = reader.take(np.uint32, shape, row)
    means = reader.take(np.uint16, shape, row)
    maxima = reader.take(np.uint16, shape, row) + means
    if row is not None or reader.is_read:
        return Columns(counts, means, maxima)
    sizes = reader.take(np.uint16, (shape[0], 1))[:, 0]
    rows = np.repeat(np.arange(len(sizes)), sizes)
    bins = reader.take(np.uint16, (1, len(rows)))[0]
    return Columns(counts, means, maxima, Histogram(rows, bins, reader.take(np.uint16, (1, len(rows)))[0]))


def _pack(arrays: list[NDArray[Any]]) -> bytes:
    return zlib.compress(b"".join(map(_differences, arrays)), _COMPRESSION)


def _differences(array: NDArray[Any]) -> bytes:
    changes = array.copy()
    changes[:, 1:] -= array[:, :-1]
    return changes.reshape(-1).view(np.uint8).reshape(-1, array.itemsize).T.tobytes()


class _Reader:
    """Takes the arrays of a section back, in the order in which they were packed."""

    def __init__(self, section: bytes) -> None:
        self._data = np.frombuffer(zlib.decompress(section), dtype=np.uint8)
        self._at = 0

    @property
    def is_read(self) -> bool:
        return self._at == len(self._data)

    def take(self, kind: type[np.unsignedinteger[Any]], shape: tuple[int, int], row: int | None = None) -> NDArray[Any]:
        """All rows, or one."""
        size = np.dtype(kind).itemsize
        number, steps = shape[0] * shape[1], shape[1]
        planes = self._data[self._at : self._at + number * size].reshape(size, number)
        self._at += number * size
        if row is not None:
            planes = planes[:, row * steps : (row + 1) * steps]
        changes = planes[0].astype(kind)
        for place, plane in enumerate(planes[1:], 1):
            if plane.any():  # most numbers are small
                changes |= plane.astype(kind) << kind(8 * place)
        return np.cumsum(changes.reshape(-1, steps), axis=1, dtype=kind)
