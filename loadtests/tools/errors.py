"""What goes wrong when a program is needed."""

from __future__ import annotations

from reactor.errors import RematchError


class ToolMissing(RematchError):
    """A program is not here and could not be made; one line that says what to install or do."""
