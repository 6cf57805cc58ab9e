"""What is kept per series follows it when series come and go."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from predictors.protocol import Floats


def former_rows(before: Sequence[str], now: Sequence[str]) -> NDArray[np.intp]:
    """Where each series of now was before, -1 for new ones."""
    places = {key: row for row, key in enumerate(before)}
    return np.array([places.get(key, -1) for key in now], dtype=np.intp)


def moved(array: Floats, former: NDArray[np.intp], new: float = 0.0) -> Floats:
    """The rows of the array where the series are now; new series get `new`."""
    if not len(array):
        return np.full((len(former), *array.shape[1:]), new)
    known = (former >= 0).reshape(-1, *(1,) * (array.ndim - 1))
    return np.where(known, array[np.maximum(former, 0)], new)
