"""Kubernetes quantities: `500m`, `1.5Gi`, `12e6`."""

from __future__ import annotations

import re
from functools import lru_cache

_FORM = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))(Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE]|[eE][+-]?[0-9]{1,6})?")

_DIVISORS = {"n": 10**9, "u": 10**6, "m": 10**3}
_FACTORS = {
    "k": 10**3,
    "M": 10**6,
    "G": 10**9,
    "T": 10**12,
    "P": 10**15,
    "E": 10**18,
    "Ki": 2**10,
    "Mi": 2**20,
    "Gi": 2**30,
    "Ti": 2**40,
    "Pi": 2**50,
    "Ei": 2**60,
}
_LARGEST = float(2**63 - 1)
"""The API caps larger quantities to this."""


@lru_cache(maxsize=8192)
def parse_quantity(text: str | int | float) -> float:
    """In base units. Raises ValueError with the text in the message."""
    match = _FORM.fullmatch(str(text))
    if match is None:
        raise ValueError(f"{text!r} is not a quantity (such as 500m, 1.5 or 2Gi)")
    number, suffix = match.groups(default="")
    if suffix in _DIVISORS:
        value = float(number) / _DIVISORS[suffix]
    elif suffix in _FACTORS:
        value = float(number) * _FACTORS[suffix]
    else:
        value = float(number + suffix)
    return max(-_LARGEST, min(_LARGEST, value))
