"""What pods are expected to use while a plan holds, given that their measured usage is a noisy sample.

Node loads differ in truth and by noise. Noise alone would give the sum of their squared distances from the mean, each
in units of its own variance, a chi-squared distribution. The variance of the true differences (tau²) is what explains
the rest at the given confidence (the lower end of the Q-profile interval of meta-analysis). A node's distance from the
mean is then expected to last by tau² / (tau² + its variance). The rest is subtracted from its pods by their variances.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from matching.array_types import NOWHERE, Floats, Mask
from matching.model.arrays import Arrays, sum_by_node

SIGMAS_TO_PEAK = 3.0
"""A peak is estimated as the mean plus three standard deviations."""

_HALVINGS = 60


def sigma_of(arrays: Arrays, relative: float | None) -> Floats:
    """(axes, pods): `relative` times the usage where given, else from the distance between usage and peak."""
    if relative is not None:
        return arrays.usage * relative
    sigma: Floats = (arrays.peak - arrays.usage).clip(min=0.0) / SIGMAS_TO_PEAK
    return sigma


@dataclass(frozen=True, slots=True)
class Expected:
    usage: Floats
    """(axes, pods)"""
    variance: Floats
    """(axes, nodes): of the nodes' loads, as shares, around what is expected of them."""


def expect(arrays: Arrays, counted: Mask, sigma: Floats, confidence: float) -> Expected:
    """`confidence` is that of each axis."""
    room, nodes = arrays.allocatable, len(arrays.nodes)
    per = np.divide(1.0, room, out=np.zeros_like(room), where=(room > 0) & counted)
    load = (arrays.background + sum_by_node(arrays.usage, arrays.current, nodes)) * per
    variance = sum_by_node(sigma**2, arrays.current, nodes) * per**2
    mean = load.sum(axis=1, keepdims=True) / max(1, int(counted.sum()))
    away = np.where(counted, load - mean, 0.0)
    lasting = np.ones_like(away)
    for axis in range(len(away)):
        lasting[axis, counted] = lasting_parts(away[axis, counted], variance[axis, counted], confidence)
    passing = np.divide((1 - lasting) * away * per, variance, out=np.zeros_like(away), where=variance > 0)
    usage, running = arrays.usage.copy(), np.flatnonzero(arrays.current != NOWHERE)
    usage[:, running] -= passing[:, arrays.current[running]] * sigma[:, running] ** 2
    return Expected(usage.clip(min=0.0), lasting * variance)


def lasting_parts(away: Floats, variance: Floats, confidence: float) -> Floats:
    """Per node, the part of its distance from the mean that is expected to last: from the spread of all nodes, or from
    how far it alone stands out."""
    if confidence <= 0:
        return np.ones_like(variance)
    largest = _largest_by_chance(confidence, len(away))
    true = _true_variance(away, variance, chi_squared(confidence, len(away) - 1), largest)
    total = np.maximum(true + variance, np.finfo(np.float64).tiny)
    together = np.where(variance > 0, true / total, 1.0)
    alone = 1 - np.divide(largest * variance, away**2, out=np.ones_like(away), where=away != 0)
    lasting: Floats = np.maximum(together, alone)
    return lasting


def _true_variance(away: Floats, variance: Floats, explained: float, largest: float) -> float:
    """The least variance of the true distances that explains the measured ones. A few nodes that stand out say nothing
    about the others, so none counts for more than the `largest` square that noise would give one of them."""
    low, high = 0.0, float((away**2).sum()) / max(explained, np.finfo(np.float64).tiny)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        total = middle + variance
        squares = np.divide(away**2, total, out=np.zeros_like(away), where=total > 0)
        low, high = (middle, high) if float(squares.clip(max=largest).sum()) > explained else (low, middle)
    return low


def _largest_by_chance(confidence: float, nodes: int) -> float:
    """The bound, in variances, of the largest square among that many distances by noise."""
    return NormalDist().inv_cdf(1 - (1 - confidence) / (2 * max(1, nodes))) ** 2


def chi_squared(confidence: float, freedom: int) -> float:
    """Its quantile, by Wilson and Hilferty's approximation."""
    if confidence <= 0 or freedom < 1:
        return 0.0
    part = 2 / (9 * freedom)
    root = max(0.0, 1 - part + NormalDist().inv_cdf(confidence) * math.sqrt(part))
    return freedom * root * root * root
