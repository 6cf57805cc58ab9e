"""How probes respond to load, fitted to the first days of the record; and fits to days drawn again, for its error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import numpy as np

from matching.failure_curve import FailureCurve
from predictors.failure_curve_fit import CurveParameters
from predictors.failure_response import FailureResponse, fit_failure_response
from reactor.replay.given import Given, Loads
from reactor.replay.recorded import STEP

TRAINED = 0.7
"""Share of the days that the response is fitted to."""
_MINUTES = STEP / 60
_COMMON = (0.0, 0.5, 1.0)
"""Whether pods that use little suffer on a full node is not known: what explains the record best is taken."""
_PRIOR = CurveParameters(**asdict(FailureCurve()))


def trained_steps(given: Given) -> int:
    """The first step that is not fitted: the begin of a day."""
    days = max(1, round(TRAINED * given.days))
    return min(days * given.day // STEP, given.steps)


def recorded_loads(given: Given) -> Loads:
    """By replica and step, where they were; NaN where they were not."""
    every = [given.loads(given.recorded_node[:, step], step) for step in range(given.steps)]
    return Loads(np.stack([each.felt for each in every], axis=1), np.stack([each.node for each in every], axis=1))


def fitted_responses(given: Given, number: int, seed: int = 0) -> list[FailureResponse]:
    """The first is fitted to all training days, the others to as many days drawn from them."""
    loads = recorded_loads(given)
    source = np.random.default_rng(seed)
    days = -(-trained_steps(given) * STEP // given.day)
    drawn = [list(range(days)), *(sorted(source.integers(days, size=days).tolist()) for _ in range(number - 1))]
    return [_fitted(given, loads, each) for each in drawn]


def _fitted(given: Given, loads: Loads, days: Sequence[int]) -> FailureResponse:
    per_day = given.day // STEP
    every = np.arange(trained_steps(given))
    steps = np.concatenate([every[every // per_day == day] for day in days])
    probes, failures = (each[:, steps].astype(np.float64) * _MINUTES for each in given.observed)
    found = [
        fit_failure_response(loads.seen(common)[:, steps], probes, failures, given.workload, _PRIOR, common)
        for common in _COMMON
    ]
    return max(found, key=lambda each: each.likelihood)
