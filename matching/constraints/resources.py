"""Room on nodes: requests against allocatable, pod count, and peaks against the node's quota (allocatable less the
headroom). An axis that a pod does not use cannot reject it.
"""

from __future__ import annotations

import numpy as np

from matching.array_types import Floats, Ints, Mask
from matching.problem import TOLERANCE


def least_free(request: Floats) -> Floats:
    """What must be free on each axis for a pod to fit, in the shape of `request`."""
    return np.where(request > 0, request, -np.inf)


def fits_requests(free: Floats, least: Floats) -> Mask:
    """`free` has one row per axis and one column per node; `least` is one pod's column of `least_free`."""
    ok: Mask = np.logical_and.reduce(free >= least[:, None], axis=0)
    return ok


def shortfall(free: Floats, request: Floats) -> Floats:
    """How much of each axis is missing, in the shape of `free`."""
    short: Floats = (request[:, None] - free).clip(min=0.0)
    short[request == 0] = 0.0
    return short


POD_COUNT_REASON = "its limit of pods is reached"


def fits_pod_count(free_slots: Ints) -> Mask:
    ok: Mask = free_slots >= 1
    return ok


def least_spare(peak: Floats) -> Floats:
    """What the spare quota must exceed on each axis for a pod to fit."""
    return np.where(peak > 0, peak + TOLERANCE, -np.inf)


def peak_quota(allocatable: Floats, headroom: float) -> Floats:
    return allocatable * (1 - headroom)


def fits_peaks(spare: Floats, least: Floats) -> Mask:
    """`spare` is the quota less the peaks on the node; `least` is one pod's column of `least_spare`."""
    ok: Mask = np.logical_and.reduce(spare > least[:, None], axis=0)
    return ok
