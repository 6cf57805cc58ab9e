"""The array types that the whole library uses."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

NOWHERE = -1
"""Instead of the index of a node: no node."""

TOLERANCE = 1e-9
"""Shares closer than this are the same: sums of decimal fractions are not exact."""
