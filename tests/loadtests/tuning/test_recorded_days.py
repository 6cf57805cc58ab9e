"""The days that are recorded to check what `rematch tune` says."""

from __future__ import annotations

import numpy as np

from loadtests.tuning.recording import days_of

DAY = 86400


def test_load_differs_by_day_and_only_probes_by_chance() -> None:
    one, other = days_of(1, 2, 0), days_of(1, 2, 1)
    assert one.seconds == 2 * DAY
    assert np.array_equal(one.load.factors, other.load.factors)
    assert (one.apps, one.placement) == (other.apps, other.placement)
    assert one.seed != other.seed
    hours = 3600.0 * np.arange(24)
    first, second = (np.stack([one.load.at(day * DAY + hour) for hour in hours]) for day in (0, 1))
    assert np.array_equal(first, np.stack([days_of(1, 1, 0).load.at(hour) for hour in hours]))
    assert (np.abs(first - second).max(axis=0) > 0).all(), "every app follows another series"
