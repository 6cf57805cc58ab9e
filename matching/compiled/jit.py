"""How functions are compiled. Needs numba."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from numba import config, njit

_Kernel = TypeVar("_Kernel", bound=Callable[..., Any])
_OPTIONS = {"error_model": "numpy", "_nrt": False}
"""Division as numpy does it. No kernel makes an array, so numba need not count references, which takes half the time
when arrays are handed on several in one."""
_HERE = Path(__file__).parent
_SOURCES = (*sorted(_HERE.glob("*.py")), _HERE.parent / "verify" / "compiled.py")


def compiled(function: _Kernel) -> _Kernel:
    """Kept on disk where that is possible; numba refuses when it finds no place to write to."""
    try:
        kept: _Kernel = njit(cache=True, **_OPTIONS)(function)
    except RuntimeError:
        kept = njit(**_OPTIONS)(function)
    return kept


def _kept_under() -> str:
    """A folder of its own for each state of the sources: numba looks only at the file of the function that is called,
    not at those of the functions and constants that are compiled into it."""
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in _SOURCES)).hexdigest()[:16]
    if os.access(_HERE, os.W_OK):
        return str(_HERE / "__pycache__" / digest)
    return str(Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rematch" / "kernels" / digest)


config.CACHE_DIR = config.CACHE_DIR or _kept_under()
