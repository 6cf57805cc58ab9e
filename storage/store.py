"""The store: rows are added at once and written soon, in batches; reads see what has been written."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any, Self, TypeVar

from sqlalchemy import Row, Select, func, or_, select, update
from sqlalchemy.ext.asyncio import AsyncEngine

from storage import pending, pruning, tables
from storage.engine import connect, locate, make_file
from storage.errors import StorageError
from storage.limits import Limits, Retention
from storage.rows import (
    DecisionRow,
    HappinessRow,
    MetaRow,
    MoveRow,
    PlanRow,
    PlanSummary,
    RevisionRow,
    SampleKind,
    SampleRow,
)
from storage.writer import UNAVAILABLE, Health, Writer, describe

_RowType = TypeVar("_RowType")
_SUMMARY = [column for column in tables.plans.columns if column.name != "document"]


class Store:
    """Made by `open`. `add_*` never wait and never fail; what the disk makes of it is in `health`."""

    def __init__(self, path: Path, engine: AsyncEngine, limits: Limits) -> None:
        self.path = path
        self._engine = engine
        self._limits = limits
        self._writer = Writer(engine, limits)

    @classmethod
    async def open(cls, where: str | Path, limits: Limits | None = None) -> Self:
        """A file or an SQLite URL; the folder is made, the schema brought up to date."""
        limits = limits or Limits()
        path = locate(where)
        # Alembic costs as much to import as all the rest of us; only who opens a store pays for it.
        from storage.schema import migrate

        engine = connect(path, limits)
        try:
            async with asyncio.timeout(limits.call_seconds):
                await asyncio.to_thread(make_file, path)
                await migrate(engine)
        except BaseException as error:
            await engine.dispose()
            if isinstance(error, UNAVAILABLE):
                raise StorageError(_unusable(path, error)) from error
            raise
        return cls(path, engine, limits)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Write what waits, once; what the disk does not take now is lost, and `health` says so."""
        await self._writer.stop()
        await self._engine.dispose()

    async def flush(self) -> bool:
        """Write what waits now; False when the disk did not take it: the rows wait on, `health` says why."""
        return await self._writer.drain()

    async def flush_moves(self) -> bool:
        """The same for the moves alone: they do not wait for thousands of samples."""
        return await self._writer.write_now(pending.MOVES)

    @property
    def health(self) -> Health:
        return self._writer.health

    def add_happiness(self, *rows: HappinessRow) -> None:
        self._writer.add(pending.HAPPINESS, *rows)

    def add_samples(self, *rows: SampleRow) -> None:
        self._writer.add(pending.SAMPLES, *rows)

    def add_decisions(self, *rows: DecisionRow) -> None:
        self._writer.add(pending.DECISIONS, *rows)

    def add_plan(self, row: PlanRow) -> None:
        self._writer.add(pending.PLANS, row)

    def add_move(self, row: MoveRow) -> None:
        """Also for a change: the row with the same id is replaced."""
        self._writer.add(pending.MOVES, row)

    def add_revision(self, row: RevisionRow) -> None:
        self._writer.add(pending.REVISIONS, row)

    def add_meta(self, row: MetaRow) -> None:
        self._writer.add(pending.META, row)

    async def happiness(self) -> list[HappinessRow]:
        return await self._all(HappinessRow, select(tables.happiness))

    async def samples(self, since: float, kind: SampleKind) -> list[SampleRow]:
        """Oldest first."""
        table = tables.usage_samples
        return await self._all(
            SampleRow, select(table).where(table.c.at >= since, table.c.kind == kind).order_by(table.c.at)
        )

    async def decisions(
        self, limit: int = 100, pod: str | None = None, since: float | None = None
    ) -> list[DecisionRow]:
        """Newest first; `pod` is a uid or `namespace/name`."""
        table = tables.decisions
        query = select(table).order_by(table.c.at.desc()).limit(limit)
        if pod is not None:
            query = query.where(or_(table.c.pod_uid == pod, table.c.pod_key == pod))
        if since is not None:
            query = query.where(table.c.at >= since)
        return await self._all(DecisionRow, query)

    async def plans(self, limit: int = 100) -> list[PlanSummary]:
        """Newest first, without their documents."""
        return await self._all(PlanSummary, select(*_SUMMARY).order_by(tables.plans.c.at.desc()).limit(limit))

    async def plan(self, plan_id: str) -> PlanRow | None:
        return await self._first(PlanRow, select(tables.plans).where(tables.plans.c.id == plan_id))

    async def last_plan_for(self, pod: str) -> PlanRow | None:
        """The newest plan whose document names the pod, by uid or `namespace/name`."""
        table = tables.plans
        named = func.instr(table.c.document, f'"{pod}"') > 0
        return await self._first(PlanRow, select(table).where(named).order_by(table.c.at.desc()).limit(1))

    async def moves(self, limit: int = 100, *, open_only: bool = False) -> list[MoveRow]:
        """Newest first."""
        table = tables.moves
        query = select(table).order_by(table.c.started.desc()).limit(limit)
        return await self._all(MoveRow, query.where(table.c.ended.is_(None)) if open_only else query)

    async def revisions(self, limit: int = 20) -> list[RevisionRow]:
        """Newest first."""
        table = tables.settings_revisions
        return await self._all(RevisionRow, select(table).order_by(table.c.at.desc()).limit(limit))

    async def meta(self, key: str) -> str | None:
        row = await self._first(MetaRow, select(tables.meta).where(tables.meta.c.key == key))
        return row.value if row else None

    async def abandon_open_moves(self, at: float, text: str) -> int:
        """Close what an earlier process left open; how many there were."""
        await self.flush()
        ended = {"state": "abandoned", "outcome": "abandoned", "ended": at, "text": text}
        async with self._mapped(), self._writer.transaction() as connection:
            result = await connection.execute(update(tables.moves).where(tables.moves.c.ended.is_(None)).values(ended))
        return result.rowcount

    async def prune(self, now: float, keep: Retention | None = None) -> int:
        """Delete what is outdated, in small transactions that let batches in between; how many rows went."""
        total = 0
        for statement in pruning.outdated(now, keep or Retention()):
            deleted = pruning.CHUNK_ROWS
            while deleted == pruning.CHUNK_ROWS:
                async with self._mapped(), self._writer.transaction() as connection:
                    deleted = (await connection.execute(statement)).rowcount
                total += deleted
        return total

    async def _all(self, make: Callable[..., _RowType], query: Select[Any]) -> list[_RowType]:
        return [make(*row) for row in await self._read(query)]

    async def _first(self, make: Callable[..., _RowType], query: Select[Any]) -> _RowType | None:
        rows = await self._read(query)
        return make(*rows[0]) if rows else None

    async def _read(self, query: Select[Any]) -> Sequence[Row[Any]]:
        async with self._mapped(), asyncio.timeout(self._limits.call_seconds), self._engine.connect() as connection:
            rows: Sequence[Row[Any]] = (await connection.execute(query)).all()
            return rows

    @contextlib.asynccontextmanager
    async def _mapped(self) -> AsyncIterator[None]:
        try:
            yield
        except UNAVAILABLE as error:
            raise StorageError(_unusable(self.path, error)) from error


def _unusable(path: Path, error: BaseException) -> str:
    reason = describe(error)
    if "not a database" in reason or "malformed" in reason:
        return (
            f"{path} is damaged or no SQLite database ({reason}); nothing was changed: "
            "move it (with its -wal and -shm files) out of the way to start with an empty one, or restore a copy"
        )
    return f"{path} cannot be used: {reason}; check the folder's permissions, the free space and who else has it open"
