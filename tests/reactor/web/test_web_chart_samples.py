from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactor.web import chart_samples
from reactor.web.chart_samples import SAMPLES_KEPT, SHOWN_NODES, SHOWN_POINTS, ChartSample, ChartSamples
from reactor.web.view import Series


def sample(at: float, cpu: dict[str, float | None]) -> ChartSample:
    return ChartSample(at, at, None, 0.5, 0.6, cpu, dict.fromkeys(cpu, 0.25))


def series(samples: ChartSamples) -> Series:
    return samples.cut().series(())


def test_the_busiest_nodes_are_shown_by_name() -> None:
    samples = ChartSamples()
    samples.add(sample(1.0, {f"n{number:02d}": number / 100 for number in range(30)}))
    samples.add(sample(2.0, {f"n{number:02d}": None for number in range(30)}))
    found = series(samples)
    assert [line.name for line in found.nodes] == [f"n{number:02d}" for number in range(30 - SHOWN_NODES, 30)]
    assert found.nodes[-1].cpu == (0.29, None)
    assert found.node_count == 30
    assert series(ChartSamples()).node_count == 0


def test_nodes_that_come_and_go_keep_their_values() -> None:
    samples = ChartSamples()
    samples.add(sample(1.0, {"a": 0.1, "b": 0.2}))
    samples.add(sample(2.0, {"b": 0.3}))
    samples.add(sample(3.0, {"b": 0.4, "c": 0.5}))
    lines = {line.name: (line.cpu, line.memory) for line in series(samples).nodes}
    assert lines["a"] == ((0.1, None, None), (0.25, None, None))
    assert lines["b"] == ((0.2, 0.3, 0.4), (0.25, 0.25, 0.25))
    assert lines["c"] == ((None, None, 0.5), (None, None, 0.25))


@given(st.integers(0, 3000), st.floats(0.1, 120.0))
def test_long_series_are_thinned_alike_in_every_column_and_keep_the_newest(count: int, period: float) -> None:
    samples, times = ChartSamples(), [1e9 + index * period for index in range(count)]
    for index, at in enumerate(times):
        samples.add(sample(at, {"n": (index % 100) / 100}))
    found = series(samples)
    assert found.availability == found.times
    assert {len(column) for column in (found.happiness_min, *(line.cpu for line in found.nodes))} <= {len(found.times)}
    assert all(line.cpu[-1] == (count - 1) % 100 / 100 for line in found.nodes)
    assert len(found.times) <= SHOWN_POINTS
    assert list(found.times[-1:]) == times[-1:]
    assert list(found.times) == sorted(found.times)
    assert samples.since == (times[-SAMPLES_KEPT:] or [float("inf")])[0]


def test_an_hour_of_a_thousand_nodes_takes_less_than_30_mib() -> None:
    names = [f"node-{number:04d}" for number in range(1000)]
    samples = ChartSamples()
    tracemalloc.start()
    try:
        for index in range(SAMPLES_KEPT + 10):
            samples.add(sample(2.0 * index, dict.fromkeys(names, index / 2000)))
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 30 * 2**20
    assert series(samples).nodes[0].cpu[-1] == (SAMPLES_KEPT + 9) / 2000


def test_the_lines_of_very_many_nodes_are_shorter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chart_samples, "MOST_CELLS", 100)
    samples = ChartSamples()
    for index in range(30):
        samples.add(sample(float(index), {f"n{number}": index / 100 for number in range(10)}))
    found = series(samples)
    assert len(found.times) == 30
    assert found.nodes[0].cpu == (None,) * 20 + tuple(index / 100 for index in range(20, 30))
