from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactor.cluster.decoding.quantity import parse_nanos, parse_quantity, whole_amount

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
def test_every_suffix_scales_exactly_to_a_billionth_rounded_up(whole: int, thousandths: int, suffix: str) -> None:
    exact = min((whole + Fraction(thousandths, 1000)) * SUFFIXES[suffix], Fraction(2**63 - 1))
    assert parse_nanos(f"{whole}.{thousandths:03d}{suffix}") == math.ceil(exact * 10**9)


@pytest.mark.parametrize(("text", "nanos"), [("1e-999999", 1), ("0e999999", 0), ("-0.1n", -1), ("0.0000000001", 1)])
def test_too_small_a_quantity_is_the_smallest_one(text: str, nanos: int) -> None:
    assert parse_nanos(text) == nanos


@pytest.mark.parametrize(
    ("resource", "text", "counted"),
    [
        ("cpu", "100m", 0.1),
        ("cpu", "100100u", 0.101),
        ("cpu", "1n", 0.001),
        ("memory", "1500m", 2.0),
        ("memory", "0.3Ki", 308.0),
        ("memory", "6597069766657", 6597069766657.0),
        ("nvidia.com/gpu", "1", 1.0),
    ],
)
def test_kube_scheduler_counts_whole_milli_cores_and_whole_units(resource: str, text: str, counted: float) -> None:
    assert whole_amount(resource, parse_nanos(text)) == counted
