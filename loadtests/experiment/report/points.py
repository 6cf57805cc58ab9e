"""The points of a curve: means over the seeds that were valid, and how many those were."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean

from loadtests.experiment.design import STEPS, Arm
from loadtests.experiment.records import StepRecord
from loadtests.experiment.statistics import Results, interval_of


@dataclass(frozen=True, slots=True)
class Point:
    mean: float | None
    valid: int
    """Seeds that the mean is of."""
    half: float | None = None
    """Of the 95 % interval; None where there is none."""


@dataclass(frozen=True, slots=True)
class Curve:
    points: Sequence[Point]
    seeds: int
    """That the arm was measured with."""

    @property
    def means(self) -> list[float | None]:
        return [point.mean for point in self.points]

    @property
    def valid(self) -> list[int]:
        return [point.valid for point in self.points]

    @property
    def symbols(self) -> list[str]:
        """Hollow where seeds are missing: a neighbour of more seeds may be higher for that alone."""
        return ["circle" if point.valid == self.seeds else "circle-open" for point in self.points]


def curve(results: Results, arm: Arm, value: Callable[[StepRecord], float]) -> Curve:
    found = ([value(record) for record in results.at(arm, step)] for step in STEPS)
    return Curve([_point(values) for values in found], len(results.seeds(arm)))


def difference_curve(results: Results, arm: Arm) -> Curve:
    found = (list(results.differences(arm, step).values()) for step in STEPS)
    return Curve([_point(values) for values in found], len(results.seeds(arm)))


def _point(values: Sequence[float]) -> Point:
    if not values:
        return Point(None, 0)
    interval = interval_of(values)
    return Point(fmean(values), len(values), interval.high - interval.mean if interval else None)
