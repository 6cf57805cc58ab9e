"""What is measured: relative errors, misses at equal slack, coverage. Intervals are bootstrapped over series, because
the windows of one series are not independent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from loadtests.forecasting.walk import Floats

SHORT = 0.2
"""A window is missed when the estimate is short by more than this share of capacity."""
FEWEST_ORIGINS = 100
DRAWS = 2000


def relative_errors(forecasts: Floats, last_value: Floats, actual: Floats) -> Floats:
    """Series by horizons: mean absolute error as a share of the last value's. Arrays are origins by series by
    horizons; series with too few origins, or whose last value never errs, are NaN."""
    known = np.isfinite(actual) & np.isfinite(forecasts)
    ours, theirs = (np.where(known, np.abs(each - actual), 0.0).sum(axis=0) for each in (forecasts, last_value))
    usable = (known.sum(axis=0) >= FEWEST_ORIGINS) & (theirs > 0)
    return np.where(usable, np.maximum(ours, 1e-4 * theirs) / np.where(usable, theirs, 1.0), np.nan)


def geometric_mean(errors: Floats) -> Floats:
    """Over series (rows), per horizon; NaN for a model that has no answer for any of them."""
    logs = np.log(errors[np.isfinite(errors).all(axis=1)])
    if not len(logs):
        return np.full(errors.shape[1], np.nan)
    mean: Floats = np.exp(logs.mean(axis=0))
    return mean


@dataclass(frozen=True, slots=True)
class PeakRow:
    """Per series: windows, missed windows, and the sum of the slack, of an estimator and of ours at equal slack."""

    missed: float
    slack: float
    ours_missed: float
    ours_slack: float
    higher_by: tuple[float, float]
    """95 % interval of our misses less theirs, as a share of windows."""

    def not_worse(self) -> bool:
        return self.higher_by[0] <= 0


def at_equal_slack(theirs: Floats, ours: Floats, now: Floats, came: Floats) -> PeakRow:
    """Origins by series. Our distance from the present use is stretched until the mean slack is theirs."""
    known = np.isfinite(theirs) & np.isfinite(ours) & np.isfinite(came)
    stretched = _stretched(ours, now, known, float((theirs - came)[known].mean()), came)
    their_misses, our_misses = (_misses(each, came, known) for each in (theirs, stretched))
    windows = known.sum(axis=0)
    low, high = _bootstrap(our_misses - their_misses, windows)
    return PeakRow(
        float(their_misses.sum() / windows.sum()),
        float((theirs - came)[known].mean()),
        float(our_misses.sum() / windows.sum()),
        float((stretched - came)[known].mean()),
        (low, high),
    )


def _stretched(ours: Floats, now: Floats, known: npt.NDArray[np.bool_], slack: float, came: Floats) -> Floats:
    low, high = 0.0, 50.0
    for _ in range(40):
        factor = (low + high) / 2
        if float((now + factor * (ours - now) - came)[known].mean()) < slack:
            low = factor
        else:
            high = factor
    return now + high * (ours - now)


def _misses(bound: Floats, came: Floats, known: npt.NDArray[np.bool_]) -> Floats:
    missed: Floats = (known & (came - np.where(known, bound, 0.0) > SHORT)).sum(axis=0).astype(np.float64)
    return missed


def _bootstrap(differences: Floats, windows: npt.NDArray[np.int_]) -> tuple[float, float]:
    draw = np.random.default_rng(1)
    chosen = draw.integers(len(differences), size=(DRAWS, len(differences)))
    means = differences[chosen].sum(axis=1) / np.maximum(windows[chosen].sum(axis=1), 1)
    low, high = np.percentile(means, [2.5, 97.5])
    return float(low), float(high)


@dataclass(frozen=True, slots=True)
class Coverage:
    series: int
    mean: float
    within_three_points: float
    """Share of the series whose coverage differs from the promise by at most 3 points."""
    slack: float


def coverage_of(held: Sequence[Floats], slack: Sequence[Floats], promise: float) -> Coverage:
    """Per series, whether each window held and by how much."""
    shares = np.array([each.mean() for each in held if len(each)])
    return Coverage(
        len(shares),
        float(shares.mean()),
        float((np.abs(shares - promise) <= 0.03).mean()),
        float(np.concatenate(slack).mean()),
    )
