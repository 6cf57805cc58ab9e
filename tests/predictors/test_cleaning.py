"""Bad data is recognised, said, and not used."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from predictors.cleaning import Fault, Grid, clean, rates

GRID = Grid(end=6000.0, step=60.0, columns=100)
TIMES = np.arange(60.0, 6001.0, 60.0)
LOAD = np.linspace(1.0, 2.0, 100)


def test_good_samples_stay_as_they_are() -> None:
    found = clean(TIMES, LOAD, GRID)
    assert found.values == pytest.approx(LOAD)
    assert found.faults == {}


@pytest.mark.parametrize(
    ("time", "value", "fault"),
    [
        (3000.0, math.nan, Fault.NOT_A_NUMBER),
        (3000.0, math.inf, Fault.NOT_A_NUMBER),
        (math.nan, 1.0, Fault.NOT_A_NUMBER),
        (3001.0, -5.0, Fault.NEGATIVE),
        (6000.0 + 10 * 365 * 86400, 1.0, Fault.FUTURE),
        (3000.0, 7.0, Fault.DUPLICATE),
    ],
)
def test_a_bad_sample_is_refused_and_counted(time: float, value: float, fault: Fault) -> None:
    found = clean([*TIMES, time], [*LOAD, value], GRID)
    assert found.values == pytest.approx(LOAD)
    assert found.faults[fault] == 1


def test_late_samples_count_where_they_belong() -> None:
    found = clean(TIMES[::-1], LOAD[::-1], GRID)
    assert found.values == pytest.approx(LOAD)
    assert found.faults == {Fault.BACKWARDS: 99}


def test_gaps_stay_gaps() -> None:
    kept = (TIMES < 1000) | (TIMES > 2000)
    found = clean(TIMES[kept], LOAD[kept], GRID)
    assert np.isnan(found.values).sum() == found.faults[Fault.GAP] == (~kept).sum()


@pytest.mark.parametrize("factor", [1000.0, 1024.0, 1024.0**2, 1e-3])
def test_what_was_measured_in_another_unit_is_left_out(factor: float) -> None:
    found = clean(TIMES, np.where(TIMES < 3000, LOAD * factor, LOAD), GRID)
    assert found.faults[Fault.UNIT] == (TIMES < 3000).sum()
    assert np.nanmax(found.values) <= 2.0


def test_an_idle_pod_that_wakes_up_is_no_other_unit() -> None:
    assert clean(TIMES, np.where(TIMES < 3000, 0.0, LOAD), GRID).faults == {}
    assert clean(TIMES, np.where(TIMES < 3000, LOAD / 150, LOAD), GRID).faults == {}


def test_a_counter_that_was_reset_has_no_rate_there() -> None:
    times, rate, resets = rates([0, 10, 20, 30, 30, 40], [0, 50, 100, 20, 25, 70])
    assert times.tolist() == [10, 20, 30, 30, 40]
    assert rate.tolist() == pytest.approx([5, 5, math.nan, math.nan, 4.5], nan_ok=True)
    assert resets == 1


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.floats(), st.floats()), max_size=40))
def test_whatever_comes_nothing_impossible_is_kept(samples: list[tuple[float, float]]) -> None:
    times, values = [each[0] for each in samples], [each[1] for each in samples]
    found = clean(times, values, GRID)
    known = found.values[~np.isnan(found.values)]
    assert len(found.values) == GRID.columns
    assert (known >= 0).all()
