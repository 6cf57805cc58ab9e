"""How the pods of a node share its CPU: each gets what it wants up to its fair share by weight, as cgroups do it.

So on a node that is too full the pods that want much for their weight are held back, and the others feel little of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
LEAST_WEIGHT = 0.002
"""Cores: a pod that requests nothing gets two of 1024 shares."""
_EMPTY = 1e-12


@dataclass(frozen=True, slots=True)
class Shared:
    felt: Floats
    """By pod: what the load of its node would be if no pod there took more CPU per weight than this one wants. For the
    pod that wants most it is the node's load; above 1 the pod is held back."""
    got: Floats
    """Cores."""


def share_out(node: NDArray[np.integer], wanted: Floats, weight: Floats, size: Floats, other: Floats) -> Shared:
    """`node` of each pod, `wanted` cores; `size` of each node, and `other` use of it, which comes first."""
    by_weight = wanted / weight
    if not len(node):
        return Shared(wanted, wanted)
    order = np.lexsort((by_weight, node))
    at, most = node[order], by_weight[order]
    begins = np.flatnonzero(np.concatenate([[True], at[1:] != at[:-1]]))
    first = np.repeat(begins, np.diff(np.append(begins, len(at))))
    of_smaller, smaller_weight = (_within(first, each[order]) for each in (wanted, weight))
    weights = np.bincount(node, weight, len(size))
    felt = np.empty(len(node))
    felt[order] = (of_smaller + most * (weights[at] - smaller_weight) + other[at]) / size[at]
    held = felt > 1.0
    if not held.any():
        return Shared(felt, wanted)
    left = np.maximum(size - other - np.bincount(node, np.where(held, 0.0, wanted), len(size)), 0.0)
    level = left / np.maximum(np.bincount(node, np.where(held, weight, 0.0), len(size)), _EMPTY)
    return Shared(felt, np.where(held, np.minimum(wanted, level[node] * weight), wanted))


def _within(first: NDArray[np.integer], values: Floats) -> Floats:
    """Running sums that begin anew with every node. `first`: where that of each pod begins."""
    sums = np.cumsum(values)
    found: Floats = sums - (sums - values)[first]
    return found
