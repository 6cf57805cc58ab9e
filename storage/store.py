"""The store. Rows are added at once and written soon after, in batches. Reads see the written rows.

A row is visible to readers after at most `Limits.flush_seconds`, half a second, or after `flush`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from dataclasses import replace
from math import ceil, floor, isfinite
from pathlib import Path
from typing import Any, Self, TypeVar

from sqlalchemy import ColumnElement, Row, Select, Table, func, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from storage import DamagedError, StorageError, retention, tables, writer
from storage.database import Database, database_at, migrate, require_schema
from storage.errors import UNAVAILABLE, describe
from storage.limits import Limits
from storage.place import Place, locate
from storage.retention import Retention
from storage.rows import (
    ChunkRow,
    DecisionRow,
    DocumentRow,
    HappinessRow,
    LoadBinRow,
    MoveCheckRow,
    MoveRow,
    PlanRow,
    ProblemRow,
    RevisionRow,
    SeriesKind,
    SeriesRow,
    StartupRow,
    UsageEventRow,
)
from storage.writer import Health, Unprepared, Writer

_RowType = TypeVar("_RowType")
_HistoryRow = TypeVar("_HistoryRow", DecisionRow, PlanRow, MoveRow, RevisionRow)
ABANDONED = "abandoned"
_FULL, _SHRUNK = 0.85, 0.75
"""Shares of the largest size at which rows are deleted, and to which."""


class Store:
    """Made by `open`. `add_*` never wait and never fail; `health` says whether rows are written."""

    def __init__(
        self,
        database: Database,
        engine: AsyncEngine,
        readers: AsyncEngine,
        limits: Limits,
        unprepared: Unprepared | None = None,
    ) -> None:
        self._database = database
        self.damaged: Path | None = None
        """Where the damaged store is that was set aside."""
        self._engine = engine
        self._readers = readers
        self._limits = limits
        self._writer = Writer(engine, limits, unprepared)
        self._last_seq = 0

    @classmethod
    async def open(
        cls,
        where: str | Place,
        limits: Limits | None = None,
        *,
        read_only: bool = False,
        patient: bool = False,
        replace_damaged: bool = False,
        shared: bool = False,
    ) -> Self:
        """A file or a URL; folder or schema are made, the tables brought up to date.

        With `read_only` it must be there and up to date, and nothing is ever written to it. With `patient` a store that
        cannot be used is opened, too: `health` says why, the store stays as it is, rows wait, and the next write tries
        again. With `replace_damaged` a damaged file is set aside, and a new one begins: `damaged` is its name then.
        Nobody else may be using it. With `shared` another process may record in the same PostgreSQL schema.
        """
        limits = limits or Limits()
        database = database_at(locate(where), limits)
        readers = database.readers(read_only=read_only)
        engine = readers if read_only else database.writer(shared=shared)

        async def set_up() -> None:
            try:
                async with asyncio.timeout(limits.call_seconds):
                    await asyncio.to_thread(lambda: database.prepare(read_only=read_only))
                    await (require_schema if read_only else migrate)(database, engine)
            except BaseException as error:
                await engine.dispose()
                if isinstance(error, UNAVAILABLE):
                    raise database.unusable(describe(error)) from error
                raise

        damaged = None
        try:
            try:
                await set_up()
            except DamagedError:
                damaged = await asyncio.to_thread(database.set_aside) if replace_damaged else None
                if damaged is None:
                    raise
                await set_up()
        except StorageError as error:
            if not patient:
                raise
            return cls(database, engine, readers, limits, Unprepared(set_up, str(error)))
        store = cls(database, engine, readers, limits)
        store.damaged = damaged
        return store

    @property
    def place(self) -> Place:
        """Printed, it shows no password."""
        return self._database.place

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Write what waits, once. What the disk does not take now is lost, and `health` says so."""
        await self._writer.stop()
        await self._readers.dispose()
        await self._engine.dispose()

    async def flush(self) -> bool:
        """Write what waits now; False if the disk did not take it: the rows stay queued, `health` says why."""
        return await self._writer.drain()

    async def flush_history(self) -> bool:
        """The same for the history alone: it does not wait for thousands of samples."""
        return await self._writer.write_now(writer.HISTORY)

    @property
    def health(self) -> Health:
        return self._writer.health

    @property
    def version(self) -> int:
        """Grows whenever readers can see more than before."""
        return self._writer.batches

    def add_happiness(self, *rows: HappinessRow) -> None:
        self._writer.add(writer.HAPPINESS, *rows)

    def add_series(self, *rows: SeriesRow) -> None:
        self._writer.add(writer.SERIES, *rows)

    def add_chunks(self, *rows: ChunkRow) -> None:
        """Also for a change: the row with the same step, start and block is replaced."""
        self._writer.add(writer.CHUNKS, *rows)

    def add_usage_events(self, *rows: UsageEventRow) -> None:
        self._writer.add(writer.USAGE_EVENTS, *rows)

    def add_decisions(self, *rows: DecisionRow) -> None:
        self._writer.add(writer.DECISIONS, *map(self._numbered, rows))

    def add_plan(self, row: PlanRow) -> int:
        """Also for a change: the row with the same id is replaced. Returns its `seq`; a row that has one keeps it, and
        with it its place in the history."""
        numbered = row if row.seq else self._numbered(row)
        self._writer.add(writer.PLANS, numbered)
        return numbered.seq

    def add_problem(self, row: ProblemRow) -> None:
        self._writer.add(writer.PROBLEMS, row)

    def add_move(self, row: MoveRow) -> None:
        """Also for a change: the row with the same id is replaced."""
        self._writer.add(writer.MOVES, self._numbered(row))

    def add_revision(self, row: RevisionRow) -> None:
        self._writer.add(writer.REVISIONS, self._numbered(row))

    def add_load_bins(self, *rows: LoadBinRow) -> None:
        self._writer.add(writer.LOAD_BINS, *rows)

    def add_startups(self, *rows: StartupRow) -> None:
        self._writer.add(writer.STARTUPS, *rows)

    def add_move_checks(self, *rows: MoveCheckRow) -> None:
        self._writer.add(writer.MOVE_CHECKS, *rows)

    def add_documents(self, *rows: DocumentRow) -> None:
        """Also for a change: the row with the same name is replaced."""
        self._writer.add(writer.DOCUMENTS, *rows)

    async def documents(self) -> list[DocumentRow]:
        return await self._all(DocumentRow, select(tables.documents).order_by(tables.documents.c.name))

    async def load_bins(self) -> list[LoadBinRow]:
        return await self._all(LoadBinRow, select(tables.probes_by_load).order_by(tables.probes_by_load.c.bin))

    async def startups(self) -> list[StartupRow]:
        """Oldest first."""
        return await self._all(StartupRow, select(tables.startup_times).order_by(tables.startup_times.c.at))

    async def move_checks(self, limit: int = 1000) -> list[MoveCheckRow]:
        """Newest first."""
        at = tables.move_checks.c.at
        return await self._all(MoveCheckRow, select(tables.move_checks).order_by(at.desc()).limit(limit))

    async def happiness(self) -> list[HappinessRow]:
        return await self._all(HappinessRow, select(tables.happiness))

    async def series(self, *kinds: SeriesKind) -> list[SeriesRow]:
        """Of these kinds, or all."""
        table = tables.usage_series
        return await self._all(SeriesRow, select(table).where(table.c.kind.in_(kinds)) if kinds else select(table))

    async def series_seen_since(self, at: float, *kinds: SeriesKind) -> list[tuple[int, SeriesKind, str, int]]:
        """Id, kind, name and block. Plain tuples: there can be hundreds of thousands."""
        columns = tables.usage_series.c
        query = select(columns.id, columns.kind, columns.name, columns.block)
        rows = await self._read(query.where(columns.kind.in_(kinds), columns.seen >= at))
        return [tuple(row) for row in rows]

    async def series_named(self, kind: SeriesKind, name: str) -> SeriesRow | None:
        table = tables.usage_series
        return await self._first(SeriesRow, select(table).where(table.c.kind == kind, table.c.name == name))

    async def chunks(
        self, step: int, since: float, until: float, blocks: Collection[int] | None = None
    ) -> list[ChunkRow]:
        """Those that start in this time, oldest first; of some blocks, or of all."""
        table = tables.usage_chunks
        found = [table.c.step == step, table.c.start >= floor(since), table.c.start < ceil(until)]
        if blocks is not None:
            found.append(table.c.block.in_(blocks))
        return await self._all(ChunkRow, select(table).where(*found).order_by(table.c.start))

    async def chunk_keys(self, step: int, since: float = 0.0) -> list[tuple[int, int]]:
        """Start and block of every chunk, oldest first."""
        table = tables.usage_chunks
        query = select(table.c.start, table.c.block).where(table.c.step == step, table.c.start >= floor(since))
        rows: Sequence[Row[Any]] = await self._read(query.order_by(table.c.start, table.c.block))
        return [(int(row.start), int(row.block)) for row in rows]

    async def usage_events(self, kind: SeriesKind, name: str, since: float, until: float) -> list[UsageEventRow]:
        """Oldest first."""
        table = tables.usage_events
        of_it = (table.c.kind == kind, table.c.name == name)
        query = select(table).where(*of_it, table.c.at >= since, table.c.at < until)
        return await self._all(UsageEventRow, query.order_by(table.c.at))

    async def usage_events_between(self, since: float, until: float) -> list[UsageEventRow]:
        """Of all pods, workloads and nodes, oldest first."""
        at = tables.usage_events.c.at
        return await self._all(UsageEventRow, select(tables.usage_events).where(at >= since, at < until).order_by(at))

    async def decisions(
        self, limit: int = 100, *, before: int | None = None, pod: str | None = None, waits: bool = True
    ) -> list[DecisionRow]:
        """Newest first, with a `seq` below `before`; `pod` is `namespace/name`."""
        table = tables.decisions
        query = _page(table, limit, before, table.c.pod_key == pod if pod else None)
        return await self._all(DecisionRow, query if waits else query.where(table.c.kind != "wait"))

    async def plans(self, limit: int = 100, *, before: int | None = None, pod: str | None = None) -> list[PlanRow]:
        """Newest first; with `pod` (`namespace/name`) only plans whose document names it."""
        table = tables.plans
        named = or_(table.c.pod_key == pod, tables.position_in(table.c.document, f'"{pod}"') > 0)
        return await self._all(PlanRow, _page(table, limit, before, named if pod else None))

    async def plan(self, plan_id: str) -> PlanRow | None:
        return await self._first(PlanRow, select(tables.plans).where(tables.plans.c.id == plan_id))

    async def problem(self, plan_id: str) -> ProblemRow | None:
        return await self._first(ProblemRow, select(tables.problems).where(tables.problems.c.plan_id == plan_id))

    async def plan_times(self, since: float) -> list[float]:
        """When plans were made, oldest first."""
        at = tables.plans.c.at
        return [row[0] for row in await self._read(select(at).where(at >= since).order_by(at))]

    async def moves(
        self, limit: int = 100, *, before: int | None = None, pod: str | None = None, begun: bool = False
    ) -> list[MoveRow]:
        """Newest change first; with `begun` without moves that are only planned."""
        table = tables.moves
        query = _page(table, limit, before, table.c.pod_key == pod if pod else None)
        return await self._all(MoveRow, query.where(table.c.state != "planned") if begun else query)

    async def move_to(self, replacement_uid: str) -> MoveRow | None:
        """The move that a pod is the replacement of."""
        return await self._first(MoveRow, select(tables.moves).where(tables.moves.c.replacement_uid == replacement_uid))

    async def open_moves(self) -> list[MoveRow]:
        return await self._all(MoveRow, select(tables.moves).where(tables.moves.c.ended.is_(None)))

    async def revisions(self, limit: int = 20, *, before: int | None = None) -> list[RevisionRow]:
        """Newest first."""
        return await self._all(RevisionRow, _page(tables.settings_revisions, limit, before))

    async def count_moves(self, outcome: str) -> int:
        return await self._count(select(func.count()).where(tables.moves.c.outcome == outcome))

    async def count_plans_with_moves(self) -> int:
        """Plans of which at least one move was recorded: in mode act, not in mode observe."""
        return await self._count(select(func.count(tables.moves.c.plan_id.distinct())))

    async def abandon_open_moves(self, at: float, text: str, resumed: Collection[str] = ()) -> int:
        """Close the moves that an earlier process left open, except those that are `resumed` (by id); return their
        number."""
        await self.flush()
        rows = [row for row in await self.open_moves() if row.id not in resumed]
        for row in rows:
            self.add_move(replace(row, state=ABANDONED, outcome=ABANDONED, ended=at, at=at, text=text))
        await self.flush()
        return len(rows)

    async def prune(self, now: float, keep: Retention | None = None) -> int:
        """Delete what is too old, in small transactions; return the number of rows."""
        total = 0
        for statement in retention.outdated(now, keep or Retention()):
            deleted = retention.CHUNK_ROWS
            while deleted == retention.CHUNK_ROWS:
                async with self._mapped(), self._writer.transaction() as connection:
                    deleted = (await connection.execute(statement)).rowcount
                total += deleted
        return total

    async def shrink(self, max_bytes: int) -> int:
        """If the rows take nearly `max_bytes`, delete the oldest ones; return their number. The file keeps its size,
        and new rows take the free pages: called often enough, it does not grow beyond `max_bytes`."""
        total = 0
        if await self._bytes(self._database.most_bytes) <= _FULL * max_bytes:
            return total
        if await self.used_bytes() <= _FULL * max_bytes:
            return total
        for statement in retention.oldest():
            deleted = 1
            while deleted and await self.used_bytes() > _SHRUNK * max_bytes:
                async with self._mapped(), self._writer.transaction() as connection:
                    deleted = (await connection.execute(statement)).rowcount
                total += deleted
        async with self._mapped():
            await self._database.reclaim()
        return total

    async def used_bytes(self) -> int:
        """Of all rows and indexes, without free space."""
        return await self._bytes(self._database.used_bytes)

    async def _bytes(self, measure: Callable[[AsyncConnection], Awaitable[int]]) -> int:
        self._writer.require_prepared()
        async with self._mapped(), asyncio.timeout(self._limits.call_seconds), self._readers.connect() as connection:
            return await measure(connection)

    def _numbered(self, row: _HistoryRow) -> _HistoryRow:
        """Microseconds of the row's time, or one more than the last number: no two rows of a process are equal."""
        now = int(row.at * 1e6) if isfinite(row.at) else 0
        self._last_seq = max(self._last_seq + 1, now)
        return replace(row, seq=self._last_seq)

    async def _count(self, query: Select[Any]) -> int:
        return int((await self._read(query))[0][0])

    async def _all(self, make: Callable[..., _RowType], query: Select[Any]) -> list[_RowType]:
        return [make(*row) for row in await self._read(query)]

    async def _first(self, make: Callable[..., _RowType], query: Select[Any]) -> _RowType | None:
        rows = await self._read(query)
        return make(*rows[0]) if rows else None

    async def _read(self, query: Select[Any]) -> Sequence[Row[Any]]:
        self._writer.require_prepared()
        async with self._mapped(), asyncio.timeout(self._limits.call_seconds), self._readers.connect() as connection:
            rows: Sequence[Row[Any]] = (await connection.execute(query)).all()
            return rows

    @contextlib.asynccontextmanager
    async def _mapped(self) -> AsyncIterator[None]:
        try:
            yield
        except UNAVAILABLE as error:
            raise self._database.unusable(describe(error)) from error


def _page(table: Table, limit: int, before: int | None, condition: ColumnElement[bool] | None = None) -> Select[Any]:
    conditions = [] if condition is None else [condition]
    if before is not None:
        conditions.append(table.c.seq < before)
    return select(table).where(*conditions).order_by(table.c.seq.desc()).limit(limit)
