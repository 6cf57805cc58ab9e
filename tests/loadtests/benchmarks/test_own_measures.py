"""Each planner's own measure: what it counts, and that `balance` without caution is not behind on a small cluster."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from loadtests.benchmarks.own_measures import (
    RIVALS,
    compare,
    deviation_of_means,
    fullest,
    imbalance,
    table,
    variance,
)
from loadtests.benchmarks.real_load_data import SOURCES, Size, draw, read_series

DATA = Path(__file__).parents[2] / "data" / "load"


def test_the_measures_by_hand() -> None:
    shares = np.array([[0.2, 0.4, 0.6], [0.6, 0.4, 0.2]])
    assert imbalance(shares) == pytest.approx(40)
    assert fullest(shares) == pytest.approx(1.5)
    assert deviation_of_means(shares) == pytest.approx(0)
    assert variance(shares) == pytest.approx(800 / 3)


def test_without_caution_balance_is_not_behind_on_one_axis() -> None:
    rows = list(compare("azure", [draw(read_series(DATA, SOURCES[0]), Size(nodes=4, pods=30), seed=2)]))
    assert [row.rival for row in rows] == list(RIVALS)
    for row in rows:
        (theirs, _), _, (ours, _) = row.ends
        assert ours <= theirs * 1.02 + 0.02
        assert row.rival.words in table(rows)
