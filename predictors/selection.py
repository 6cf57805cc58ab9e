"""Per series and horizon, the models that have recently erred least."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from predictors.protocol import Floats
from predictors.series_rows import moved

HALF_LIFE = 200.0
"""Forecasts after which an error counts half."""
_KEEP = 0.5 ** (1 / HALF_LIFE)
PRIOR_FORECASTS = 15.0
"""The prior counts as so many forecasts: with a short history it decides alone."""
PRIORS = {"last-value": 1.0, "smoothing": 0.95, "seasonal": 1.05, "ridge": 0.95, "boosted": 0.75}
"""The error of each model before anything is known of a series, as a share of the last value's."""
UNKNOWN_PRIOR = 1.0
SHARPNESS = 16.0
"""A model that errs 5 % more than the best has half its weight, one that errs 30 % more has next to none: the mean of
models that are equally good errs less than any of them."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Arrays are series by models by horizons. The first model is the last value, which measures the others."""

    models: tuple[str, ...]
    errors: Floats
    """Decayed sums of absolute errors."""
    numbers: Floats
    """Decayed numbers of errors."""

    def observe(self, forecasts: Floats, actual: Floats) -> Selection:
        """What was forecast once, and what came (series by horizons); NaN tells nothing."""
        away = np.abs(forecasts - actual[:, np.newaxis, :])
        known = np.isfinite(away)
        errors = np.where(known, _KEEP * self.errors + np.where(known, away, 0.0), self.errors)
        numbers = np.where(known, _KEEP * self.numbers + 1.0, self.numbers)
        return replace(self, errors=errors, numbers=numbers)

    def choose(self, forecasts: Floats) -> tuple[Floats, NDArray[np.intp]]:
        """A mean of the best models that have an answer, NaN where none has; and which model is the best."""
        known = np.isfinite(forecasts)
        scores = np.where(known, self._scores(), np.inf)
        best = np.argmin(scores, axis=1)
        least = np.where(known.any(axis=1), scores.min(axis=1), 1.0)
        weights = (least[:, np.newaxis, :] / scores) ** SHARPNESS
        total = weights.sum(axis=1)
        mixed = (weights * np.where(known, forecasts, 0.0)).sum(axis=1)
        return np.where(total > 0, mixed / np.where(total > 0, total, 1.0), np.nan), best

    def rows(self, former: NDArray[np.intp]) -> Selection:
        """For other series, see `former_rows`."""
        return replace(self, errors=moved(self.errors, former), numbers=moved(self.numbers, former))

    def _scores(self) -> Floats:
        """Where the last value has not erred, the priors alone order the models."""
        prior = np.array([PRIORS.get(name, UNKNOWN_PRIOR) for name in self.models])[np.newaxis, :, np.newaxis]
        reference = self.errors[:, :1] / np.maximum(self.numbers[:, :1], 1.0)
        unit = np.where(reference > 0, reference, 1.0)
        return (self.errors + PRIOR_FORECASTS * prior * unit) / (self.numbers + PRIOR_FORECASTS)


def new_selection(models: tuple[str, ...], series: int, horizons: int) -> Selection:
    shape = (series, len(models), horizons)
    return Selection(models, np.zeros(shape), np.zeros(shape))
