"""Rows that wait to be written: bounded per table, the newest row of a key in place of the older ones."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

from sqlalchemy import Executable, Table, bindparam, select
from sqlalchemy.dialects import sqlite
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from storage import tables
from storage.rows import Row


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """A table, how a row of it is told apart from others, and how many of them are written at once."""

    statement: Executable
    names: tuple[str, ...]
    key: Callable[[Row], Hashable]
    values: Callable[[Row], tuple[Any, ...]]
    driver_sql: str = ""
    """The statement in SQLite's own words, where there are so many rows that SQLAlchemy's care of each parameter would
    cost more than the database."""

    async def write(self, connection: AsyncConnection, rows: Iterable[Row]) -> None:
        if self.driver_sql:
            await connection.exec_driver_sql(self.driver_sql, [self.values(row) for row in rows])
        else:
            parameters = [dict(zip(self.names, self.values(row), strict=True)) for row in rows]
            await connection.execute(self.statement, parameters)


def _target(table: Table) -> Target:
    columns = [column.name for column in table.columns]
    keys = [column.name for column in table.primary_key]
    values: dict[str, Any] = {name: bindparam(f"new_{name}") for name in columns}
    if table is tables.moves:
        # A move outlives its plan: a plan that is not (or no longer) there must not keep the move out.
        plan = tables.plans.c.id
        values["plan_id"] = select(plan).where(plan == values["plan_id"]).scalar_subquery()
    statement = insert(table).values(values)
    replaced = {name: statement.excluded[name] for name in columns if name not in keys}
    upsert = statement.on_conflict_do_update(index_elements=keys, set_=replaced)
    driver_sql = (
        str(upsert.compile(dialect=sqlite.dialect(paramstyle="qmark"))) if table is tables.usage_samples else ""
    )
    names = tuple(f"new_{name}" for name in columns)
    return Target(upsert, names, attrgetter(*keys), attrgetter(*columns), driver_sql)


HAPPINESS = _target(tables.happiness)
SAMPLES = _target(tables.usage_samples)
DECISIONS = _target(tables.decisions)
PLANS = _target(tables.plans)
MOVES = _target(tables.moves)
REVISIONS = _target(tables.settings_revisions)
META = _target(tables.meta)

_ORDER = (PLANS, MOVES, DECISIONS, REVISIONS, META, HAPPINESS, SAMPLES)
"""Plans before the moves that name them; the bulk last."""

Queue = OrderedDict[Hashable, Row]
Batch = list[tuple[Target, Row]]


@dataclass(slots=True)
class Pending:
    limit: int
    """Rows that one table may have waiting."""
    dropped: int = 0
    _queues: dict[Target, Queue] = field(default_factory=lambda: {target: OrderedDict() for target in _ORDER})

    def __len__(self) -> int:
        return sum(map(len, self._queues.values()))

    def add(self, target: Target, rows: Iterable[Row]) -> None:
        queue = self._queues[target]
        for row in rows:
            queue[target.key(row)] = row
        self._trim(queue)

    def take(self, count: int) -> Batch:
        """The rows to write next; they are no longer waiting."""
        taken: Batch = []
        for target, queue in self._queues.items():
            while queue and len(taken) < count:
                taken.append((target, queue.popitem(last=False)[1]))
        return taken

    def take_of(self, target: Target) -> Batch:
        """All rows of one table."""
        rows, self._queues[target] = self._queues[target].values(), OrderedDict()
        return [(target, row) for row in rows]

    def restore(self, taken: Batch) -> None:
        """Put rows back in front, except where a newer row of the same key came in meanwhile."""
        for target, queue in self._queues.items():
            older = Queue((target.key(row), row) for owner, row in taken if owner is target)
            self._queues[target] = older | queue
            self._trim(self._queues[target])

    def _trim(self, queue: Queue) -> None:
        while len(queue) > self.limit:
            queue.popitem(last=False)
            self.dropped += 1
