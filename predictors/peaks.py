"""Peaks without training: the larger of mean + N sigma and a high percentile."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from predictors.protocol import Numbers


@dataclass(frozen=True, slots=True)
class SigmaOrPercentile:
    """Three sigmas miss little and waste little on real pods; the percentile covers what is far from normal."""

    sigmas: float = 3.0
    percentile: float = 99.0

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
        peak = np.maximum(mean + self.sigmas * sigma, _percentile(rows, present, number, self.percentile))
        return np.where(number == 0, np.nan, np.maximum(peak, _latest(known, present)))


def _percentile(
    rows: NDArray[np.floating], present: NDArray[np.bool_], number: NDArray[np.intp], percentile: float
) -> NDArray[np.float64]:
    """Linear between ranks, as in numpy; missing samples are sorted last."""
    ranked = np.sort(np.where(present, rows, np.inf), axis=1)
    ranked[number == 0] = 0.0
    top = np.maximum(number - 1, 0)
    position = top * (percentile / 100.0)
    below = np.floor(position).astype(np.intp)
    row = np.arange(rows.shape[0])
    low, high = ranked[row, below], ranked[row, np.minimum(below + 1, top)]
    return np.asarray(low + (high - low) * (position - below), dtype=np.float64)


def _latest(known: NDArray[np.floating], present: NDArray[np.bool_]) -> NDArray[np.float64]:
    last = present.shape[1] - 1 - np.argmax(present[:, ::-1], axis=1)
    return np.asarray(known[np.arange(present.shape[0]), last], dtype=np.float64)
