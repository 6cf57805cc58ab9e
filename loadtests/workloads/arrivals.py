"""When requests start: fixed by a seed alone, so that both arms of an experiment get the same load."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum


class Arrival(StrEnum):
    POISSON = "poisson"
    CONSTANT = "constant"


@dataclass(frozen=True, slots=True)
class RateStep:
    """From `start` (seconds into the run) on, `rate` requests per second."""

    start: float
    rate: float


@dataclass(frozen=True, slots=True)
class AppLoad:
    app: str
    steps: tuple[RateStep, ...]
    """By rising start; the last one holds to the end."""


def arrival_times(load: AppLoad, arrival: Arrival, seed: int, duration: float) -> Iterator[float]:
    """Seconds into the run. A unit-rate process is stretched by the rates, so a step changes nothing before it."""
    source = random.Random(f"{seed}/{load.app}")
    target = source.expovariate(1.0) if arrival is Arrival.POISSON else source.random()
    ends = [*(min(step.start, duration) for step in load.steps[1:]), duration]
    expected = 0.0
    for step, end in zip(load.steps, ends, strict=True):
        begin = min(step.start, duration)
        expected_here = step.rate * (end - begin)
        while target < expected + expected_here:
            yield begin + (target - expected) / step.rate
            target += source.expovariate(1.0) if arrival is Arrival.POISSON else 1.0
        expected += expected_here
