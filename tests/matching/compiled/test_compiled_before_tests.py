"""No test's timeout includes the compiler: tests/conftest.py compiles before the first test."""

from __future__ import annotations

import subprocess
import sys

_SECONDS = 50.0
_COUNT_COMPILATIONS = """
from numba.core.event import install_recorder
from matching.compilation import warm_up
with install_recorder("numba:compile") as compilations:
    assert warm_up() is not None
print(len(compilations.buffer))
"""


def test_a_new_process_finds_every_kernel_on_disk() -> None:
    command = [sys.executable, "-c", _COUNT_COMPILATIONS]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=True)
    assert done.stdout == "0\n"
