"""How often a promised bound holds, on series that no model was trained on: every window of every series counts, once
its series has had 200 of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from loadtests.forecasting.series_sets import Recording
from loadtests.forecasting.walk import HORIZON_STEPS, Floats
from predictors.forecasting import Forecasting
from predictors.last_value import LastValue
from predictors.protocol import Predictor

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Covered:
    """Origins by series."""

    said: Floats
    bounds: Floats
    came: Floats
    now: Floats
    calibrated: Flags


def walk_all(recording: Recording, peaks: Sequence[Predictor]) -> Covered:
    minutes = (HORIZON_STEPS[-1] * recording.step / 60,)
    forecasting = Forecasting([LastValue()], peaks, minutes)
    said, bounds, came, now, calibrated = (
        np.stack(part).astype(np.float64) for part in zip(*_steps(recording, forecasting), strict=True)
    )
    return Covered(said, bounds, came, now, calibrated > 0)


def _steps(recording: Recording, forecasting: Forecasting) -> Iterator[tuple[npt.NDArray[np.generic], ...]]:
    furthest = HORIZON_STEPS[-1]
    for origin in range(recording.values.shape[1] - furthest):
        history = recording.history(origin + 1)
        outlook = forecasting.advance(recording.names, history, origin * recording.step)
        came = recording.values[:, origin + 1 : origin + 1 + furthest].max(axis=1)
        columns = (outlook.peaks_before, outlook.peaks)
        yield (*(each[:, 0] for each in columns), came, history.values[:, -1], outlook.calibrated[:, 0])
