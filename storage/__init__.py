"""Rows in a database. Imports nothing else of this project.

Use `storage.store.Store` and the row types of `storage.rows`. Importing this package does not import SQLAlchemy, so
commands that need no database start fast.
"""

from __future__ import annotations


class StorageError(Exception):
    """The only exception that leaves this package. Its message names the file and what to do."""


class DamagedError(StorageError):
    """The file is no database, or no longer one."""
