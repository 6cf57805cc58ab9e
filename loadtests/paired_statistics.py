"""Confidence intervals of paired differences."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import fmean, stdev

STUDENT_95 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131)
"""Two-sided 95 % quantiles of Student's t for 1 to 15 degrees of freedom; above that 2.09 is on the safe side to 20."""


@dataclass(frozen=True, slots=True)
class Interval:
    """Of the mean paired difference, rematch less default."""

    mean: float
    low: float
    high: float

    def favours(self, sign: float) -> bool:
        return self.low > 0 if sign > 0 else self.high < 0


def paired_interval(differences: list[float]) -> Interval:
    number = len(differences)
    quantile = STUDENT_95[number - 2] if number - 2 < len(STUDENT_95) else 2.09
    mean = fmean(differences)
    half = quantile * stdev(differences) / math.sqrt(number)
    return Interval(mean, mean - half, mean + half)
