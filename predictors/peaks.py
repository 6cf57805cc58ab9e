"""Peaks without training: the larger of mean + N sigma and a high percentile. The answer for a cold start."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from predictors.percentile import percentile_of_rows
from predictors.protocol import Floats, History, Numbers, Target
from predictors.recent import latest


@dataclass(frozen=True, slots=True)
class SigmaOrPercentile:
    """Three sigmas miss little and waste little on real pods; the percentile covers what is far from normal."""

    sigmas: float = 3.0
    percentile: float = 99.0
    minutes: float = 120.0
    """Of the history that `predict` looks at."""
    name: str = "sigma-or-percentile"
    target: Target = Target.PEAK

    def predict(self, history: History, minutes: Sequence[float]) -> Floats:
        peak = self.estimate_rows(history.values[:, -history.steps(self.minutes) :])
        # A series whose window is one long gap: what it used last is all that is known.
        known = np.fmax(peak, latest(history.values))
        return np.repeat(known[:, np.newaxis], len(minutes), axis=1)

    def estimate(self, values: Numbers, times: Numbers) -> float:
        series = np.asarray(values, dtype=np.float64)
        order = np.argsort(np.asarray(times, dtype=np.float64), kind="stable")
        return float(self.estimate_rows(series[order][np.newaxis, :])[0])

    def estimate_rows(self, rows: NDArray[np.floating]) -> NDArray[np.float64]:
        present = np.isfinite(rows)
        number = present.sum(axis=1)
        if rows.shape[1] == 0:
            return np.full(rows.shape[0], np.nan)
        known = np.where(present, rows, 0.0)
        mean = known.sum(axis=1, dtype=np.float64) / np.maximum(number, 1)
        away = np.where(present, rows - mean[:, np.newaxis].astype(rows.dtype), 0.0)
        sigma = np.sqrt(np.einsum("ij,ij->i", away, away) / np.maximum(number, 1))
        peak = np.maximum(mean + self.sigmas * sigma, percentile_of_rows(rows, self.percentile))
        return np.where(number == 0, np.nan, np.maximum(peak, latest(rows)))
