"""Fits the curve of probe failures by node load to counted probes, starting from a prior.

The posterior is searched on grids that zoom in on the best point. That always ends, needs no start value and no
derivative, and leaves the prior as it is where there are no counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import astuple, dataclass

import numpy as np
from numpy.typing import NDArray

from predictors.protocol import Numbers

Floats = NDArray[np.float64]

PROBES_IN_A_ROW = 50.0
"""So many probes tell as much as one: a pod that fails once fails again and again, and with it its neighbours."""
PRIOR_WEIGHT = 20.0
"""The prior counts as so many independent probes at each of `_PRIOR_LOADS`."""
_MOST_LOAD = 100.0
"""Higher ones are no different, and would overflow."""
_MOST = 1e6
"""Independent probes that one bin may count for."""
_PRIOR_LOADS = np.arange(0.05, 1.5, 0.05)
_LOW = np.array([1e-5, 0.1, 0.8, 0.01])
_HIGH = np.array([0.02, 1.0, 1.4, 0.1])
"""Bounds of floor, ceiling, midpoint and width: whatever was counted, a node at half its load is never expected to fail
more than 7 % of the probes."""
_LOGARITHMIC = np.array([True, False, False, True])
_COARSE, _FINE = 9, 5
"""Points per axis of the first grid and of the others."""
_SHRINK = 0.7
_ZOOMS = 24
_AT_ONCE = 256
"""Sets of parameters: a large grid at all loads takes 30 MiB."""


@dataclass(frozen=True, slots=True)
class CurveParameters:
    """See `matching.failure_curve.FailureCurve`."""

    floor: float
    ceiling: float
    midpoint: float
    width: float


def fit_failure_curve(
    loads: Numbers,
    probes: Numbers,
    failures: Numbers,
    prior: CurveParameters,
    *,
    prior_weight: float = PRIOR_WEIGHT,
    in_a_row: float = PROBES_IN_A_ROW,
) -> CurveParameters:
    """One value of each per bin: the mean load, how many probes there were, and how many of them failed. Bins that
    make no sense (NaN, infinite, negative, empty) are left out."""
    counted = _independent(in_a_row, *(np.asarray(each, dtype=np.float64) for each in (loads, probes, failures)))
    start = np.clip(np.array(astuple(prior)), _LOW, _HIGH)
    expected = prior_weight * _rates(start[np.newaxis], _PRIOR_LOADS)[0]
    where = np.concatenate([counted[0], _PRIOR_LOADS])
    failed = np.concatenate([counted[1], expected])
    succeeded = np.concatenate([counted[2], prior_weight - expected])
    best, likelihood = start, _likelihoods(start[np.newaxis], where, failed, succeeded)[0]
    for shrunk, points in _zooms():
        candidates = _grid(best, shrunk, points)
        found = _likelihoods(candidates, where, failed, succeeded)
        top = int(np.argmax(found))
        if found[top] > likelihood:
            best, likelihood = candidates[top], found[top]
    return CurveParameters(*map(float, best))


def failure_rates(parameters: CurveParameters, loads: Numbers) -> Floats:
    """The probability to fail at each load."""
    wanted = np.asarray(loads, dtype=np.float64)
    rates: Floats = _rates(np.array([astuple(parameters)]), wanted.reshape(-1))[0].reshape(wanted.shape)
    return rates


def _independent(in_a_row: float, loads: Floats, probes: Floats, failures: Floats) -> tuple[Floats, Floats, Floats]:
    """Loads, failures and successes of the bins that can be used, as numbers of independent probes."""
    with np.errstate(invalid="ignore"):
        usable = np.isfinite(loads) & (loads >= 0) & np.isfinite(probes) & (probes > 0) & (failures >= 0)
    loads, probes, failures = loads[usable], probes[usable], np.minimum(failures[usable], probes[usable])
    weight = np.minimum(probes / in_a_row, _MOST)
    failed = weight * (failures / probes)
    return np.minimum(loads, _MOST_LOAD), failed, weight - failed


def _likelihoods(parameters: Floats, loads: Floats, failed: Floats, succeeded: Floats) -> Floats:
    found = np.empty(len(parameters))
    for start in range(0, len(parameters), _AT_ONCE):
        part = slice(start, start + _AT_ONCE)
        rates = _rates(parameters[part], loads)
        found[part] = np.log(rates) @ failed + np.log1p(-np.minimum(rates, 1 - 1e-12)) @ succeeded
    return found


def _rates(parameters: Floats, loads: Floats) -> Floats:
    """The probability to fail, a row per set of parameters and a column per load."""
    floor, ceiling, midpoint, width = (column[:, np.newaxis] for column in parameters.T)
    exponent = np.clip((midpoint - loads) / width, -60.0, 60.0)
    rates: Floats = floor + (ceiling - floor) / (1.0 + np.exp(exponent))
    return rates


def _zooms() -> Iterator[tuple[float, int]]:
    """Half the width of each grid as a share of the bounds, and its points per axis."""
    yield 1.0, _COARSE
    for zoom in range(_ZOOMS):
        yield 0.5 * _SHRINK**zoom, _FINE


def _grid(centre: Floats, half: float, points: int) -> Floats:
    """All combinations of values around the centre, within the bounds."""
    low, high, middle = (_scaled(each) for each in (_LOW, _HIGH, centre))
    reach = half * (high - low)
    axes = [
        np.linspace(max(lowest, at - span), min(highest, at + span), points)
        for lowest, highest, at, span in zip(low, high, middle, reach, strict=True)
    ]
    combined = np.stack([each.ravel() for each in np.meshgrid(*axes, indexing="ij")], axis=1)
    return np.where(_LOGARITHMIC, np.exp(np.where(_LOGARITHMIC, combined, 0.0)), combined)


def _scaled(values: Floats) -> Floats:
    return np.where(_LOGARITHMIC, np.log(np.where(_LOGARITHMIC, values, 1.0)), values)
