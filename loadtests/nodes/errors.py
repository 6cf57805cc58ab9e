"""What goes wrong with real nodes."""

from __future__ import annotations

from reactor.errors import RematchError


class LabError(RematchError):
    """One line that says what and, where the user can do something, what to do."""
