"""The fitted curve: the prior without counts, the true curve with many, and never nonsense."""

from __future__ import annotations

import math
from dataclasses import astuple

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from predictors.failure_curve_fit import CurveParameters, fit_failure_curve

PRIOR = CurveParameters(0.0005, 0.6, 1.0, 0.05)
LOADS = np.arange(0.025, 1.5, 0.05)

counts = st.one_of(st.floats(), st.sampled_from([0.0, 1.0, 1e9, 1e300, -1.0, math.nan, math.inf]))
bins = st.lists(st.tuples(counts, counts, counts), max_size=31)


def rates(curve: CurveParameters, loads: NDArray[np.float64] = LOADS) -> NDArray[np.float64]:
    exponent = np.clip((curve.midpoint - loads) / curve.width, -60, 60)
    return curve.floor + (curve.ceiling - curve.floor) / (1 + np.exp(exponent))


def test_without_counts_the_prior_stays_as_it_is() -> None:
    assert fit_failure_curve([], [], [], PRIOR) == PRIOR
    assert fit_failure_curve([0.5, 1.0], [0.0, 0.0], [0.0, 0.0], PRIOR) == PRIOR


@settings(max_examples=30, deadline=None)
@given(st.floats(0.0001, 0.01), st.floats(0.3, 0.95), st.floats(0.85, 1.15), st.floats(0.02, 0.08))
def test_a_curve_is_found_again_in_enough_counts(floor: float, ceiling: float, midpoint: float, width: float) -> None:
    true = CurveParameters(floor, ceiling, midpoint, width)
    probes = np.full(len(LOADS), 1e7)
    fitted = fit_failure_curve(LOADS, probes, probes * rates(true), PRIOR)
    assert np.abs(rates(fitted) - rates(true)).max() < 0.01


@pytest.mark.parametrize("seed", range(5))
def test_a_curve_is_found_again_in_random_counts(seed: int) -> None:
    true = CurveParameters(0.001, 0.4, 0.92, 0.03)
    probes = np.full(len(LOADS), 200_000.0)
    failures = np.random.default_rng(seed).binomial(200_000, rates(true)).astype(np.float64)
    assert np.abs(rates(fit_failure_curve(LOADS, probes, failures, PRIOR)) - rates(true)).max() < 0.02


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 100), st.floats(0, 1), st.integers(0, len(LOADS) - 1))
def test_few_counts_hardly_change_the_prior(probes: int, share: float, at: int) -> None:
    fitted = fit_failure_curve([LOADS[at]], [probes], [probes * share], PRIOR)
    assert np.abs(rates(fitted) - rates(PRIOR)).max() < 0.05


@settings(max_examples=60, deadline=None)
@given(bins)
@example([(0.3, 1e9, 1e9)])
@example([(0.3, math.nan, 1.0), (1.0, 10.0, math.nan), (math.inf, 10.0, 1.0)])
def test_whatever_was_counted_the_curve_rises_and_an_idle_node_works(
    counted: list[tuple[float, float, float]],
) -> None:
    loads, probes, failures = ([row[at] for row in counted] for at in range(3))
    fitted = fit_failure_curve(loads, probes, failures, PRIOR)
    assert all(map(math.isfinite, astuple(fitted)))
    assert 0 < fitted.floor < fitted.ceiling <= 1
    assert (np.diff(rates(fitted)) >= 0).all()
    assert rates(fitted, np.array([0.5]))[0] < 0.07
    assert rates(fitted, np.array([0.25]))[0] < 0.03


def test_quiet_nodes_that_never_fail_say_nothing_about_full_ones() -> None:
    fitted = fit_failure_curve([0.25, 0.35], [1e8, 1e8], [0, 0], PRIOR)
    assert fitted.floor < PRIOR.floor / 5
    full = np.array([0.9, 1.0, 1.1, 1.3])
    assert rates(fitted, full) == pytest.approx(rates(PRIOR, full), abs=0.03)


def test_more_failures_than_probes_count_as_all() -> None:
    more, equal = (fit_failure_curve([1.0], [1e6], [failed], PRIOR) for failed in (5e6, 1e6))
    assert more == equal
