"""Kubernetes quantities (`250m`, `1Gi`, `2e3`) as numbers in base units."""

from __future__ import annotations

import re
from collections.abc import Mapping

_SUFFIXES: Mapping[str, float] = {
    "": 1,
    "n": 1e-9,
    "u": 1e-6,
    "m": 1e-3,
    "k": 1e3,
    "M": 1e6,
    "G": 1e9,
    "T": 1e12,
    "P": 1e15,
    "E": 1e18,
    "Ki": 2**10,
    "Mi": 2**20,
    "Gi": 2**30,
    "Ti": 2**40,
    "Pi": 2**50,
    "Ei": 2**60,
}
_QUANTITY = re.compile(r"^([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)([a-zA-Z]{0,2})$")


def parse_quantity(value: str | int | float) -> float:
    """Raises ValueError for what is no quantity."""
    if isinstance(value, int | float):
        return float(value)
    match = _QUANTITY.match(value)
    if match is None or match[2] not in _SUFFIXES:
        raise ValueError(f"{value!r} is not a quantity (like 250m, 1.5 or 512Mi)")
    return float(match[1]) * _SUFFIXES[match[2]]
