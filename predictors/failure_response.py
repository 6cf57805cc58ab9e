"""How likely a probe fails by the load of the node and by what is known of the app: fitted to recorded probes.

The curve is that of `failure_curve_fit`. Each group of series (a workload) has a rate of its own at low loads, and is
more or less sensitive to load than the curve. Failures of one series come together, and last: two numbers say how much.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from predictors.failure_curve_fit import CurveParameters, failure_rates, fit_failure_curve

Floats = NDArray[np.float64]

LOW_LOAD = 0.6
"""Below it no probe fails for the load."""
BROKEN = 0.05
"""A group that fails more than this at low loads tells nothing about load."""
_PRIOR_WEIGHT, _IN_A_ROW = 2.0, 5.0
"""Less caution than where a decision depends on the curve: it has to describe what was recorded, and that failures come
together is counted for itself."""
_BIN, _MOST_LOAD = 0.05, 3.0
_BASE_WEIGHT = 2_000.0
"""Probes by which the curve's floor counts in the rate of a group at low loads."""
_SENSITIVITY_WEIGHT = 200.0
"""Expected failures by which a sensitivity of 1 counts."""
_SENSITIVITY = (0.1, 4.0)
_SEEN = 200.0
"""Probes of a bin from which on its load counts as seen."""
_RISKY = 0.01
"""From this probability on failures say whether they come together."""
_MOST = 0.98
_RARE = 1e-9


@dataclass(frozen=True, slots=True)
class FailureResponse:
    curve: CurveParameters
    base: Floats
    """By group: the probability at low loads."""
    sensitivity: Floats
    """By group: how much of the curve's rise it has."""
    together: float
    """The correlation of the probes of one series in one step: 0 is chance, 1 is all or none."""
    lasting: float
    """How much of it goes on in the next step."""
    highest_seen: float
    """The highest load with enough probes."""
    common: float = 0.0
    """What kind of load it was fitted to: kept for the caller."""
    likelihood: float = 0.0
    """The logarithm of that of the counts, to compare fits of the same counts to several kinds of load."""

    def probabilities(self, loads: Floats, groups: NDArray[np.integer]) -> Floats:
        rise = np.maximum(failure_rates(self.curve, loads) - self.curve.floor, 0.0)
        by_load = np.clip(self.sensitivity[groups] * rise, 0.0, 1.0)
        found: Floats = 1.0 - (1.0 - self.base[groups]) * (1.0 - by_load)
        return found


def fit_failure_response(
    loads: Floats,
    probes: Floats,
    failures: Floats,
    groups: NDArray[np.integer],
    prior: CurveParameters,
    common: float = 0.0,
) -> FailureResponse:
    """A row per series, a column per step, NaN where nothing is known. `groups`: the group of each row, from 0."""
    with np.errstate(invalid="ignore"):
        known = np.isfinite(loads) & (probes > 0) & (failures >= 0)
    number = int(groups.max(initial=-1)) + 1
    load, count = np.where(known, loads, 0.0), np.where(known, probes, 0.0)
    failed = np.where(known, np.minimum(failures, probes), 0.0)
    low = load < LOW_LOAD

    def by_group(values: Floats) -> Floats:
        return np.bincount(groups, values.sum(axis=1), number).astype(np.float64)

    calm, calm_failed = by_group(count * low), by_group(failed * low)
    base = (calm_failed + _BASE_WEIGHT * prior.floor) / (calm + _BASE_WEIGHT)
    sound = (base < BROKEN)[groups][:, np.newaxis] & known
    bins = np.minimum(load / _BIN, _MOST_LOAD / _BIN).astype(np.int64)
    size = int(_MOST_LOAD / _BIN) + 1

    def by_bin(values: Floats) -> Floats:
        return np.bincount(bins[sound], values[sound], size).astype(np.float64)

    binned = by_bin(count)
    some = binned > 0
    curve = fit_failure_curve(
        (by_bin(count * load) / np.maximum(binned, 1e-9))[some],
        binned[some],
        by_bin(failed)[some],
        prior,
        prior_weight=_PRIOR_WEIGHT,
        in_a_row=_IN_A_ROW,
    )
    rise = np.maximum(failure_rates(curve, load) - curve.floor, 0.0)
    expected = by_group(count * rise)
    beyond = np.maximum(by_group(failed) - by_group(count * base[groups][:, np.newaxis]), 0.0)
    sensitivity = np.clip((beyond + _SENSITIVITY_WEIGHT) / (expected + _SENSITIVITY_WEIGHT), *_SENSITIVITY)
    seen = np.flatnonzero(binned >= _SEEN)
    highest = float((seen[-1] + 1) * _BIN) if len(seen) else 0.0
    found = FailureResponse(curve, base, sensitivity, 0.0, 0.0, highest)
    chance = found.probabilities(load, groups[:, np.newaxis] * np.ones(load.shape[1], np.int64))
    together, lasting = _clustering(count, failed, chance)
    log = np.log(np.clip(chance, _RARE, 1.0 - _RARE)), np.log1p(-np.clip(chance, _RARE, 1.0 - _RARE))
    likelihood = float((failed * log[0] + (count - failed) * log[1]).sum())
    return replace(found, together=together, lasting=lasting, common=common, likelihood=likelihood)


def _clustering(count: Floats, failed: Floats, chance: Floats) -> tuple[float, float]:
    """By moments: how far the failures of a step are from the expected number, and whether the next step is, too."""
    risky = (chance >= _RISKY) & (count > 1)
    variance = chance * (1.0 - chance)
    rest = np.where(risky, failed - count * chance, 0.0)
    pairs = (count * (count - 1.0) * variance)[risky].sum()
    if pairs <= 0:
        return 0.0, 0.0
    together = float(np.clip((rest[risky] ** 2 - (count * variance)[risky]).sum() / pairs, 0.0, _MOST))
    spread = np.where(risky, count * np.sqrt(variance), 0.0)
    both = together * (spread[:, 1:] * spread[:, :-1]).sum()
    lasting = float(np.clip((rest[:, 1:] * rest[:, :-1]).sum() / both, 0.0, _MOST)) if both > 0 else 0.0
    return together, lasting
