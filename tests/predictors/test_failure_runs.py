"""Runs of minutes that look, in steps of five, as what was counted."""

from __future__ import annotations

import numpy as np
import pytest

from predictors.failure_runs import Floats, runs_by_minute

MINUTES, STEPS, CHANCE = 5, 40_000, 0.1


def failures(share: float, lasts: float, probes: int) -> Floats:
    """By step, of a series whose probes fail in such runs."""
    source, number = np.random.default_rng(3), MINUTES * STEPS
    begins = np.maximum.accumulate(np.where(source.random(number) < lasts, 0, np.arange(number)))
    as_one, all_fail = (source.random(number)[begins] < share), (source.random(number)[begins] < CHANCE)
    counted = np.where(as_one, all_fail * probes, source.binomial(probes, CHANCE, number))
    by_step: Floats = counted.reshape(STEPS, MINUTES).sum(axis=1)
    return by_step


@pytest.mark.parametrize(("together", "lasting"), [(0.09, 0.27), (0.12, 0.15), (0.3, 0.8)])
@pytest.mark.parametrize("probes", [3, 6])
def test_runs_have_the_correlations_that_they_are_made_of(together: float, lasting: float, probes: int) -> None:
    shares, chances = runs_by_minute(together, lasting, np.array([float(probes)]), MINUTES)
    rest, number = failures(shares[0], chances[0], probes) - CHANCE * probes * MINUTES, probes * MINUTES
    variance = CHANCE * (1 - CHANCE)
    within = ((rest**2).mean() - number * variance) / (number * (number - 1) * variance)
    across = (rest[1:] * rest[:-1]).mean() / (number**2 * variance)
    assert within == pytest.approx(together, rel=0.15)
    assert across / within == pytest.approx(lasting, abs=0.06)


def test_chance_alone_makes_no_runs() -> None:
    shares, _ = runs_by_minute(0.0, 0.0, np.array([0.0, 1.0, 6.0]), MINUTES)
    assert shares.tolist() == [0, 0, 0]
