"""Array types, and the index that stands for no node."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

Ints = npt.NDArray[np.int64]

Mask = npt.NDArray[np.bool_]

NOWHERE = -1
"""Instead of the index of a node: no node."""
