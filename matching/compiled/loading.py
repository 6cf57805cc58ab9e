"""Whether the inner loops run compiled or in numpy. numba is an extra; importing it takes a second, compiling several.

So a small problem is solved in numpy unless the kernels are loaded already, and a large one loads them. Compiled
functions are cached on disk where that is possible.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from importlib.util import find_spec
from types import ModuleType

LARGE = 25_000_000
"""Pods times nodes above which numpy takes longer than loading the kernels, for 120 MiB, and than a plan with them."""

_loaded: list[ModuleType] = []
_on_request = 0


def kernels(pods: int, nodes: int) -> ModuleType | None:
    """`matching.compiled.entry` for a problem of that size; None: use numpy."""
    if _loaded:
        return _loaded[0]
    return load() if pods * nodes >= LARGE and not _on_request else None


@contextmanager
def only_on_request() -> Iterator[None]:
    """Meanwhile no problem loads the kernels, however large: a plan in numpy takes seconds, but the compiler, if they
    are not on disk, takes a minute and 1 GiB."""
    global _on_request  # noqa: PLW0603 - as `_loaded`, of the whole process
    _on_request += 1
    try:
        yield
    finally:
        _on_request -= 1


@lru_cache(maxsize=1)
def load() -> ModuleType | None:
    """None when numba is not installed."""
    if find_spec("numba") is None:
        return None
    from matching.compiled import entry as module

    _loaded.append(module)
    return module
