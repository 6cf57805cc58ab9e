"""What a database says when it refuses, in one line and without the statement, whose parameters must not be logged."""

from __future__ import annotations

import sqlite3

from sqlalchemy.exc import DataError, IntegrityError, InterfaceError, ProgrammingError, SQLAlchemyError

UNAVAILABLE = (SQLAlchemyError, sqlite3.Error, OSError)
"""The disk is full, the file locked, the server away, or the deadline over (TimeoutError is an OSError): retry."""

WRONG_ROW = (IntegrityError, DataError, UnicodeError, OverflowError)
"""The row is wrong: do not retry."""

WRONG_ROW_OF_SQLITE = (InterfaceError, ProgrammingError)
"""The same for SQLite's driver. PostgreSQL's says so of tables and rights: they can be mended."""


def describe(error: BaseException) -> str:
    found = getattr(error, "orig", None) or error
    primary = getattr(getattr(found, "diag", None), "message_primary", None)
    return primary or " ".join(str(found).split()) or type(found).__name__
