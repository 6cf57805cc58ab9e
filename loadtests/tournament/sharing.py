"""A node's CPU shared by its pods, for all nodes at once: max-min fair by weight, no pod gets more than it can use."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


def fair_shares(node: Ints, wanted: Floats, weight: Floats, cores: Floats) -> Floats:
    """Cores for each pod. `node` is the index of its node, `wanted` the most that it could use.

    The pods of a node that are easiest to satisfy get what they want; the others share what is left by weight.
    """
    if not len(node):
        return wanted.copy()
    number = len(cores)
    if np.all(np.bincount(node, wanted, number) <= cores):
        return wanted.copy()
    order = np.lexsort((wanted / weight, node))
    at, want, part = node[order], wanted[order], weight[order]
    starts = np.searchsorted(at, np.arange(number))
    left = cores[at] - _before(want, starts, at)
    rest = np.bincount(at, part, number)[at] - _before(part, starts, at)
    level = np.maximum(left, 0.0) / rest
    short = want > level * part
    of_node = np.zeros(number)
    np.maximum.at(of_node, at[short], level[short])
    shares = np.empty_like(wanted)
    shares[order] = np.where(short, of_node[at] * part, want)
    return shares


def _before(values: Floats, starts: Ints, at: Ints) -> Floats:
    """The sum of the values that come before each one on the same node."""
    before = np.cumsum(values) - values
    return before - before[np.minimum(starts, len(values) - 1)][at]
