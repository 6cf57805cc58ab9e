"""Raw samples of one series onto a grid of common times; what cannot be true is left out and said.

Nothing is repaired by guessing: a sample that is doubted is no sample.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from predictors.protocol import Floats, Numbers

FUTURE_SECONDS = 60.0
"""So much may clocks differ."""
UNIT_FACTORS = np.log([1e3, 1024.0, 1e6, 1024.0**2, 1e9, 1024.0**3])
"""A series that jumps by one of these factors and stays there was measured in another unit (cores and millicores, KiB
and bytes): both sides cannot be true at once. An idle pod that wakes up jumps as far, but seldom to the same factor."""
UNIT_TOLERANCE = 0.15
UNIT_SAMPLES = 5
"""On each side of the jump."""


class Fault(StrEnum):
    NOT_A_NUMBER = "not a number"
    NEGATIVE = "negative"
    FUTURE = "in the future"
    BACKWARDS = "out of order"
    DUPLICATE = "a second sample for the same time"
    UNIT = "another unit"
    GAP = "gap"


@dataclass(frozen=True, slots=True)
class Grid:
    """Columns at `end`, `end - step`, ...; as many as `columns`."""

    end: float
    step: float
    columns: int


@dataclass(frozen=True, slots=True)
class CleanSeries:
    values: NDArray[np.float32]
    """One per column of the grid, NaN where there is no sample to trust."""
    faults: dict[Fault, int]
    """How many samples were refused, or for a gap how many columns between the first and the last sample are empty."""


def clean(times: Numbers, values: Numbers, grid: Grid) -> CleanSeries:
    """Of samples in one bucket the newest counts; of several for one time, the first that came."""
    when, what, faults = _plausible(np.asarray(times, np.float64), np.asarray(values, np.float64), grid)
    kept = _one_unit(what)
    faults[Fault.UNIT] += int((~kept).sum())
    on_grid = _placed(when[kept], what[kept], grid)
    faults[Fault.GAP] += _gaps(on_grid)
    return CleanSeries(on_grid, {fault: number for fault, number in faults.items() if number})


def rates(times: Numbers, counts: Numbers) -> tuple[Floats, Floats, int]:
    """A counter's rate per second at each time but the first, and how often it was reset.

    Across a reset the rate is unknown (NaN): how far the counter got before it cannot be seen.
    """
    when, what = np.asarray(times, np.float64), np.asarray(counts, np.float64)
    seconds, more = np.diff(when), np.diff(what)
    reset = more < 0
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = np.where(reset | ~(seconds > 0), np.nan, more / seconds)
    return when[1:], rate, int(reset.sum())


def _plausible(times: Floats, values: Floats, grid: Grid) -> tuple[Floats, Floats, Counter[Fault]]:
    """In the order of time. A sample out of order counts where it belongs: it came late, but it is true."""
    with np.errstate(invalid="ignore", over="ignore"):
        refused = {
            Fault.NOT_A_NUMBER: ~(np.isfinite(values.astype(np.float32)) & np.isfinite(times)),
            Fault.NEGATIVE: values < 0,
            Fault.FUTURE: times > grid.end + FUTURE_SECONDS,
        }
    faults = Counter({fault: int(where.sum()) for fault, where in refused.items()})
    kept = ~np.logical_or.reduce(list(refused.values()))
    times, values = times[kept], values[kept]
    faults[Fault.BACKWARDS] += int((np.diff(times) < 0).sum())
    order = np.argsort(times, kind="stable")
    times, values = times[order], values[order]
    again = np.zeros(len(times), dtype=bool)
    again[1:] = np.diff(times) == 0
    faults[Fault.DUPLICATE] += int(again.sum())
    return times[~again], values[~again], faults


def _one_unit(values: Floats) -> NDArray[np.bool_]:
    """The samples since the last lasting jump by the factor of a unit. Zeros have no unit."""
    positive = np.flatnonzero(values > 0)
    if len(positive) < 2 * UNIT_SAMPLES:
        return np.ones(len(values), dtype=bool)
    logs = np.log(values[positive])
    windows = np.lib.stride_tricks.sliding_window_view(logs, UNIT_SAMPLES)
    before, after = windows[:-UNIT_SAMPLES], windows[UNIT_SAMPLES:]
    apart = np.maximum(after.min(axis=1) - before.max(axis=1), before.min(axis=1) - after.max(axis=1))
    factor = np.abs(np.median(after, axis=1) - np.median(before, axis=1))
    unit = (np.abs(factor[:, np.newaxis] - UNIT_FACTORS) < UNIT_TOLERANCE).any(axis=1)
    jumps = np.flatnonzero(unit & (apart > UNIT_FACTORS[0] / 2))
    start = positive[jumps[-1] + UNIT_SAMPLES] if len(jumps) else 0
    return np.arange(len(values)) >= start


def _placed(times: Floats, values: Floats, grid: Grid) -> NDArray[np.float32]:
    placed = np.full(grid.columns, np.nan, dtype=np.float32)
    with np.errstate(over="ignore"):  # times of long before the grid
        columns = grid.columns - 1 - np.floor((grid.end + grid.step / 2 - times) / grid.step)
    inside = (columns >= 0) & (columns < grid.columns)
    placed[columns[inside].astype(np.intp)] = values[inside]  # times rise, so the newest of a bucket stays
    return placed


def _gaps(values: NDArray[np.float32]) -> int:
    known = np.flatnonzero(np.isfinite(values))
    return int(known[-1] - known[0] + 1 - len(known)) if len(known) else 0
