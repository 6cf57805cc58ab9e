"""How probes respond to load, as a replay takes it from the record."""

from __future__ import annotations

import numpy as np

from predictors.failure_curve_fit import CurveParameters
from predictors.failure_response import fit_failure_response

PRIOR = CurveParameters(floor=0.0005, ceiling=0.6, midpoint=1.02, width=0.03)
GROUPS = np.zeros(1, np.int64)


def fitted(load: float, share: float, steps: int) -> float:
    """The probability at this load, after steps of 15 probes of which this share failed."""
    loads, probes = np.full((1, steps), load), np.full((1, steps), 15.0)
    response = fit_failure_response(loads, probes, share * probes, GROUPS, PRIOR)
    return float(response.probabilities(np.array([load]), GROUPS)[0])


def test_a_day_at_a_load_is_believed_and_not_the_prior() -> None:
    expected = fitted(0.97, 0.0, 0)
    assert expected > 0.08
    assert fitted(0.97, 0.005, 100) < 0.2 * expected


def test_a_single_step_is_not_believed() -> None:
    assert fitted(0.97, 0.0, 1) > 0.5 * fitted(0.97, 0.0, 0)
