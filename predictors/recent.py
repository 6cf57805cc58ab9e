"""The last samples of each series, for models that look at no more."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from predictors.protocol import Floats


def recent(values: NDArray[np.float32], columns: int) -> NDArray[np.float32]:
    """Exactly so many columns, the missing ones on the left NaN. Infinite samples are no samples."""
    last = values[:, max(0, values.shape[1] - columns) :]
    wide = np.full((values.shape[0], columns), np.nan, dtype=np.float32)
    wide[:, columns - last.shape[1] :] = np.where(np.isfinite(last), last, np.nan)
    return wide


def latest(values: NDArray[np.floating]) -> Floats:
    """The newest sample of each row, NaN without any."""
    if not values.shape[1]:
        return np.full(values.shape[0], np.nan)
    present = np.isfinite(values)
    at = values.shape[1] - 1 - np.argmax(present[:, ::-1], axis=1)
    found = values[np.arange(values.shape[0]), at].astype(np.float64)
    return np.where(present.any(axis=1), found, np.nan)


def filled(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Gaps hold the sample before them, or the first one of the row."""
    present = np.isfinite(values)
    columns = np.arange(values.shape[1])
    before = np.maximum.accumulate(np.where(present, columns, -1), axis=1)
    first = np.argmax(present, axis=1)[:, np.newaxis]
    found: NDArray[np.float32] = np.take_along_axis(values, np.where(before < 0, first, before), axis=1)
    return found
