"""The one exception that leaves this package; SQLAlchemy's and the file system's are mapped to it."""

from __future__ import annotations


class StorageError(Exception):
    """The message names the file and what to do about it."""
