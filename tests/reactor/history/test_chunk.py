from __future__ import annotations

from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactor.history.chunk import Chunk, ChunkError
from reactor.history.levels import Axis
from reactor.history.rollup import hour_of, joined, with_step
from reactor.history.series import SeriesIndex
from tests.reactor.history.builders import minute

SAMPLES = st.lists(st.floats(min_value=0, max_value=1e12), max_size=5)
MINUTES = st.dictionaries(
    st.integers(0, 59), st.dictionaries(st.sampled_from("abcdef"), SAMPLES, min_size=1), min_size=1, max_size=8
)


def chunk_of(minutes: dict[int, dict[str, list[float]]], series: SeriesIndex | None = None) -> Chunk:
    series = series or SeriesIndex()
    rows = {
        step: minute(series, step * 60, {Axis.CPU: samples, Axis.MEMORY: {"a": [5e8]}})[0]
        for step, samples in minutes.items()
    }
    return joined({step: Chunk.from_bytes(row.document) for step, row in rows.items()}, 60)


def assert_equal(one: Chunk, other: Chunk) -> None:
    np.testing.assert_array_equal(one.ids, other.ids)
    np.testing.assert_array_equal(one.nodes, other.nodes)
    assert one.axes.keys() == other.axes.keys()
    for axis, columns in one.axes.items():
        for name in ("counts", "means", "maxima"):
            np.testing.assert_array_equal(getattr(columns, name), getattr(other.axes[axis], name), name)
        left, right = columns.histogram, other.axes[axis].histogram
        assert (left is None) == (right is None)
        if left is not None and right is not None:
            for name in ("rows", "bins", "counts"):
                np.testing.assert_array_equal(getattr(left, name), getattr(right, name), name)


@given(MINUTES)
def test_bytes_are_read_back_as_they_were_written(minutes: dict[int, dict[str, list[float]]]) -> None:
    chunk = chunk_of(minutes)
    assert_equal(Chunk.from_bytes(chunk.to_bytes()), chunk)
    day = with_step(None, 3, hour_of(chunk), 24)
    assert_equal(Chunk.from_bytes(day.to_bytes()), day)


def test_one_axis_can_be_read_alone() -> None:
    document = chunk_of({0: {"a": [1.0]}}).to_bytes()
    assert list(Chunk.from_bytes(document, [Axis.MEMORY]).axes) == [Axis.MEMORY]


@given(st.data())
def test_damaged_bytes_are_an_error_or_another_chunk_but_nothing_else(data: st.DataObject) -> None:
    document = bytearray(chunk_of({0: {"a": [1.0], "b": [2.0]}, 9: {"b": [3.0]}}).to_bytes())
    at = data.draw(st.integers(0, len(document) - 1))
    document[at] ^= data.draw(st.integers(1, 255))
    with suppress(ChunkError):
        Chunk.from_bytes(bytes(document[: data.draw(st.integers(0, len(document)))]))


def test_what_is_cut_off_is_said() -> None:
    document = chunk_of({0: {"a": [1.0]}}).to_bytes()
    for length in range(len(document)):
        with pytest.raises(ChunkError):
            Chunk.from_bytes(document[:length])
