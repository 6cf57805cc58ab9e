"""Each series' own ridge regression on its last samples.

The normal equations are made of autocovariances, so 20,000 series are solved at once, again for each forecast: nothing
is stored, and nothing grows old.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from predictors.means import mean
from predictors.protocol import Floats, History, Target
from predictors.recent import recent


@dataclass(frozen=True, slots=True)
class Ridge:
    lags: int = 24
    columns: int = 288
    penalty: float = 0.02
    """As a share of the variance."""
    name: str = "ridge"
    target: Target = Target.VALUE

    def predict(self, history: History, minutes: Sequence[float]) -> Floats:
        window = recent(history.values, self.columns)
        centre = mean(window)
        away = np.nan_to_num(window - centre[:, np.newaxis].astype(np.float32))
        ahead = [min(history.steps(horizon), self.columns - 1) for horizon in minutes]
        covariances = _autocovariances(away, self.lags + max(ahead))
        weights = self._weights(covariances, ahead)
        newest_first = away[:, : -self.lags - 1 : -1].astype(np.float64)
        predicted = centre[:, np.newaxis] + np.einsum("nl,nlh->nh", newest_first, weights)
        enough = np.isfinite(window).sum(axis=1) >= 3 * self.lags
        return np.where(enough[:, np.newaxis], predicted, np.nan)

    def _weights(self, covariances: Floats, ahead: Sequence[int]) -> Floats:
        """Rows, lags, horizons: the solutions of (R + penalty) w = r."""
        lag = np.arange(self.lags)
        between = covariances[:, np.abs(lag[:, np.newaxis] - lag)]
        floor = self.penalty * covariances[:, :1] + float(np.finfo(np.float32).tiny)
        between[:, lag, lag] += floor
        towards = covariances[:, lag[:, np.newaxis] + np.asarray(ahead)]
        return np.linalg.solve(between, towards).astype(np.float64, copy=False)


def _autocovariances(away: NDArray[np.float32], lags: int) -> Floats:
    """Of lags 0 to `lags` less one, all divided by the same number, which keeps the matrix positive."""
    columns = away.shape[1]
    found = [
        np.einsum("nt,nt->n", away[:, lag:], away[:, : columns - lag]) if lag < columns else np.zeros(len(away))
        for lag in range(lags)
    ]
    covariances: Floats = np.stack(found, axis=1).astype(np.float64) / columns
    return covariances
