"""Requests and allocatable as whole numbers: thousandths, which are milli-cores of CPU. So sums are exact, and a pod
fits to the last byte whatever the size of the other nodes. A finer fraction is rounded up, as Kubernetes does.

Usage and peaks are measurements: they stay fractions, and are compared with `TOLERANCE`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

import numpy as np

from matching.array_types import Floats
from matching.problem import Amounts

_THOUSAND = 1000
_SAME = 1e-6
"""A float nearer than this to a whole number of thousandths stands for that number: 1.001 * 1000 is not 1001."""
_MOST = 2.0**50
"""Larger amounts (a pebibyte, 10^12 cores) count as this much, and no node has room for one that is larger. So the sums
on a node stay below 2^53, up to which floats hold whole numbers exactly."""


@lru_cache(maxsize=16384)
def thousandths(amounts: Amounts) -> tuple[int, ...]:
    """For every axis. Of any size, for the definition of what fits; `WholeUnits` is the fast form."""
    return tuple(map(_thousandths, amounts))


def _thousandths(amount: float) -> int:
    if float(amount).is_integer():
        return int(amount) * _THOUSAND
    scaled = amount * _THOUSAND
    nearest = round(scaled)
    return nearest if abs(scaled - nearest) <= _SAME else math.ceil(scaled)


@dataclass(frozen=True, slots=True)
class WholeUnits:
    """Arrays of shape (axes, pods) and (axes, nodes)."""

    unit: Floats
    """By axis, in the unit of the axis: 1 where all amounts are whole, or too large for thousandths; else 0.001."""
    request: Floats
    allocatable: Floats


def whole_units(requests: Floats, allocatable: Floats) -> WholeUnits:
    """From amounts in the units of the axes, in the same shapes."""
    whole = (requests == np.rint(requests)).all(axis=1) & (allocatable == np.rint(allocatable)).all(axis=1)
    largest = allocatable.max(axis=1, initial=0.0)
    scale = np.where(whole | (largest * _THOUSAND > _MOST), 1.0, float(_THOUSAND))
    return WholeUnits(
        1 / scale,
        np.minimum(_rounded_up(requests * scale[:, None]), _MOST + 1),
        np.minimum(_rounded_up(allocatable * scale[:, None]), _MOST),
    )


def by_axis(rows: Sequence[Amounts], axes: int) -> Floats:
    """(axes, rows)"""
    flat = np.fromiter(chain.from_iterable(rows), dtype=np.float64, count=len(rows) * axes)
    return np.ascontiguousarray(flat.reshape(len(rows), axes).T)


def _rounded_up(amounts: Floats) -> Floats:
    nearest = np.rint(amounts)
    return np.where(np.abs(amounts - nearest) <= _SAME, nearest, np.ceil(amounts))
