from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from predictors.peaks import SigmaOrPercentile
from predictors.protocol import Numbers, PeakEstimator
from predictors.testing import check_peak_estimator

finite = st.floats(0, 1e12, allow_nan=False)
series = st.lists(st.one_of(finite, st.just(math.nan)), max_size=70)

ESTIMATORS: list[PeakEstimator] = [
    SigmaOrPercentile(),
    SigmaOrPercentile(sigmas=0.0, percentile=0.0),
    SigmaOrPercentile(sigmas=1.0, percentile=50.0),
]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
@given(seed=st.integers(0, 2**31))
def test_every_estimator_keeps_its_promises(estimator: PeakEstimator, seed: int) -> None:
    check_peak_estimator(estimator, seed=seed, series=5)


@dataclass
class _Breaking:
    change: Callable[[NDArray[np.float64]], NDArray[np.float64]]

    def estimate(self, values: Numbers, times: Numbers) -> float:
        return SigmaOrPercentile().estimate(values, times)

    def estimate_rows(self, rows: NDArray[np.floating]) -> NDArray[np.float64]:
        return self.change(SigmaOrPercentile().estimate_rows(rows))


class _LatestByPlace(_Breaking):
    def estimate(self, values: Numbers, times: Numbers) -> float:
        return SigmaOrPercentile(sigmas=0.0, percentile=0.0).estimate(values, range(len(values)))


class _Mean(_Breaking):
    def estimate(self, values: Numbers, times: Numbers) -> float:
        known = [value for value in values if math.isfinite(value)]
        return float(np.mean(known)) if known else math.nan


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (_Breaking(np.nan_to_num), "rows without samples are NaN"),
        (_Breaking(lambda peaks: peaks * 2), "many series are estimated as each alone"),
        (_LatestByPlace(lambda peaks: peaks), "times decide what is the latest"),
        (_Mean(lambda peaks: peaks), "never below the latest value"),
    ],
)
def test_a_broken_promise_is_named(estimator: PeakEstimator, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_peak_estimator(estimator)


def test_nothing_known_is_not_zero() -> None:
    estimator = SigmaOrPercentile()
    assert math.isnan(estimator.estimate([], []))
    assert math.isnan(estimator.estimate([math.nan, math.inf], [1, 2]))
    assert estimator.estimate_rows(np.empty((2, 0))).tolist() == pytest.approx([math.nan, math.nan], nan_ok=True)


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
