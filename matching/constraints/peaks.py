"""The quota of the matching: the peaks on a node stay strictly below its room less the headroom."""

from __future__ import annotations

import numpy as np

from matching.shapes import TOLERANCE, Floats, Mask


def least_spare(peak: Floats) -> Floats:
    """What must be exceeded on each axis for a pod to fit; an axis it does not use cannot reject it."""
    return np.where(peak > 0, peak + TOLERANCE, -np.inf)


def quota(allocatable: Floats, headroom: float) -> Floats:
    return allocatable * (1 - headroom)


def fits(spare: Floats, least: Floats) -> Mask:
    """`spare` is quota less peaks that are there already; `least` is one pod's column of `least_spare`."""
    ok: Mask = np.logical_and.reduce(spare > least[:, None], axis=0)
    return ok
