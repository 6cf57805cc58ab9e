"""Samples of the current minute, summed up until the minute is recorded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class MinuteUsage:
    """One row per slot, one column per axis. Means and maxima are NaN where the count is 0."""

    counts: NDArray[np.uint16]
    means: NDArray[np.float64]
    maxima: NDArray[np.float64]
    refused: int
    """Samples that cannot be true: negative, infinite, or of the far future."""

    def followed_by(self, others: Sequence[MinuteUsage]) -> MinuteUsage:
        """With their rows after its own."""
        every = (self, *others)
        counts, means, maxima = (
            np.concatenate([getattr(each, name) for each in every]) for name in ("counts", "means", "maxima")
        )
        return MinuteUsage(counts, means, maxima, sum(each.refused for each in every))


class MinuteSums:
    def __init__(self, axes: int) -> None:
        self._axes = axes
        self._refused = 0
        self._counts = np.zeros((0, axes), np.uint16)
        self._sums = np.zeros((0, axes), np.float64)
        self._maxima = np.full((0, axes), np.nan, np.float64)

    def grow(self, more: int) -> None:
        self._counts = np.concatenate([self._counts, np.zeros((more, self._axes), np.uint16)])
        self._sums = np.concatenate([self._sums, np.zeros((more, self._axes))])
        self._maxima = np.concatenate([self._maxima, np.full((more, self._axes), np.nan)])

    def add(self, axis: int, slots: NDArray[np.intp], values: NDArray[np.float64]) -> None:
        """Each slot once. NaN is no sample."""
        known = ~np.isnan(values)
        slots, values = slots[known], values[known]
        self._counts[slots, axis] += 1
        self._sums[slots, axis] += values
        self._maxima[slots, axis] = np.fmax(self._maxima[slots, axis], values)

    def refuse(self, samples: int) -> None:
        self._refused += samples

    def row(self, slot: int) -> MinuteUsage:
        counts, sums = self._counts[[slot]], self._sums[[slot]]
        with np.errstate(invalid="ignore"):
            return MinuteUsage(counts, sums / counts, self._maxima[[slot]], 0)

    def clear(self, slot: int) -> None:
        """Its owner is gone; another one may come within the minute."""
        self._counts[slot], self._sums[slot], self._maxima[slot] = 0, 0.0, np.nan

    def take(self) -> MinuteUsage:
        """Since the last call."""
        with np.errstate(invalid="ignore"):
            taken = MinuteUsage(self._counts.copy(), self._sums / self._counts, self._maxima.copy(), self._refused)
        self._refused = 0
        self._counts.fill(0)
        self._sums.fill(0.0)
        self._maxima.fill(np.nan)
        return taken
