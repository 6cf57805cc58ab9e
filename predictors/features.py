"""What the boosted models see of a series: lags and rolling statistics, as distances from the latest value in units of
the series' own variation. So one model serves pods of all sizes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from predictors.protocol import Floats, History
from predictors.seasonal import DAY_MINUTES

WINDOW = 288
"""Columns."""
LAGS = 16
SPANS = (3, 6, 12, 24, 72, 288)
PERCENTILES = (5, 50, 95, 99)
FEWEST = 6
"""Samples among the last 24 without which there is no answer."""
LEAST_CHANGE = np.float32(0.2)
"""The scale is not below this share of the roughness, whatever the change over the horizon was."""
CHUNK = 8192
"""Rows worked on at once: this bounds the memory."""

Matrix = NDArray[np.float32]
Integers = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Origins:
    """Points in time to look from: the row of the series, and the last column that is known."""

    rows: Integers
    columns: Integers

    def part(self, chosen: Integers | slice | NDArray[np.bool_]) -> Origins:
        return Origins(self.rows[chosen], self.columns[chosen])


@dataclass(frozen=True, slots=True)
class Features:
    matrix: Matrix
    centre: Floats
    """The latest value; NaN where too much is missing to say anything."""
    scale: Floats
    """About what the last value would have erred by at this horizon; 0 where the window is constant."""


def newest(history: History) -> Origins:
    number = history.values.shape[0]
    return Origins(np.arange(number), np.full(number, history.values.shape[1] - 1))


def describe(history: History, origins: Origins, ahead: int) -> Features:
    starts = range(0, max(len(origins.rows), 1), CHUNK)
    parts = [_describe(history, origins.part(slice(start, start + CHUNK)), ahead) for start in starts]
    return Features(
        np.concatenate([part.matrix for part in parts]),
        np.concatenate([part.centre for part in parts]),
        np.concatenate([part.scale for part in parts]),
    )


def _describe(history: History, origins: Origins, ahead: int) -> Features:
    window = _windows(history.values, origins)
    present = np.isfinite(window)
    zeroed = np.where(present, window, np.float32(0))
    known = present[:, -24:].sum(axis=1) >= FEWEST
    centre = np.where(known & present[:, -1], window[:, -1], np.float32(np.nan))
    steps = np.abs(np.diff(window, axis=1))
    roughness = _mean(steps)
    rolling = _rolling(window, zeroed, present)
    change = _mean(np.abs(window[:, ahead:] - window[:, :-ahead])) if ahead < WINDOW else roughness
    scale = np.fmax(change, LEAST_CHANGE * (roughness + np.float32(0.1) * rolling[-1][1]))
    unit = np.where(scale > np.float32(1e-6) * np.abs(centre), scale, np.float32(1))
    places = [window[:, -1 - lag] for lag in range(1, LAGS + 1)]
    places += [each for mean, _, low, high in rolling for each in (mean, low, high)]
    places += _percentiles(window, present)
    places += _a_period_ago(history, origins, ahead)
    sizes = [deviation for _, deviation, _, _ in rolling] + [roughness, _mean(steps[:, -24:])]
    columns = [(place - centre) / unit for place in places] + [size / unit for size in sizes]
    columns.append(np.arcsinh(centre / unit))
    matrix = np.stack(columns, axis=1).astype(np.float32)
    varies = np.where(unit == scale, scale, np.float32(0))
    return Features(matrix, centre.astype(np.float64), varies.astype(np.float64))


def _windows(values: Matrix, origins: Origins) -> Matrix:
    """WINDOW columns up to each origin, NaN before the first."""
    wanted = origins.columns[:, np.newaxis] + np.arange(1 - WINDOW, 1)
    window = values[origins.rows[:, np.newaxis], np.maximum(wanted, 0)]
    return np.where((wanted >= 0) & np.isfinite(window), window, np.float32(np.nan))


def _rolling(window: Matrix, zeroed: Matrix, present: NDArray[np.bool_]) -> list[tuple[Matrix, Matrix, Matrix, Matrix]]:
    """Mean, standard deviation, minimum and maximum over each span."""
    found = []
    for span in SPANS:
        number = np.maximum(present[:, -span:].sum(axis=1), 1).astype(np.float32)
        mean = zeroed[:, -span:].sum(axis=1) / number
        away = np.where(present[:, -span:], window[:, -span:] - mean[:, np.newaxis], np.float32(0))
        deviation = np.sqrt(np.einsum("nt,nt->n", away, away) / number)
        low, high = (reduce(window[:, -span:], axis=1) for reduce in (np.fmin.reduce, np.fmax.reduce))
        found.append((mean, deviation, low, high))
    return found


def _percentiles(window: Matrix, present: NDArray[np.bool_]) -> list[Matrix]:
    """The nearest ranks: NaNs are sorted last."""
    ranked = np.sort(window, axis=1)
    top = np.maximum(present.sum(axis=1) - 1, 0)
    row = np.arange(len(window))
    return [ranked[row, np.rint(top * (share / 100)).astype(np.intp)] for share in PERCENTILES]


def _a_period_ago(history: History, origins: Origins, ahead: int) -> list[Matrix]:
    """A day and a week ago: the value then, the value at the horizon, and the most between them."""
    found = []
    for days in (1, 7):
        then = origins.columns - history.steps(days * DAY_MINUTES)
        between = _at(history.values, origins.rows, then[:, np.newaxis] + np.arange(1, ahead + 1))
        found += [_at(history.values, origins.rows, then[:, np.newaxis])[:, 0], between[:, -1], _mean(between[:, -7:])]
        found.append(np.fmax.reduce(between, axis=1))
    return found


def _at(values: Matrix, rows: Integers, columns: Integers) -> Matrix:
    inside = (columns >= 0) & (columns < values.shape[1])
    found = values[rows[:, np.newaxis], np.where(inside, columns, 0)]
    return np.where(inside & np.isfinite(found), found, np.float32(np.nan))


def _mean(values: Matrix) -> Matrix:
    present = np.isfinite(values)
    total = np.where(present, values, np.float32(0)).sum(axis=1)
    number = present.sum(axis=1).astype(np.float32)
    return np.where(number > 0, total / np.maximum(number, np.float32(1)), np.float32(np.nan)).astype(np.float32)
