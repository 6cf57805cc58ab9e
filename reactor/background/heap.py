"""Keeps the garbage collector away from what was listed: on a large cluster one walk over it outlasts a whole plan."""

from __future__ import annotations

import gc

_YOUNG_OBJECTS = 50_000
"""A plan of a large cluster makes some hundred thousand objects that nearly all die with it, by reference count."""


def settle_heap() -> None:
    """Whatever is alive now is not looked at again; what of it dies later still goes by its reference count."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG_OBJECTS)
