"""Distances from a pod's usage to the rooms of nodes and of bundles. Needs numba."""

from __future__ import annotations

import numpy as np

from matching.compiled.jit import compiled
from matching.compiled.layout import Blocks, Guests

NOBODY = -1
_SCALE = 1e9


@compiled
def rounded(value: float) -> float:
    return float(np.rint(value * _SCALE) / _SCALE)


@compiled
def square(blocks: Blocks, guests: Guests, pod: int, block: int, seat: int) -> float:
    total = 0.0
    for axis in range(blocks.room.shape[1]):
        gap = blocks.room[block, axis, seat] - guests.usage[axis, pod]
        total += gap * gap
    return total


@compiled
def distance(blocks: Blocks, guests: Guests, pod: int, block: int, seat: int) -> float:
    return rounded(np.sqrt(square(blocks, guests, pod, block, seat)))


@compiled
def beyond(wish: float) -> float:
    """A larger square is of a distance that reads farther than the wish: most nodes are told without a root."""
    limit = max(wish + 2 / _SCALE, 0.0)
    return limit * limit


@compiled
def before(wish: float) -> float:
    """A smaller square is of a distance that reads nearer than the wish."""
    limit = max(wish - 2 / _SCALE, 0.0)
    return limit * limit
