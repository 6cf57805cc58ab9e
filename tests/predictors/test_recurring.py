"""Loads that come again within minutes: expected the second time, unknown the first."""

from __future__ import annotations

import math

import numpy as np
import pytest

from predictors.recurring import Recurring

BURST = np.concatenate((np.linspace(1.0, 0.0, 60), np.zeros(12)))
"""Jumps to its top, falls to nothing in five minutes, rests for one; steps of 5 s."""
AHEAD = 12


def noisy(*parts: np.ndarray, share: float = 0.02) -> np.ndarray:
    draw = np.random.default_rng(1)
    values = np.concatenate(parts)
    return values + draw.normal(0, share, len(values)) * (values > 0)


def test_a_burst_is_expected_when_one_like_it_has_ended() -> None:
    """Half a minute before it comes again, and by the load of the minutes before alone."""
    before = noisy(BURST, BURST, BURST[:66])
    assert Recurring().highest(before, AHEAD) == pytest.approx(1.0, abs=0.1)


def test_in_the_middle_of_the_fall_no_jump_is_expected() -> None:
    now = noisy(BURST, BURST, BURST[:30])
    assert Recurring().highest(now, AHEAD) == pytest.approx(now[-1], abs=0.08)


def test_the_first_time_there_is_no_answer() -> None:
    assert math.isnan(Recurring().highest(noisy(np.zeros(60), BURST[:20]), AHEAD))
    assert math.isnan(Recurring().highest(np.zeros(5), AHEAD))


def test_bursts_need_no_period() -> None:
    """They announce themselves in the same way: a little load first."""
    sign = np.concatenate((np.full(6, 0.2), np.full(6, 0.4)))
    rests = (np.zeros(100), np.zeros(37))
    values = noisy(rests[0], sign, BURST, rests[1], sign, BURST, rests[0], sign)
    assert Recurring().highest(values, AHEAD) == pytest.approx(1.0, abs=0.1)


def test_gaps_are_no_answer_and_no_zero() -> None:
    values = noisy(BURST, BURST, BURST[:66])
    values[-3] = math.nan
    assert math.isnan(Recurring().highest(values, AHEAD))
    values = noisy(BURST, BURST, BURST[:66])
    values[72 + 60 : 72 + 66] = math.nan
    assert Recurring().highest(values, AHEAD) > 0.7, "the other burst is still alike"
