"""Growth towards a limit, and when it will be reached. Memory is not CPU: it seldom comes back by itself.

A straight line is fitted to the samples since the last restart. It counts as growth where it explains most of what the
series does: then the rest of the way to the limit is a matter of time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from predictors.means import mean
from predictors.protocol import Floats, History
from predictors.recent import filled, latest, recent

MINUTES = 120.0
FEWEST = 12
"""Samples since the last restart."""
RESTART = 0.3
"""A fall by this part of the value is a restart."""
EXPLAINED = 0.7
"""Share of the variance that the line has to explain: of a random walk it seldom does, of a level never."""
LEAST_SHARE = 0.01
"""Growth by less than this part of the value, within the window, is no growth."""


@dataclass(frozen=True, slots=True)
class Growth:
    per_second: Floats
    """0 where a series does not grow steadily, NaN where too little is known."""
    seconds_to_limit: Floats
    """Infinite without growth; 0 at or above the limit; NaN where growth or limit is unknown."""


def growth(history: History, limits: Floats) -> Growth:
    window = _since_restart(recent(history.values, max(2 * FEWEST, history.steps(MINUTES))))
    known = np.isfinite(window)
    slope, explained = _line(window, known)
    gained = slope * known.sum(axis=1) >= LEAST_SHARE * np.abs(mean(window))
    grows = np.where((explained >= EXPLAINED) & gained & (slope > 0), slope / history.step, 0.0)
    grows = np.where(known.sum(axis=1) >= FEWEST, grows, np.nan)
    return Growth(grows, _seconds_to_limit(latest(history.values), limits, grows))


def _since_restart(window: NDArray[np.float32]) -> NDArray[np.float32]:
    before = filled(window)
    fell = np.zeros(window.shape, dtype=bool)
    fell[:, 1:] = before[:, 1:] < (1 - RESTART) * before[:, :-1]
    later = np.flip(np.logical_or.accumulate(np.flip(fell, axis=1), axis=1), axis=1)
    # A column belongs to the past while a fall is still to come after it.
    past = np.zeros(window.shape, dtype=bool)
    past[:, :-1] = later[:, 1:]
    return np.where(past, np.float32(np.nan), window)


def _line(window: NDArray[np.float32], known: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """The slope per column of the least squares, and the share of the variance that it explains."""
    columns = np.where(known, np.arange(window.shape[1], dtype=np.float64), np.nan)
    across = np.nan_to_num(columns - mean(columns)[:, np.newaxis])
    up = np.nan_to_num(window - mean(window)[:, np.newaxis])
    variance, covariance, total = (across**2).sum(axis=1), (across * up).sum(axis=1), (up**2).sum(axis=1)
    slope = covariance / np.where(variance > 0, variance, 1.0)
    return slope, slope * covariance / np.where(total > 0, total, 1.0)


def _seconds_to_limit(now: Floats, limits: Floats, grows: Floats) -> Floats:
    left = np.maximum(limits - now, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        seconds = np.where(grows > 0, left / grows, np.where(left > 0, np.inf, 0.0))
    return np.where(np.isfinite(grows) & np.isfinite(left), seconds, np.nan)
