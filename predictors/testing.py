"""For authors of predictors: check that one keeps the promises of `predictors.protocol`, in a test of any framework.

from predictors.testing import check_predictor

def test_my_predictor():
    check_predictor(MyPredictor())
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from predictors.protocol import History, NotEnoughHistory, PeakEstimator, Predictor, Target, TrainedPredictor

MINUTES = (5.0, 75.0)
STEP = 300.0


def check_predictor(predictor: Predictor, *, seed: int = 0, series: int = 20) -> None:
    """Raise AssertionError for the first promise that the predictor breaks, with the samples.

    A predictor that learns is trained here first, on random series of the same kind.
    """
    draw = np.random.default_rng(seed)
    if isinstance(predictor, TrainedPredictor):
        predictor = _trained(predictor)
    for values in (np.empty((0, 5)), np.empty((2, 0)), np.full((2, 30), math.nan), np.full((1, 30), math.inf)):
        found = _predict(predictor, values)
        _require(bool(np.isnan(found).all()), "without samples there is no answer", values)
    values = random_load(draw, series)
    found = _predict(predictor, values)
    _check_rows(predictor, values, found, draw)
    _check_constant(predictor)
    if predictor.target is Target.PEAK:
        known = np.isfinite(found[:, 0])
        _require(bool((found[known, 0] >= values[known, -1] * (1 - 1e-6)).all()), "a peak is not below now", values)


def random_load(draw: np.random.Generator, series: int, columns: int = 400) -> NDArray[np.float64]:
    """Daily rhythms with noise, of all sizes; some began lately, and some have gaps, though never at the end."""
    angle = np.arange(columns) * (2 * math.pi / 288) + draw.uniform(0, 6, (series, 1))
    values = 1.5 + np.sin(angle) + draw.gamma(1.0, 0.3, (series, columns))
    values *= 10.0 ** draw.integers(-3, 11, (series, 1))
    values[draw.random((series, columns)) < draw.choice([0.0, 0.1], (series, 1))] = math.nan
    for row in range(0, series, 4):
        values[row, : draw.integers(columns)] = math.nan
    values[:, -1] = np.where(np.isfinite(values[:, -1]), values[:, -1], 1.0)
    return values


def _trained(predictor: TrainedPredictor) -> TrainedPredictor:
    _require(bool(np.isnan(_predict(predictor, np.ones((2, 40)))).all()), "it knows nothing before its training", [])
    for shape in ((0, 5), (2, 0), (3, 60)):
        try:
            predictor.fit(History(np.full(shape, math.nan, dtype=np.float32), STEP), MINUTES, 5.0)
        except NotEnoughHistory:
            continue
        raise AssertionError(f"nothing can be learned from nothing: no NotEnoughHistory for the shape {shape}")
    values = random_load(np.random.default_rng(1), 30).astype(np.float32)
    trained = predictor.fit(History(values, STEP), MINUTES, 5.0)
    state = trained.state()
    _require(not any(array.dtype.hasobject for array in state.values()), "the state is plain arrays", sorted(state))
    again = predictor.restore(state)
    same = np.array_equal(_predict(trained, values), _predict(again, values), equal_nan=True)
    _require(same, "a restored model predicts as the one that was saved", values)
    return again


def _predict(predictor: Predictor, values: NDArray[np.floating]) -> NDArray[np.float64]:
    given = values.astype(np.float32)
    before = given.copy()
    found = predictor.predict(History(given, STEP), MINUTES)
    _require(
        found.shape == (len(values), len(MINUTES)), f"a row per series, a column per horizon: {found.shape}", values
    )
    _require(np.array_equal(given, before, equal_nan=True), "the samples are not changed", before)
    return found


def _check_rows(
    predictor: Predictor, values: NDArray[np.float64], found: NDArray[np.float64], draw: np.random.Generator
) -> None:
    order = draw.permutation(len(values))
    _require(
        _alike(_predict(predictor, values[order]), found[order]), "the order of the series does not matter", values
    )
    _require(_alike(_predict(predictor, values[:1]), found[:1]), "other series do not matter", values)
    _require(_alike(_predict(predictor, values * 1024) / 1024, found), "the unit does not matter", values)


def _check_constant(predictor: Predictor) -> None:
    for level in (0.0, 0.25, 3e9):
        found = _predict(predictor, np.full((1, 300), level))
        known = found[np.isfinite(found)]
        _require(bool(np.allclose(known, level, rtol=1e-4)), f"a constant series stays as it is: {found}", level)


def _alike(one: NDArray[np.float64], other: NDArray[np.float64]) -> bool:
    return bool(np.allclose(one, other, rtol=1e-3, atol=1e-9, equal_nan=True))


def check_peak_estimator(estimator: PeakEstimator, *, seed: int = 0, series: int = 100) -> None:
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
