"""A roll-up has exactly the counts, maxima and histograms of its minutes; its mean is rounded once."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from reactor.history.codes import bins_of, decode, encode
from reactor.history.levels import Axis
from reactor.history.rollup import hour_of, merged, with_step
from reactor.history.series import SeriesIndex
from tests.reactor.history.test_chunk import MINUTES, assert_equal, chunk_of

Minutes = dict[int, dict[str, list[float]]]


def code(value: float) -> int:
    return int(encode(np.array([value]))[0])


@given(MINUTES, st.sampled_from([5, 60]))
def test_a_merged_step_is_what_its_minutes_were(minutes: Minutes, steps: int) -> None:
    series = SeriesIndex()
    found = merged(chunk_of(minutes, series), steps)
    names = {row.name: row.id for row in series.assign("pod", sorted({n for m in minutes.values() for n in m}), 0)}
    for name, number in names.items():
        row = int(np.searchsorted(found.ids, number))
        for bucket in range(60 // steps):
            samples = [minutes[at].get(name, []) for at in range(bucket * steps, (bucket + 1) * steps) if at in minutes]
            values = [value for each in samples for value in each]
            columns = found.axes.get(Axis.CPU)
            if columns is None or not values:
                assert columns is None or columns.counts[row, bucket] == 0
                continue
            assert columns.counts[row, bucket] == len(values)
            assert columns.maxima[row, bucket] == code(max(values))
            mean = float(decode(columns.means)[row, bucket])
            assert abs(mean - np.mean(values)) <= 0.012 * np.mean(values) + 1e-6


@given(MINUTES)
def test_histograms_count_every_minute_once(minutes: Minutes) -> None:
    chunk = chunk_of(minutes)
    hour = hour_of(chunk)
    for axis, columns in hour.axes.items():
        histogram = columns.histogram
        assert histogram is not None
        whole = chunk.axes[axis]
        for row in range(len(chunk.ids)):
            expected = Counter(bins_of(whole.maxima[row][whole.counts[row] > 0]).tolist())
            mine = histogram.rows == row
            assert dict(zip(histogram.bins[mine].tolist(), histogram.counts[mine].tolist(), strict=True)) == expected


@given(st.lists(st.tuples(st.integers(0, 23), MINUTES), min_size=1, max_size=4))
def test_hours_join_a_day_in_any_order_and_twice(hours: list[tuple[int, Minutes]]) -> None:
    series = SeriesIndex()
    rolled = {step: hour_of(chunk_of(minutes, series)) for step, minutes in hours}
    forward, backward = None, None
    for step in sorted(rolled):
        forward = with_step(forward, step, rolled[step], 24)
    for step in sorted(rolled, reverse=True):
        backward = with_step(backward, step, rolled[step], 24)
    assert forward is not None
    assert backward is not None
    assert_equal(forward, backward)
    for step, hour in rolled.items():
        assert_equal(with_step(forward, step, hour, 24), forward)
