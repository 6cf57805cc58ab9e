"""What followed when the load went before as it goes now: for loads that come again within minutes.

Only what was seen is said again: without anything alike in the past there is no answer. It needs no period: bursts may
come at any distance, as long as they begin, or announce themselves, in the same way.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from predictors.protocol import Floats


@dataclass(frozen=True, slots=True)
class Recurring:
    window: int = 12
    """Samples that are compared."""
    tolerance: float = 0.3
    """How far a time may be from now and still be alike: the mean distance of the samples, in standard deviations of
    the series."""
    most: int = 3
    """Times that are asked what followed."""

    def highest(self, values: Floats, ahead: int) -> float:
        """The most until `ahead` samples from now, of one series of even steps, the newest last. NaN where nothing in
        it is like now."""
        ends = len(values) - self.window - ahead + 1
        if ends <= 0 or np.isnan(values[-self.window :]).any():
            return float("nan")
        distances = self._distances(values, ends)
        limit = self.tolerance * float(np.nanstd(values))
        found = _apart(distances, limit, self.window, self.most)
        followed = np.array([_most(values[end : end + ahead]) for end in found + self.window])
        weights = 1 / (distances[found] + 0.1 * limit + 1e-9)
        known = ~np.isnan(followed)
        return float(np.average(followed[known], weights=weights[known])) if known.any() else float("nan")

    def _distances(self, values: Floats, ends: int) -> Floats:
        """By the beginning of each window of the past whose sequel is known; infinite where a sample is missing."""
        windows = np.lib.stride_tricks.sliding_window_view(values, self.window)[:ends]
        distances = np.sqrt(np.mean((windows - values[-self.window :]) ** 2, axis=1))
        return np.where(np.isnan(distances), np.inf, distances)


def _apart(distances: Floats, limit: float, apart: int, most: int) -> NDArray[np.intp]:
    """The nearest, none beside another one."""
    left = distances.copy()
    found: list[int] = []
    while len(found) < most and (nearest := int(left.argmin())) >= 0 and left[nearest] <= limit:
        found.append(nearest)
        left[max(0, nearest - apart + 1) : nearest + apart] = np.inf
    return np.array(found, dtype=np.intp)


def _most(values: Floats) -> float:
    known = values[~np.isnan(values)]
    return float(known.max()) if len(known) else float("nan")
