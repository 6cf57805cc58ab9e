"""How functions are compiled. Needs numba."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from numba import njit

_Kernel = TypeVar("_Kernel", bound=Callable[..., Any])


def compiled(function: _Kernel) -> _Kernel:
    """Kept on disk where that is possible; numba refuses when it finds no place to write to.

    Whoever changes one of these files removes the `__pycache__` of the folder: numba looks only at the file of the
    function that was called, not at those of the functions that are compiled into it."""
    try:
        kept: _Kernel = njit(cache=True, error_model="numpy")(function)
    except RuntimeError:
        kept = njit(error_model="numpy")(function)
    return kept
