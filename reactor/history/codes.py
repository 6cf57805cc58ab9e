"""Numbers as 16-bit codes on a log scale: 64 codes per factor of two, so a value is off by at most 0.55 %.

Codes keep the order of the values, so the highest code is that of the highest value. 0 is "not measured", 1 is zero.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.uint16]
Floats = NDArray[np.float64]

PER_OCTAVE = 64
MISSING, ZERO = 0, 1
_FIRST = 2
_SMALLEST = 2.0**-20
"""Anything smaller is zero: a millionth of a core, of a byte, of a share."""
_LARGEST = 65535
BIN_BITS = 3
"""A bin of a histogram is 8 codes, 9 % wide."""

_VALUES: Floats = _SMALLEST * 2.0 ** ((np.arange(_LARGEST + 1) - _FIRST) / PER_OCTAVE)
_VALUES[MISSING], _VALUES[ZERO] = np.nan, 0.0
_AMOUNTS: Floats = np.nan_to_num(_VALUES)


def encode(values: NDArray[np.floating]) -> Codes:
    """NaN is "not measured". Negative and infinite values are the caller's to refuse."""
    numbers = np.asarray(values, dtype=np.float64)
    known = numbers >= _SMALLEST / 2
    scaled = np.log2(np.where(known, numbers, _SMALLEST) / _SMALLEST) * PER_OCTAVE
    codes = np.clip(np.round(scaled) + _FIRST, _FIRST, _LARGEST)
    return np.where(np.isnan(numbers), MISSING, np.where(known, codes, ZERO)).astype(np.uint16)


def decode(codes: Codes) -> Floats:
    return _VALUES[codes]


def amounts(codes: Codes) -> Floats:
    """As `decode`, and 0 for what was not measured: for sums."""
    return _AMOUNTS[codes]


def bins_of(codes: Codes) -> NDArray[np.uint16]:
    """The bins of a histogram that the codes belong to."""
    return (codes >> BIN_BITS).astype(np.uint16)


def highest_of(bins: NDArray[np.integer]) -> Floats:
    """The highest value that each bin can hold."""
    highest: Floats = _VALUES[(bins << BIN_BITS) + (1 << BIN_BITS) - 1]
    return highest


def middle_of(bins: NDArray[np.integer]) -> Floats:
    middle: Floats = _VALUES[np.maximum((bins << BIN_BITS) + (1 << BIN_BITS) // 2, ZERO)]
    return middle
