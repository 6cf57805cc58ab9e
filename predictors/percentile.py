"""A high percentile of the last day (EuroSys'21, "RC-like")."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from predictors.protocol import Floats, History, Target
from predictors.recent import latest


@dataclass(frozen=True, slots=True)
class Percentile:
    percentile: float = 99.0
    factor: float = 1.0
    """Koordinator takes the 95th percentile times 1.1."""
    minutes: float = 24 * 60.0
    name: str = "percentile"
    target: Target = Target.PEAK

    def predict(self, history: History, minutes: Sequence[float]) -> Floats:
        window = history.values[:, -history.steps(self.minutes) :]
        peak = np.fmax(self.factor * percentile_of_rows(window, self.percentile), latest(history.values))
        return np.repeat(peak[:, np.newaxis], len(minutes), axis=1)


def percentile_of_rows(rows: NDArray[np.floating], percentile: float) -> Floats:
    """Linear between ranks, as in numpy; NaN where a row has no sample."""
    if not rows.shape[1]:
        return np.full(rows.shape[0], np.nan)
    present = np.isfinite(rows)
    number = present.sum(axis=1)
    ranked = np.sort(np.where(present, rows, np.inf), axis=1)
    ranked[number == 0] = np.nan
    top = np.maximum(number - 1, 0)
    position = top * (percentile / 100.0)
    below = np.floor(position).astype(np.intp)
    row = np.arange(rows.shape[0])
    low, high = ranked[row, below], ranked[row, np.minimum(below + 1, top)]
    return np.asarray(low + (high - low) * (position - below), dtype=np.float64)
