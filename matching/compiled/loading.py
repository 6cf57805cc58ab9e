"""Whether the inner loops run compiled or in numpy. numba is an extra; importing it takes a second, compiling several.

So a small problem is solved in numpy unless the kernels are loaded already, and a large one loads them. Compiled
functions are cached on disk where that is possible.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.util import find_spec
from types import ModuleType

LARGE = 2_000_000
"""Pods times nodes above which numpy takes longer than loading the kernels."""

_loaded: list[ModuleType] = []


def kernels(pods: int, nodes: int) -> ModuleType | None:
    """`matching.compiled.entry` for a problem of that size; None: use numpy."""
    if _loaded:
        return _loaded[0]
    return load() if pods * nodes >= LARGE else None


@lru_cache(maxsize=1)
def load() -> ModuleType | None:
    """None when numba is not installed."""
    if find_spec("numba") is None:
        return None
    from matching.compiled import entry as module

    _loaded.append(module)
    return module
