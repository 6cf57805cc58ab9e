from __future__ import annotations

import math

import numpy as np
import pytest

from predictors.growth import Growth, growth
from predictors.protocol import History

MINUTES = np.arange(120.0)
NOISE = np.random.default_rng(1).normal(0, 1, (2000, 120))


def of(*rows: np.ndarray, limit: float = 1000.0) -> Growth:
    return growth(History(np.array(rows, dtype=np.float32), 60.0), np.full(len(rows), limit))


def test_a_leak_reaches_its_limit_when_the_line_does() -> None:
    found = of(100 + 5 * MINUTES + NOISE[0])
    assert found.per_second[0] == pytest.approx(5 / 60, rel=0.05)
    assert found.seconds_to_limit[0] == pytest.approx((1000 - 695) / 5 * 60, rel=0.1)


def test_a_level_a_rhythm_and_a_fall_do_not_grow() -> None:
    found = of(100 + 0 * MINUTES, 100 + 20 * np.sin(MINUTES / 5), 700 - 5 * MINUTES)
    assert found.per_second.tolist() == [0, 0, 0]
    assert found.seconds_to_limit.tolist() == [math.inf] * 3


def test_noise_is_hardly_ever_called_growth() -> None:
    assert (of(*(100 + 10 * NOISE)).per_second > 0).mean() < 0.001


def test_only_what_came_after_a_restart_counts() -> None:
    restarted = np.where(MINUTES < 80, 500 + 4 * MINUTES, 50 + 10 * (MINUTES - 80))
    assert of(restarted).per_second[0] == pytest.approx(10 / 60, rel=0.05)
    assert math.isnan(of(np.where(MINUTES < 115, 500.0, 50.0)).per_second[0])


def test_the_limit_may_be_reached_or_unknown() -> None:
    leak = 100 + 5 * MINUTES
    assert of(leak, limit=600.0).seconds_to_limit[0] == 0
    assert math.isnan(of(leak, limit=math.nan).seconds_to_limit[0])
    assert math.isnan(of(np.full(120, math.nan)).seconds_to_limit[0])


def test_gaps_do_not_change_the_answer() -> None:
    leak = 100 + 5 * MINUTES
    leak[NOISE[3] > 0] = math.nan
    assert of(leak).per_second[0] == pytest.approx(5 / 60, rel=0.01)
