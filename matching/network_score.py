"""BNIP's node score: how even the network use of the nodes would be with a pod on each of them."""

from __future__ import annotations

import numpy as np

from matching.array_types import Floats, Mask

HIGHEST = 10.0
DECIMALS = 12
"""Variances closer than this are equal: the formula subtracts nearly equal numbers."""


def variances(use: Floats, added: Floats) -> Floats:
    """P_j: the variance of the nodes' use (shares of bandwidth) if the pod added `added[j]` to node j alone."""
    total, squares, nodes = use.sum(), (use**2).sum(), len(use)
    mean = (total + added) / nodes
    after: Floats = (squares - use**2 + (use + added) ** 2) / nodes - mean**2
    return after.clip(min=0.0).round(DECIMALS)


def scores(variance: Floats, possible: Mask) -> Floats:
    """S_j between the least and the greatest variance of the possible nodes; 10 for all when they are equal.
    A node that is not possible has 0."""
    if not possible.any():
        return np.zeros(len(variance))
    low, high = variance[possible].min(), variance[possible].max()
    spread = high - low
    score = HIGHEST - HIGHEST * (variance - low) / spread if spread > 0 else np.full(len(variance), HIGHEST)
    return np.where(possible, score, 0.0)


def score_nodes(rates: Floats, bandwidths: Floats, demand: float, possible: Mask | None = None) -> Floats:
    """BNIP's node score for a pod with `demand`, on nodes that carry `rates` of their `bandwidths`, all in one unit: 10
    for the node that leaves the network use most even, 0 for the least even."""
    every = np.ones(len(rates), dtype=bool) if possible is None else possible
    return scores(variances(rates / bandwidths, demand / bandwidths), every)
