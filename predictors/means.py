"""Sums that leave out what is missing, without numpy's warnings for rows where everything is."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from predictors.protocol import Floats


def mean(values: NDArray[np.floating]) -> Floats:
    """Of each row; NaN where it has no sample."""
    present = np.isfinite(values)
    number = present.sum(axis=1)
    total = np.where(present, values, 0).sum(axis=1, dtype=np.float64)
    return np.where(number > 0, total / np.maximum(number, 1), np.nan)


def deviation(values: NDArray[np.floating], centre: Floats) -> Floats:
    """The standard deviation of each row; NaN where it has no sample."""
    away = values - centre[:, np.newaxis]
    return np.sqrt(mean(away * away))
