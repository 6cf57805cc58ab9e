"""Bounds that hold as often as promised, per series and horizon: online conformal calibration by quantile tracking.

After each window the bound rises a little if it was exceeded and falls a little if not, in such a ratio that only the
promised share of windows lies below it in balance, whatever the series does (Angelopoulos et al. 2023, "Conformal PID
control"; Gibbs and Candes 2021).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from predictors.protocol import Floats
from predictors.series_rows import moved

PROMISE = 0.95
RATE = 0.025
"""A miss raises the bound by so much of the usual distance between the model and what came. Higher rates keep the
promise in shorter times, with more slack."""
SPREAD_HALF_LIFE = 100.0
ENOUGH = 200
"""Resolved windows from which on a bound is called calibrated."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """Arrays are series by horizons."""

    offset: Floats
    """Added to what the model says."""
    spread: Floats
    """Decayed mean distance between the model and what came."""
    resolved: Floats
    """Windows that ended."""
    promise: Floats
    """The share of the windows in which the bound shall hold."""

    def observe(self, said: Floats, bound: Floats, came: Floats, cut: NDArray[np.bool_]) -> Calibration:
        """What the model said, what was promised, and the most that came. Where demand was cut, a bound above what
        came may still have been too low: such a window is no evidence."""
        missed = came > bound
        known = np.isfinite(said) & np.isfinite(came) & np.isfinite(bound) & (missed | ~cut)
        weight = np.maximum(1 - 0.5 ** (1 / SPREAD_HALF_LIFE), 1 / (self.resolved + 1))
        spread = np.where(known, self.spread + weight * (np.abs(came - said) - self.spread), self.spread)
        step = RATE * spread * (missed - (1 - self.promise))
        return Calibration(
            np.where(known, self.offset + step, self.offset),
            spread,
            np.where(known, self.resolved + 1, self.resolved),
            self.promise,
        )

    def bound(self, said: Floats, now: Floats) -> Floats:
        """Never below what is used now."""
        return np.fmax(said + self.offset, now[:, np.newaxis])

    def calibrated(self) -> NDArray[np.bool_]:
        return self.resolved >= ENOUGH

    def promising(self, shares: Floats) -> Calibration:
        """The share of each series; a bound that has to keep another promise now has yet to show that it does."""
        promise = np.repeat(shares[:, np.newaxis], self.promise.shape[1], axis=1)
        return replace(self, promise=promise, resolved=np.where(np.isclose(promise, self.promise), self.resolved, 0.0))

    def rows(self, former: NDArray[np.intp]) -> Calibration:
        """For other series, see `former_rows`."""
        return replace(
            self,
            offset=moved(self.offset, former),
            spread=moved(self.spread, former),
            resolved=moved(self.resolved, former),
            promise=moved(self.promise, former, PROMISE),
        )


def new_calibration(series: int, horizons: int) -> Calibration:
    shape = (series, horizons)
    return Calibration(np.zeros(shape), np.zeros(shape), np.zeros(shape), np.full(shape, PROMISE))
