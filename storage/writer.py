"""The writer: gathers rows and writes them in few, large transactions.

Rows wait in bounded queues, one per table. A newer row with the same key replaces the older one.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import Any

from sqlalchemy import Executable, Table, bindparam, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from storage import StorageError, tables
from storage.database import writing
from storage.errors import UNAVAILABLE, WRONG_ROW, WRONG_ROW_OF_SQLITE, describe
from storage.limits import Limits
from storage.rows import Row

_QUEUED_CHUNKS = 5_000
"""Some 10 kB each."""


@dataclass(frozen=True, slots=True, eq=False)
class TableWriter:
    """A table: the key of its rows, and the statement that writes them."""

    statements: Mapping[str, Executable]
    """By dialect."""
    names: tuple[str, ...]
    key: Callable[[Row], Hashable]
    values: Callable[[Row], tuple[Any, ...]]
    queue_rows: int | None = None
    """How many may wait, where that is fewer than for other tables: these rows are large."""

    async def write(self, connection: AsyncConnection, rows: Iterable[Row]) -> None:
        parameters = [dict(zip(self.names, self.values(row), strict=True)) for row in rows]
        await connection.execute(self.statements[connection.dialect.name], parameters)


def _target(table: Table) -> TableWriter:
    columns = [column.key for column in table.columns]
    keys = [column.key for column in table.primary_key]
    values: dict[str, Any] = {name: bindparam(f"new_{name}") for name in columns}
    if table is tables.moves:
        # A move outlives its plan. It is also written if the plan is not there, or not there any more.
        plan = tables.plans.c.id
        values["plan_id"] = select(plan).where(plan == values["plan_id"]).scalar_subquery()
    statements = {}
    for dialect, insert in (("sqlite", sqlite.insert), ("postgresql", postgresql.insert)):
        statement = insert(table).values(values)
        replaced = {name: statement.excluded[name] for name in columns if name not in keys}
        statements[dialect] = statement.on_conflict_do_update(index_elements=keys, set_=replaced)
    names = tuple(f"new_{name}" for name in columns)
    queue_rows = _QUEUED_CHUNKS if table is tables.usage_chunks else None
    return TableWriter(statements, names, attrgetter(*keys), attrgetter(*columns), queue_rows)


HAPPINESS = _target(tables.happiness)
SERIES = _target(tables.usage_series)
CHUNKS = _target(tables.usage_chunks)
USAGE_EVENTS = _target(tables.usage_events)
DECISIONS = _target(tables.decisions)
PLANS = _target(tables.plans)
PROBLEMS = _target(tables.problems)
MOVES = _target(tables.moves)
REVISIONS = _target(tables.settings_revisions)
LOAD_BINS = _target(tables.probes_by_load)
STARTUPS = _target(tables.startup_times)
MOVE_CHECKS = _target(tables.move_checks)
DOCUMENTS = _target(tables.documents)

HISTORY = (PLANS, MOVES, DECISIONS, REVISIONS)
_ORDER = (*HISTORY, MOVE_CHECKS, LOAD_BINS, STARTUPS, PROBLEMS, HAPPINESS, USAGE_EVENTS, SERIES, DOCUMENTS, CHUNKS)
"""Plans before the moves and problems that name them. The bulk last."""

Queue = OrderedDict[Hashable, Row]
Batch = list[tuple[TableWriter, Row]]


@dataclass(slots=True)
class Pending:
    limit: int
    """Rows that one table may have waiting."""
    dropped: int = 0
    _queues: dict[TableWriter, Queue] = field(default_factory=lambda: {target: OrderedDict() for target in _ORDER})

    def __len__(self) -> int:
        return sum(map(len, self._queues.values()))

    def add(self, target: TableWriter, rows: Iterable[Row]) -> None:
        queue = self._queues[target]
        for row in rows:
            queue[target.key(row)] = row
        self._trim(target)

    def take(self, count: int) -> Batch:
        """The rows to write next; they are no longer waiting."""
        taken: Batch = []
        for target, queue in self._queues.items():
            while queue and len(taken) < count:
                taken.append((target, queue.popitem(last=False)[1]))
        return taken

    def take_of(self, targets: Collection[TableWriter]) -> Batch:
        """All rows of some tables."""
        taken = [(target, row) for target in targets for row in self._queues[target].values()]
        for target in targets:
            self._queues[target] = OrderedDict()
        return taken

    def restore(self, taken: Batch) -> None:
        """Put rows back in front, except where a newer row of the same key came in meanwhile."""
        for target, queue in self._queues.items():
            older = Queue((target.key(row), row) for owner, row in taken if owner is target)
            self._queues[target] = older | queue
            self._trim(target)

    def _trim(self, target: TableWriter) -> None:
        queue = self._queues[target]
        while len(queue) > min(self.limit, target.queue_rows or self.limit):
            queue.popitem(last=False)
            self.dropped += 1


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


@dataclass(frozen=True, slots=True)
class Unprepared:
    """A database that could not be used when it was opened, and how to try again."""

    prepare: Callable[[], Awaitable[None]]
    """Raises StorageError."""
    problem: str


class Writer:
    """Not thread-safe: add rows on the event loop."""

    def __init__(self, engine: AsyncEngine, limits: Limits, unprepared: Unprepared | None = None) -> None:
        self._unprepared = unprepared
        self._wrong_row = WRONG_ROW + (WRONG_ROW_OF_SQLITE if engine.dialect.name == "sqlite" else ())
        self._engine = writing(engine)
        self._limits = limits
        self._pending = Pending(limits.queue_rows)
        self._in_flight = 0
        self.batches = 0
        """Batches written. Grows with every change that readers can see."""
        self._error: str | None = unprepared.problem if unprepared is not None else None
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

    def add(self, target: TableWriter, *rows: Row) -> None:
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
        """Write all that waits; False if the database did not take it. Then the rows stay in the queue.

        The lock is free between two batches, for `write_now`.
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

    async def write_now(self, targets: Collection[TableWriter]) -> bool:
        """Write what waits for some tables, before the others; False as for `drain`, also when nothing waits for them
        and the last attempt to write anything failed."""
        async with self._lock:
            batch = self._pending.take_of(targets)
            if not batch and self._error is not None:
                return False
            return await self._attempt(batch)

    def require_prepared(self) -> None:
        """Before any other use of the database: it may be damaged, or that of a newer version."""
        if self._unprepared is not None:
            raise StorageError(self._error or self._unprepared.problem)

    async def _attempt(self, batch: Batch) -> bool:
        self._in_flight = len(batch)
        try:
            if self._unprepared is not None:
                await self._unprepared.prepare()
                self._unprepared = None
            await self._write(batch)
        except BaseException as error:
            self._pending.restore(batch)
            if not isinstance(error, (*UNAVAILABLE, StorageError)):
                raise
            self._error = describe(error)
            return False
        finally:
            self._in_flight = 0
        self.batches += bool(batch)
        self._error = None
        return True

    @contextlib.asynccontextmanager
    async def transaction(self) -> AsyncIterator[AsyncConnection]:
        """For other statements: one at a time with the batches."""
        self.require_prepared()
        async with self._lock, asyncio.timeout(self._limits.call_seconds), self._engine.begin() as connection:
            yield connection

    async def _write(self, batch: Batch) -> None:
        """Rows that the database never takes are found by bisection, so that the others are written."""
        try:
            async with asyncio.timeout(self._limits.call_seconds), self._engine.begin() as connection:
                for target, rows in groupby(batch, key=itemgetter(0)):
                    await target.write(connection, (row for _, row in rows))
        except self._wrong_row as error:
            if len(batch) == 1:
                self._refused += 1
                self._refusal = describe(error)
                return
            middle = len(batch) // 2
            await self._write(batch[:middle])
            await self._write(batch[middle:])
