"""Simple exponential smoothing; each series has the factor that would have served its recent samples best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from predictors.protocol import Floats, History, Target
from predictors.recent import recent


@dataclass(frozen=True, slots=True)
class Smoothing:
    factors: tuple[float, ...] = (0.05, 0.2, 0.4, 0.7, 1.0)
    columns: int = 144
    name: str = "smoothing"
    target: Target = Target.VALUE

    def predict(self, history: History, minutes: Sequence[float]) -> Floats:
        window = recent(history.values, self.columns)
        levels, errors = _smoothed(window, np.array(self.factors, dtype=np.float32)[:, np.newaxis])
        level = levels[np.argmin(errors, axis=0), np.arange(len(window))]
        return np.repeat(level[:, np.newaxis].astype(np.float64), len(minutes), axis=1)


def _smoothed(
    window: NDArray[np.float32], factors: NDArray[np.float32]
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """By factor and series: the last level, and the sum of the absolute errors of one step."""
    level = np.full((len(factors), len(window)), np.nan, dtype=np.float32)
    error = np.zeros(level.shape, dtype=np.float32)
    for column in window.T:
        away = column - level
        known = np.isfinite(away)
        error += np.where(known, np.abs(away), np.float32(0))
        level = np.where(known, level + factors * away, np.where(np.isfinite(level), level, column))
    return level, error
