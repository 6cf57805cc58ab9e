from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matching.whole_units import by_axis, thousandths, whole_units

milli = st.lists(st.integers(0, 10**9).map(lambda number: number / 1000), max_size=20)
whole = st.lists(st.integers(0, 2**46).map(float), max_size=20)


@given(st.one_of(st.tuples(milli, milli), st.tuples(whole, whole)))
def test_arrays_say_the_same_as_the_definition(amounts: tuple[list[float], list[float]]) -> None:
    requests, rooms = amounts
    found = whole_units(by_axis([(each,) for each in requests], 1), by_axis([(each,) for each in rooms], 1))
    scale = Fraction(round(1000 * found.unit[0]))
    assert [int(each) * scale for each in found.request[0]] == [thousandths((each,))[0] for each in requests]
    assert [int(each) * scale for each in found.allocatable[0]] == [thousandths((each,))[0] for each in rooms]


@pytest.mark.parametrize(
    ("amount", "expected"), [(1.001, 1001), (0.3, 300), (1 / 3, 334), (5, 5000), (6597069766657.0, 6597069766657000)]
)
def test_finer_fractions_are_rounded_up(amount: float, expected: int) -> None:
    assert thousandths((amount,)) == (expected,)


def test_fractions_beside_the_largest_amounts_are_rounded_up_to_whole_units() -> None:
    found = whole_units(np.array([[0.5, 3.0]]), np.array([[6.0 * 2**40 + 1]]))
    assert (found.unit.tolist(), found.request.tolist()) == ([1.0], [[1.0, 3.0]])


def test_sums_of_the_largest_amounts_are_exact() -> None:
    """What is larger than any node fits on none, and adding it to a node and taking it away again changes nothing."""
    found = whole_units(np.array([[2.0**63, 7.0]]), np.array([[6.0 * 2**40 + 1, 2.0**60]]))
    huge, small = found.request[0]
    assert (huge > found.allocatable[0]).all()
    for room in found.allocatable[0]:
        assert room - huge - small + huge == room - small
