"""When the load of a node last changed."""

from __future__ import annotations

import math

import numpy as np
import pytest

from predictors.peaks import SigmaOrPercentile
from reactor.cluster.records import NodeUsageSample
from reactor.signals.measurements import MetricsSource
from reactor.signals.usage import UsageHistory
from reactor.state.load_changes import LoadChange
from tests.support.cluster import GIB, make_node

START = 1_700_000_100.0


def change(*loads: float) -> LoadChange:
    times = np.array([at(step) for step in range(len(loads))])
    return LoadChange.of_loads(times, np.array(loads))


def at(step: int) -> float:
    return START + 15.0 * step


@pytest.mark.parametrize(
    ("loads", "steady", "fell"),
    [
        ((0.5, 0.5, 0.52, 0.48), 0, None),
        ((0.5, 0.5, 0.9, 0.92), 2, None),
        ((0.9, 0.95, 0.5, 0.52), 2, 2),
        ((0.9, 0.6, 0.9, 0.9), 2, None),
        ((1.0, 0.9, 0.8, 0.65), 3, 3),
        ((0.5, math.nan, 0.9, math.nan), 2, None),
    ],
    ids=["steady", "rose", "fell", "fell and rose again", "falls on", "gaps"],
)
def test_when_it_changed(loads: tuple[float, ...], steady: int, fell: int | None) -> None:
    found = change(*loads)

    assert found.steady_since == at(steady)
    assert found.fell == (float("-inf") if fell is None else at(fell))


def test_without_measurements_nothing_is_known() -> None:
    assert change() == change(0.5) == change(math.nan, math.nan) == LoadChange()


def test_the_highest_load_of_late_counts_from_a_relief_on() -> None:
    found = change(0.1, 0.1, 1.0, 0.9, 0.5, 0.4)

    assert found.highest(0.0) == 1.0
    assert found.highest(at(4)) == 0.5
    assert found.highest(at(9)) == 0.0


def test_it_is_taken_from_the_usage_history_of_the_node() -> None:
    usage = UsageHistory(120.0, 900.0, SigmaOrPercentile())
    usage.observe_node("n1")
    for step, cores in enumerate((3.9, 3.9, 1.0, 1.0)):
        now = START + 15.0 * step
        usage.record_nodes([NodeUsageSample("n1", cores, GIB, now)], MetricsSource.PROMETHEUS, now)

    found = LoadChange.of(make_node("n1"), usage)

    assert abs(found.fell - at(2)) <= 15.0
    assert found.highest(0.0) == pytest.approx(3.9 / 4.0)
    assert LoadChange.of(make_node("n2"), usage) == LoadChange()
    assert LoadChange.of(make_node("n1", cpu=0.0), usage) == LoadChange()
