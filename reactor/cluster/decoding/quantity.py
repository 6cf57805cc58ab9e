"""Kubernetes quantities: `500m`, `1.5Gi`, `12e6`."""

from __future__ import annotations

import re
from functools import lru_cache

_FORM = re.compile(r"([+-]?)([0-9]+\.?[0-9]*|\.[0-9]+)(Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE]|[eE][+-]?[0-9]{1,6})?")

_EXPONENTS = {"": 0, "n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_FACTORS = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60}
NANOS = 10**9
_PER_MILLI = 10**6
_LARGEST = (2**63 - 1) * NANOS
"""The API caps larger quantities to this."""
_BEYOND = 64
"""A power of ten that leads to the largest or to the smallest quantity, whatever it is multiplied with."""


def parse_quantity(text: str | int | float) -> float:
    """In base units. Raises ValueError with the text in the message."""
    return parse_nanos(text) / NANOS


@lru_cache(maxsize=8192)
def parse_nanos(text: str | int | float) -> int:
    """Exact, in billionths of the base unit; a finer fraction is rounded up, as by the API. Raises ValueError with the
    text in the message."""
    match = _FORM.fullmatch(str(text))
    if match is None:
        raise ValueError(f"{text!r} is not a quantity (such as 500m, 1.5 or 2Gi)")
    sign, number, suffix = match.groups(default="")
    whole, _, fraction = number.partition(".")
    digits = (whole + fraction).lstrip("0")
    if not digits:
        return 0
    factor = _FACTORS.get(suffix, 1)
    exponent = 9 - len(fraction) + (0 if factor > 1 else _exponent(suffix))
    if exponent + len(digits) > _BEYOND:
        nanos = _LARGEST
    elif exponent >= 0:
        nanos = min(int(digits) * factor * 10**exponent, _LARGEST)
    elif exponent + len(digits) < -_BEYOND:
        nanos = 1
    else:
        nanos = min(-(-int(digits) * factor // 10**-exponent), _LARGEST)
    return -nanos if sign == "-" else nanos


def _exponent(suffix: str) -> int:
    known = _EXPONENTS.get(suffix)
    return int(suffix[1:]) if known is None else known


def whole_amount(resource: str, nanos: int) -> float:
    """What kube-scheduler counts, in base units: whole milli-cores of CPU, whole units of the rest; rounded up."""
    if resource == "cpu":
        return -(-nanos // _PER_MILLI) / 1000
    return float(-(-nanos // NANOS))
