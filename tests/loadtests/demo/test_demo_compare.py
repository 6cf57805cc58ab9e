"""The comparison says which arm its figures favour, also when that is not ours."""

from __future__ import annotations

import pytest

from loadtests.demo.compare import verdict
from loadtests.paired_statistics import Interval


@pytest.mark.parametrize(
    ("low", "high", "sign", "said"),
    [
        (0.01, 0.05, 1.0, "in favour of rematch"),
        (-0.05, -0.01, 1.0, "against rematch"),
        (-900.0, -100.0, -1.0, "in favour of rematch"),
        (100.0, 900.0, -1.0, "against rematch"),
        (-0.01, 0.05, 1.0, "no clear difference"),
    ],
)
def test_the_verdict(low: float, high: float, sign: float, said: str) -> None:
    assert verdict(Interval((low + high) / 2, low, high), sign) == said
