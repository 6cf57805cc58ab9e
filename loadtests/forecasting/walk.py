"""Walks through the time after the cut as the controller would: at each origin a forecast, later what came."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from loadtests.forecasting.series_sets import Recording
from predictors.forecasting import Forecasting
from predictors.percentile import Percentile
from predictors.protocol import History, Predictor
from predictors.sigma import NSigma

Floats = npt.NDArray[np.float64]

HORIZON_STEPS = (1, 15)
ORIGINS = 500
"""At most, per series."""
ROWS: dict[str, tuple[Predictor, ...]] = {
    "mean + 3 sigma of 2 h": (NSigma(),),
    "p99 of 1 day": (Percentile(),),
    "max(5 sigma 2 h, p99 1 day)": (NSigma(sigmas=5.0), Percentile()),
    "p95 x 1.10": (Percentile(percentile=95.0, factor=1.1),),
}
"""The training-free estimators of the table: each is the largest of its predictors."""


@dataclass(frozen=True, slots=True)
class Walked:
    """Origins by series (by models) (by horizons)."""

    actual: Floats
    forecasts: Floats
    chosen: Floats
    came: Floats
    """The most until the longest horizon."""
    now: Floats
    said: Floats
    """What the boosted peak said before calibration."""
    bounds: Floats
    rows: dict[str, Floats]
    """What each estimator of the table says."""


def minutes_of(step: float) -> tuple[float, ...]:
    return tuple(steps * step / 60 for steps in HORIZON_STEPS)


def walk(recording: Recording, models: Sequence[Predictor], peaks: Sequence[Predictor]) -> Walked:
    minutes, furthest = minutes_of(recording.step), max(HORIZON_STEPS)
    forecasting = Forecasting(models, peaks, minutes)
    columns = recording.values.shape[1]
    stride = max(1, -(-(columns - furthest - recording.cut) // ORIGINS))
    found = []
    for origin in range(recording.cut - 1, columns - furthest, stride):
        history = recording.history(origin + 1)
        outlook = forecasting.advance(recording.names, history, origin * recording.step)
        after = recording.values[:, origin + 1 : origin + 1 + furthest]
        found.append(
            (
                after[:, [steps - 1 for steps in HORIZON_STEPS]],
                outlook.forecasts,
                outlook.values,
                after.max(axis=1),
                history.values[:, -1],
                outlook.peaks_before[:, -1],
                outlook.peaks[:, -1],
                _rows(history, minutes[-1]),
            )
        )
    actual, forecasts, chosen, came, now, said, bounds, rows = (
        np.stack(part).astype(np.float64) for part in zip(*found, strict=True)
    )
    by_name = {name: rows[:, at] for at, name in enumerate(ROWS)}
    return Walked(actual, forecasts, chosen, came, now, said, bounds, by_name)


def _rows(history: History, minutes: float) -> Floats:
    return np.stack(
        [np.max([each.predict(history, (minutes,))[:, 0] for each in row], axis=0) for row in ROWS.values()]
    )
