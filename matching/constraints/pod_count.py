"""A node runs at most as many pods as it says."""

from __future__ import annotations

from matching.shapes import Ints, Mask

REASON = "its limit of pods is reached"


def fits(free_slots: Ints) -> Mask:
    ok: Mask = free_slots >= 1
    return ok
