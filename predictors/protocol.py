"""What an estimate of a peak looks like from outside; every estimator passes the same contract tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Numbers = Sequence[float] | NDArray[np.floating]


class PeakEstimator(Protocol):
    def estimate(self, values: Numbers, times: Numbers) -> float:
        """The most that one series will need soon. Never below its latest value; NaN samples are no samples.

        NaN when there is no sample at all: unknown is not zero.
        """
        ...

    def estimate_rows(self, rows: NDArray[np.floating]) -> NDArray[np.float64]:
        """The same for many series sampled at common times: one row each, oldest column first."""
        ...
