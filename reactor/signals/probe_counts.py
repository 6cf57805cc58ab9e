"""Decayed counts of successful and failed liveness probes."""

from __future__ import annotations

import math
from dataclasses import dataclass

from msgspec import Struct


def decay(age: float, half_life: float) -> float:
    """The weight of one probe `age` seconds later; a probe dated in the future has its full weight."""
    return 1.0 if age <= 0 else 0.5 ** (age / half_life)


def spread(count: float, first: float, last: float, half_life: float) -> float:
    """The weight at `last` of `count` probes that happened evenly from `first` to `last`."""
    halvings = (last - first) / half_life * math.log(2)
    if halvings < 1e-12:
        return count
    return count * (-math.expm1(-halvings) / halvings)


@dataclass(frozen=True, slots=True)
class ProbeCounts:
    """Decayed numbers of successful and failed liveness probes."""

    successes: float = 0.0
    failures: float = 0.0
    counted: float = 0.0
    """Failures that the kubelet's counters show; the others are known by Events alone."""


class Span(Struct, frozen=True, gc=False):
    """The time in which a number of probes happened, evenly from `first` to `last`."""

    first: float
    last: float

    def weight(self, count: float, now: float, half_life: float) -> float:
        return spread(count, self.first, self.last, half_life) * decay(now - self.last, half_life)
