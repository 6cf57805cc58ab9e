from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactor.cluster.decoding.quantity import parse_quantity

SUFFIXES = {
    "": Fraction(1),
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "k": Fraction(10**3),
    "M": Fraction(10**6),
    "G": Fraction(10**9),
    "T": Fraction(10**12),
    "P": Fraction(10**15),
    "E": Fraction(10**18),
    "Ki": Fraction(2**10),
    "Mi": Fraction(2**20),
    "Gi": Fraction(2**30),
    "Ti": Fraction(2**40),
    "Pi": Fraction(2**50),
    "Ei": Fraction(2**60),
    "e3": Fraction(1000),
    "E-2": Fraction(1, 100),
    "e+1": Fraction(10),
}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("100m", 0.1),
        ("1", 1.0),
        ("0.5", 0.5),
        (".5", 0.5),
        ("5.", 5.0),
        ("128Mi", 134217728.0),
        ("1e3", 1000.0),
        ("1E", 1e18),
        ("1E3", 1000.0),
        ("12345678n", 0.012345678),
        ("+2k", 2000.0),
        ("-1", -1.0),
        (2, 2.0),
        (1.5, 1.5),
        ("9999999999E", float(2**63 - 1)),
        ("1e999", float(2**63 - 1)),
    ],
)
def test_known_quantities(text: str | int | float, value: float) -> None:
    assert parse_quantity(text) == value


@pytest.mark.parametrize(
    "text", ["", "m", "1.2.3", "1 Gi", " 1", "1ki", "0x10", "1e", "NaN", "inf", "1Gi2", "١", "--1"]
)
def test_malformed_quantities_are_named(text: str) -> None:
    with pytest.raises(ValueError, match="is not a quantity"):
        parse_quantity(text)


@given(st.integers(0, 10**6), st.integers(0, 999), st.sampled_from(sorted(SUFFIXES)))
def test_every_suffix_scales_exactly_to_a_rounding(whole: int, thousandths: int, suffix: str) -> None:
    exact = min((whole + Fraction(thousandths, 1000)) * SUFFIXES[suffix], Fraction(2**63 - 1))
    assert parse_quantity(f"{whole}.{thousandths:03d}{suffix}") == pytest.approx(float(exact), rel=1e-15)
