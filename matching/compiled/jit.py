"""How functions are compiled. Needs numba."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from numba import njit

_Kernel = TypeVar("_Kernel", bound=Callable[..., Any])
_OPTIONS = {"error_model": "numpy", "_nrt": False}
"""Division as numpy does it. No kernel makes an array, so numba need not count references, which takes half the time
when arrays are handed on several in one."""


def compiled(function: _Kernel) -> _Kernel:
    """Kept on disk where that is possible; numba refuses when it finds no place to write to.

    Whoever changes one of these files removes the `__pycache__` of the folder: numba looks only at the file of the
    function that was called, not at those of the functions that are compiled into it."""
    try:
        kept: _Kernel = njit(cache=True, **_OPTIONS)(function)
    except RuntimeError:
        kept = njit(**_OPTIONS)(function)
    return kept
