from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from reactor.history.codes import bins_of, decode, encode, highest_of, middle_of

VALUES = st.floats(min_value=1e-6, max_value=1e18)


@given(VALUES)
def test_a_value_is_off_by_half_a_percent_at_most(value: float) -> None:
    found = float(decode(encode(np.array([value])))[0])
    assert abs(found / value - 1) <= 0.0055


@given(VALUES, VALUES)
def test_codes_keep_the_order(one: float, other: float) -> None:
    low, high = encode(np.sort(np.array([one, other])))
    assert low <= high


def test_nothing_measured_is_not_zero() -> None:
    found = decode(encode(np.array([math.nan, 0.0, 1e-9])))
    assert math.isnan(found[0])
    assert found[1:].tolist() == [0.0, 0.0]


@given(VALUES)
def test_a_bin_holds_its_values(value: float) -> None:
    bins = bins_of(encode(np.array([value])))
    assert float(highest_of(bins)[0]) >= value * 0.99
    assert abs(float(middle_of(bins)[0]) / value - 1) <= 0.06
