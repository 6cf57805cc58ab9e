"""The table of probes by load: decayed, stored and restored, and the curve that is fitted to it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from reactor.state.calibration import (
    BINS,
    COLUMNS,
    HALF_LIFE,
    PRIOR,
    Calibration,
    bins_of,
    fitted_curve,
)
from storage.rows import LoadBinRow
from tests.support.clock import NOW


def counted(load: float, probes: float, failures: float, expected: float = 0.0) -> NDArray[np.float64]:
    table = np.zeros((BINS, COLUMNS))
    table[bins_of(np.array([load]))[0]] = probes, failures, probes * load, expected
    return table


def test_loads_beyond_the_last_bin_belong_to_it() -> None:
    assert bins_of(np.array([0.0, 0.049, 0.051, 1.449, 7.0, math.nan])).tolist() == [0, 0, 1, BINS - 2, BINS - 1, 0]


def test_without_probes_the_curve_is_the_prior() -> None:
    calibration = Calibration()
    assert fitted_curve(calibration.table) == PRIOR == calibration.curve
    assert calibration.predicted_failures() is None


def test_the_curve_follows_what_was_counted() -> None:
    calibration = Calibration()
    for load, share in ((0.3, 0.001), (0.85, 0.2), (0.97, 0.5)):
        calibration.add(counted(load, 500_000.0, 500_000.0 * share), NOW)
    fitted = fitted_curve(calibration.table)
    assert fitted.probability(0.3) == pytest.approx(0.001, abs=0.001)
    assert fitted.probability(0.85) == pytest.approx(0.2, abs=0.03)
    assert fitted.probability(0.97) == pytest.approx(0.5, abs=0.05)


def test_probes_fade_and_shares_stay() -> None:
    calibration = Calibration()
    calibration.add(counted(0.9, 1000.0, 30.0, 20.0), NOW)
    calibration.add(np.zeros((BINS, COLUMNS)), NOW + HALF_LIFE)
    found = calibration.predicted_failures()
    assert found is not None
    assert (found.probes, found.expected, found.observed) == pytest.approx((500.0, 0.02, 0.03))


def test_a_restart_keeps_the_counts_and_lets_the_time_in_between_fade_them() -> None:
    before = Calibration()
    before.add(counted(0.9, 1000.0, 30.0), NOW)
    rows = before.rows(NOW)
    assert [row.bin for row in rows] == [18]
    after = Calibration()
    after.restore(rows, NOW + HALF_LIFE)
    assert after.table == pytest.approx(before.table / 2)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -1.0])
def test_rows_that_make_no_sense_are_left_out(bad: float) -> None:
    calibration = Calibration()
    rows = [LoadBinRow(5, bad, 0.0, 0.0, 0.0, NOW), LoadBinRow(99, 1.0, 0.0, 0.0, 0.0, NOW)]
    calibration.restore([*rows, LoadBinRow(6, 8.0, 0.0, 2.0, 0.0, NOW)], NOW)
    assert calibration.table[:, 0].sum() == 8.0


def test_a_clock_that_goes_back_changes_nothing() -> None:
    calibration = Calibration()
    calibration.add(counted(0.9, 1000.0, 30.0), NOW)
    calibration.add(np.zeros((BINS, COLUMNS)), NOW - 1e6)
    assert calibration.table[:, 0].sum() == 1000.0
