from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from predictors.peaks import SigmaOrPercentile
from predictors.protocol import PeakEstimator

finite = st.floats(0, 1e12, allow_nan=False)
series = st.lists(st.one_of(finite, st.just(math.nan)), max_size=70)


@pytest.fixture
def estimator() -> PeakEstimator:
    return SigmaOrPercentile()


def test_nothing_known_is_not_zero(estimator: PeakEstimator) -> None:
    assert math.isnan(estimator.estimate([], []))
    assert math.isnan(estimator.estimate([math.nan, math.inf], [1, 2]))
    assert estimator.estimate_rows(np.empty((2, 0))).tolist() == pytest.approx([math.nan, math.nan], nan_ok=True)


def test_one_sample_is_the_peak(estimator: PeakEstimator) -> None:
    assert estimator.estimate([0.25], [7]) == 0.25
    assert estimator.estimate([math.nan, 0.0], [1, 2]) == 0.0


def test_latest_is_by_time_not_by_place() -> None:
    flat = SigmaOrPercentile(sigmas=0.0, percentile=0.0)
    assert flat.estimate([9.0, 1.0, 1.0], [30, 10, 20]) == 9.0
    assert flat.estimate([9.0, 1.0, 1.0], [10, 20, 30]) == pytest.approx(11 / 3)


def test_percentile_is_the_usual_one() -> None:
    values = np.random.default_rng(3).gamma(0.2, 1.0, 60)
    values[-1] = 0.0
    estimate = SigmaOrPercentile(sigmas=-1e9).estimate(values, range(60))
    assert estimate == pytest.approx(float(np.percentile(values, 99)))


@given(series)
def test_never_below_the_latest_and_the_mean(values: list[float]) -> None:
    estimate = SigmaOrPercentile().estimate(values, list(range(len(values))))
    known = [value for value in values if not math.isnan(value)]
    if not known:
        assert math.isnan(estimate)
        return
    assert estimate >= known[-1]
    assert estimate >= float(np.mean(known)) * (1 - 1e-9)


@given(st.lists(series, min_size=1, max_size=5))
def test_rows_are_estimated_as_series_are(rows: list[list[float]]) -> None:
    width = max(len(row) for row in rows)
    padded = np.array([[math.nan] * (width - len(row)) + row for row in rows]).reshape(len(rows), width)
    together = SigmaOrPercentile().estimate_rows(padded)
    alone = [SigmaOrPercentile().estimate(row, list(range(len(row)))) for row in rows]
    assert together.tolist() == pytest.approx(alone, nan_ok=True)
