"""The demand of each node as a series of its own.

The peaks of a node's pods do not add up: they come at different times. So a node's peak is forecast from the sum of the
pods that are on it now, also over the time when they were elsewhere.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from predictors.protocol import History
from predictors.recent import filled


def node_history(pods: History, node: NDArray[np.intp], nodes: int) -> History:
    """`node` has the index of each pod's node. A gap of a pod holds its value before; for the time before a pod existed
    its first value stands, as it will be there from now on. A time at which no pod of a node has a sample is a gap, and
    so is a whole node with a pod that has none at all: unknown is not zero."""
    known = np.isfinite(pods.values)
    blind = ~np.logical_or.reduce(known, axis=1)
    summed = _summed(np.where(blind[:, np.newaxis], np.float32(0), filled(pods.values)), node, nodes)
    anything = _summed(known.astype(np.float32), node, nodes) > 0
    unknown = np.bincount(node[blind], minlength=nodes) > 0
    values = np.where(anything & ~unknown[:, np.newaxis], summed, np.float32(np.nan))
    cut = None if pods.cut is None else _summed(pods.cut.astype(np.float32), node, nodes) > 0
    return History(values, pods.step, cut)


def _summed(values: NDArray[np.float32], node: NDArray[np.intp], nodes: int) -> NDArray[np.float32]:
    total = np.zeros((nodes, values.shape[1]), dtype=np.float32)
    np.add.at(total, node, values)
    return total
