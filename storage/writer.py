"""The one writer: rows are gathered and go to the database in few, large transactions."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncIterator
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

from sqlalchemy.exc import DataError, IntegrityError, InterfaceError, ProgrammingError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from storage.engine import writing
from storage.limits import Limits
from storage.pending import Batch, Pending, Target
from storage.rows import Row

UNWRITABLE = (IntegrityError, DataError, InterfaceError, ProgrammingError, UnicodeError, OverflowError)
"""The row itself is at fault: trying again will not help."""

UNAVAILABLE = (SQLAlchemyError, sqlite3.Error, OSError)
"""The disk is full, the file locked, or the deadline over (TimeoutError is an OSError): worth trying again."""


@dataclass(frozen=True, slots=True)
class Health:
    error: str | None
    """Why the last attempt to write failed; None after one that succeeded."""
    pending: int
    """Rows that are not in the database yet."""
    dropped: int
    """Rows given up because too many were waiting."""
    refused: int
    """Rows given up because the database will never take them."""
    refusal: str | None
    """Why the last of these was refused."""

    @property
    def ok(self) -> bool:
        return self.error is None


class Writer:
    """Not thread-safe: rows are added on the event loop."""

    def __init__(self, engine: AsyncEngine, limits: Limits) -> None:
        self._engine = writing(engine)
        self._limits = limits
        self._pending = Pending(limits.queue_rows)
        self._in_flight = 0
        self._error: str | None = None
        self._refused = 0
        self._refusal: str | None = None
        self._lock = asyncio.Lock()
        self._waiting = asyncio.Event()
        self._full = asyncio.Event()
        self._task = asyncio.create_task(self._run(), name="storage-writer")

    @property
    def health(self) -> Health:
        error = self._error
        if self._task.done() and not self._task.cancelled() and (bug := self._task.exception()):
            error = f"the writer stopped: {describe(bug)}"
        waiting = len(self._pending) + self._in_flight
        return Health(error, waiting, self._pending.dropped, self._refused, self._refusal)

    def add(self, target: Target, *rows: Row) -> None:
        self._pending.add(target, rows)
        self._waiting.set()
        if len(self._pending) >= self._limits.batch_rows:
            self._full.set()

    async def stop(self) -> None:
        """Ends the task between two batches, never inside one, and writes what is left."""
        async with self._lock:
            self._task.cancel()
        await asyncio.wait([self._task])
        await self.drain()

    async def _run(self) -> None:
        """Write whenever rows have waited long enough or there are enough of them; ends only by cancellation."""
        while True:
            await self._waiting.wait()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._limits.flush_seconds):
                    await self._full.wait()
            if not await self.drain():
                await asyncio.sleep(self._limits.retry_seconds)

    async def drain(self) -> bool:
        """Write all that waits; False when the database did not take it. Nothing is lost then, rows wait on.

        Whoever has something urgent comes between two batches.
        """
        while True:
            async with self._lock:
                batch = self._pending.take(self._limits.batch_rows)
                if not batch:
                    self._waiting.clear()
                    self._full.clear()
                    return True
                if not await self._attempt(batch):
                    return False

    async def write_now(self, target: Target) -> bool:
        """Write what waits of one table, before the bulk of the others; False as for `drain`."""
        async with self._lock:
            return await self._attempt(self._pending.take_of(target))

    async def _attempt(self, batch: Batch) -> bool:
        self._in_flight = len(batch)
        try:
            await self._write(batch)
        except BaseException as error:
            self._pending.restore(batch)
            if not isinstance(error, UNAVAILABLE):
                raise
            self._error = describe(error)
            return False
        finally:
            self._in_flight = 0
        self._error = None
        return True

    @contextlib.asynccontextmanager
    async def transaction(self) -> AsyncIterator[AsyncConnection]:
        """For what is no row to add; takes turns with the batches."""
        async with self._lock, asyncio.timeout(self._limits.call_seconds), self._engine.begin() as connection:
            yield connection

    async def _write(self, batch: Batch) -> None:
        """Rows that the database will never take are found by halving, so that they do not hold up the others."""
        try:
            async with asyncio.timeout(self._limits.call_seconds), self._engine.begin() as connection:
                for target, rows in groupby(batch, key=itemgetter(0)):
                    await target.write(connection, (row for _, row in rows))
        except UNWRITABLE as error:
            if len(batch) == 1:
                self._refused += 1
                self._refusal = describe(error)
                return
            middle = len(batch) // 2
            await self._write(batch[:middle])
            await self._write(batch[middle:])


def describe(error: BaseException) -> str:
    """The database's own words; SQLAlchemy adds the statement and its parameters, which belong in no log."""
    return str(getattr(error, "orig", None) or error) or type(error).__name__
