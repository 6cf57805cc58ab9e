"""Progress in words: whoever does long work is given somebody to tell."""

from __future__ import annotations

from collections.abc import Callable

Say = Callable[[str], None]
