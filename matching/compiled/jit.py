"""How functions are compiled, and where the result is cached. Needs numba."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from numba import config, njit

_Kernel = TypeVar("_Kernel", bound=Callable[..., Any])

_OPTIONS = {"error_model": "numpy", "nogil": True, "_nrt": False}
"""Division as in numpy. Other threads run meanwhile: to count the blocking pairs of a large cluster takes seconds, and
the event loop would wait for them. No kernel allocates an array, so numba need not count references, which would take
half the time when several arrays are passed as one tuple."""

_HERE = Path(__file__).parent
_SOURCES = (*sorted(_HERE.glob("*.py")), _HERE.parent / "verify" / "compiled.py")


def compiled(function: _Kernel) -> _Kernel:
    """Cached on disk where that is possible; numba raises when it finds no folder to write to."""
    try:
        kept: _Kernel = njit(cache=True, **_OPTIONS)(function)
    except RuntimeError:
        kept = njit(**_OPTIONS)(function)
    return kept


def _cache_folder() -> str:
    """One folder per version of the sources: numba checks only the file of the function that is called, not those of
    the functions and constants that are compiled into it."""
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in _SOURCES)).hexdigest()[:16]
    if os.access(_HERE, os.W_OK):
        return str(_HERE / "__pycache__" / digest)
    return str(Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rematch" / "kernels" / digest)


config.CACHE_DIR = config.CACHE_DIR or _cache_folder()
