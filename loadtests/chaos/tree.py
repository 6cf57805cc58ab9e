"""Which commit is run."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path


@cache
def tree() -> str:
    """As it was at the first call."""
    described = ("git", "describe", "--always", "--dirty", "--exclude=*")
    found = subprocess.run(described, cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    return found.stdout.strip() or "no Git repository"
