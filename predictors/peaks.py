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
        told = np.isfinite(rows)
        number = told.sum(axis=1)
        if rows.shape[1] == 0:
            return np.full(rows.shape[0], np.nan)
        known = np.where(told, rows, 0.0)
        mean = known.sum(axis=1, dtype=np.float64) / np.maximum(number, 1)
        away = np.where(told, rows - mean[:, np.newaxis].astype(rows.dtype), 0.0)
        sigma = np.sqrt(np.einsum("ij,ij->i", away, away) / np.maximum(number, 1))
        peak = np.maximum(mean + self.sigmas * sigma, _percentile(rows, told, number, self.percentile))
        return np.where(number == 0, np.nan, np.maximum(peak, _latest(known, told)))


def _percentile(
    rows: NDArray[np.floating], told: NDArray[np.bool_], number: NDArray[np.intp], percentile: float
) -> NDArray[np.float64]:
    """Linear between ranks, as numpy's; what was not told is sorted behind the samples."""
    ranked = np.sort(np.where(told, rows, np.inf), axis=1)
    ranked[number == 0] = 0.0
    top = np.maximum(number - 1, 0)
    place = top * (percentile / 100.0)
    below = np.floor(place).astype(np.intp)
    every = np.arange(rows.shape[0])
    low, high = ranked[every, below], ranked[every, np.minimum(below + 1, top)]
    return np.asarray(low + (high - low) * (place - below), dtype=np.float64)


def _latest(known: NDArray[np.floating], told: NDArray[np.bool_]) -> NDArray[np.float64]:
    last = told.shape[1] - 1 - np.argmax(told[:, ::-1], axis=1)
    return np.asarray(known[np.arange(told.shape[0]), last], dtype=np.float64)
