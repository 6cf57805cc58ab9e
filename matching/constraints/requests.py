"""Requests against allocatable, every axis; an axis a pod requests nothing of cannot reject it."""

from __future__ import annotations

import numpy as np

from matching.shapes import TOLERANCE, Floats, Mask


def least_free(request: Floats) -> Floats:
    """What must be free on each axis for a pod to fit, in the shape of `request`."""
    return np.where(request > 0, request - TOLERANCE, -np.inf)


def fits(free: Floats, least: Floats) -> Mask:
    """`free` has one row per axis and one column per node; `least` is one pod's column of `least_free`."""
    ok: Mask = np.logical_and.reduce(free >= least[:, None], axis=0)
    return ok


def shortfall(free: Floats, request: Floats) -> Floats:
    """How much of each axis is missing, in the shape of `free`."""
    short: Floats = (request[:, None] - free).clip(min=0.0)
    short[(short <= TOLERANCE) | (request == 0)[:, None]] = 0.0
    return short
