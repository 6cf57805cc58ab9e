"""For authors of predictors: check that an estimator keeps the promises of `PeakEstimator`, in a test of any framework.

from predictors.testing import check_predictor

def test_my_estimator():
    check_predictor(MyEstimator())
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from predictors.protocol import PeakEstimator


def check_predictor(estimator: PeakEstimator, *, seed: int = 0, series: int = 100) -> None:
    """Raise AssertionError for the first promise that the estimator breaks, with the samples."""
    _check_unknown(estimator)
    for samples in ([0.25], [math.nan, 0.0]):
        found = estimator.estimate(samples, list(range(len(samples))))
        _require(found == samples[-1], f"one sample is the peak, not {found}", samples)
    draw = np.random.default_rng(seed)
    rows = [_random_series(draw) for _ in range(series)]
    alone = [_check_series(estimator, row, draw) for row in rows]
    width = max((len(row) for row in rows), default=0)
    padded = np.array([np.pad(row, (width - len(row), 0), constant_values=math.nan) for row in rows])
    together = estimator.estimate_rows(padded.reshape(len(rows), width))
    for row, one, other in zip(rows, alone, together.tolist(), strict=True):
        _require(_close(one, other), f"many series are estimated as each alone: {other}, not {one}", row)


def _check_unknown(estimator: PeakEstimator) -> None:
    """Unknown is not zero."""
    for samples in ([], [math.nan, math.inf]):
        found = estimator.estimate(samples, list(range(len(samples))))
        _require(math.isnan(found), f"without samples the peak is NaN, not {found}", samples)
    for width in (0, 3):
        empty = np.full((2, width), math.nan)
        found_rows = estimator.estimate_rows(empty)
        _require(found_rows.shape == (2,) and bool(np.isnan(found_rows).all()), "rows without samples are NaN", empty)


def _check_series(estimator: PeakEstimator, values: NDArray[np.float64], draw: np.random.Generator) -> float:
    times = np.arange(len(values), dtype=np.float64)
    before = values.copy()
    found = estimator.estimate(values, times)
    _require(np.array_equal(values, before, equal_nan=True), "the samples are not changed", before)
    known = values[~np.isnan(values)]
    if not len(known):
        _require(math.isnan(found), f"without samples the peak is NaN, not {found}", values)
        return found
    _require(found >= known[-1], f"the peak is never below the latest value: {found}", values)
    order = draw.permutation(len(values))
    shuffled = estimator.estimate(values[order], times[order])
    _require(_close(found, shuffled), f"times decide what is the latest, not the order: {shuffled}", values)
    return found


def _random_series(draw: np.random.Generator) -> NDArray[np.float64]:
    """Any length up to 70, any scale up to terabytes, with gaps."""
    values = draw.gamma(draw.choice([0.2, 1.0, 50.0]), 1.0, draw.integers(0, 71)) * 10.0 ** draw.integers(-3, 12)
    return np.where(draw.random(len(values)) < draw.choice([0.0, 0.2, 0.9]), math.nan, values)


def _close(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=1e-6, abs_tol=1e-12) or (math.isnan(one) and math.isnan(other))


def _require(kept: bool, promise: str, samples: object) -> None:
    if not kept:
        raise AssertionError(f"the estimator does not keep its promise: {promise}\nsamples: {samples!r}")
