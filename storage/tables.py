"""The tables. A change here needs a revision in `migrations/versions`; a test compares the two."""

from __future__ import annotations

import json
from typing import Any

import sqlalchemy
from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Dialect,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import TypeDecorator

metadata = MetaData()

Seq = BigInteger().with_variant(Integer, "sqlite")
"""Microseconds since the epoch. An integer of SQLite has as many bits as it needs."""


class Float(TypeDecorator[float]):
    """NaN is no value. SQLite stores NULL for it, and so does this: PostgreSQL would keep it, above all numbers."""

    impl = sqlalchemy.Float
    cache_ok = True

    def process_bind_param(self, value: float | None, dialect: Dialect) -> float | None:  # noqa: ARG002
        return None if value != value else value


class position_in(FunctionElement[int]):  # noqa: N801 - it is used as a function
    """Where a text is in another one, from 1 on; 0 if it is not."""

    inherit_cache = True


@compiles(position_in, "sqlite")
def _instr(element: position_in, compiler: SQLCompiler, **kw: Any) -> str:
    return f"instr({compiler.process(element.clauses, **kw)})"


@compiles(position_in, "postgresql")
def _strpos(element: position_in, compiler: SQLCompiler, **kw: Any) -> str:
    return f"strpos({compiler.process(element.clauses, **kw)})"


class JsonTuple(TypeDecorator[tuple[Any, ...]]):
    """A tuple of strings or numbers, or of tuples of these, stored as JSON."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: tuple[Any, ...] | None, dialect: Dialect) -> str:  # noqa: ARG002
        return json.dumps(value or ())

    def process_result_value(self, value: str | None, dialect: Dialect) -> tuple[Any, ...]:  # noqa: ARG002
        return tuple(tuple(item) if isinstance(item, list) else item for item in json.loads(value or "[]"))


happiness = Table(
    "happiness",
    metadata,
    Column("uid", Text, primary_key=True),
    Column("namespace", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("successes", Float, nullable=False),
    Column("failures", Float, nullable=False),
    Column("at", Float, nullable=False),
    Column("ledger", Text, key="probe_history", nullable=False),
    sqlite_with_rowid=False,
)

usage_series = Table(
    "usage_series",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("kind", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("block", Integer, nullable=False),
    Column("seen", Float, nullable=False),
    Index("usage_series_name", "kind", "name", unique=True),
)

# The bulk of the data. By time: a window is one range of the key, and so is what is pruned.
usage_chunks = Table(
    "usage_chunks",
    metadata,
    Column("step", Integer, primary_key=True, autoincrement=False),
    Column("start", Integer, primary_key=True, autoincrement=False),
    Column("block", Integer, primary_key=True, autoincrement=False),
    Column("document", LargeBinary, nullable=False),
)

usage_events = Table(
    "usage_events",
    metadata,
    Column("at", Float, primary_key=True),
    Column("kind", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("text", Text, nullable=False),
    Index("usage_events_name", "kind", "name", "at"),
)

decisions = Table(
    "decisions",
    metadata,
    Column("id", Text, primary_key=True),
    Column("cycle", Text, nullable=False),
    Column("at", Float, nullable=False),
    Column("kind", Text, nullable=False),
    Column("pod_uid", Text, nullable=False),
    Column("pod_key", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("until", Float),
    Column("seq", Seq, nullable=False),
    Index("decisions_at", "at"),
    Index("decisions_seq", "seq"),
    Index("decisions_pod_key", "pod_key", "seq"),
)

plans = Table(
    "plans",
    metadata,
    Column("id", Text, primary_key=True),
    Column("cycle", Text, nullable=False),
    Column("at", Float, nullable=False),
    Column("planner", Text, nullable=False),
    Column("mode", Text, nullable=False),
    Column("trigger", Text, nullable=False),
    Column("moves", Integer, nullable=False),
    Column("blocking_pairs", Integer, nullable=False),
    Column("feasible", Boolean, nullable=False),
    Column("document", Text, nullable=False),
    Column("pod_key", Text),
    Column("text", Text, nullable=False),
    Column("seq", Seq, nullable=False),
    Index("plans_at", "at"),
    Index("plans_seq", "seq"),
)

# Apart from the plans: it is large, and few readers want it.
problems = Table(
    "problems",
    metadata,
    Column("plan_id", Text, ForeignKey("plans.id", ondelete="CASCADE"), primary_key=True),
    Column("document", LargeBinary),
    Column("note", Text, nullable=False),
)

moves = Table(
    "moves",
    metadata,
    Column("id", Text, primary_key=True),
    Column("plan_id", Text, ForeignKey("plans.id", ondelete="SET NULL")),
    Column("pod_uid", Text, nullable=False),
    Column("pod_key", Text, nullable=False),
    Column("workload", Text, nullable=False),
    Column("from_node", Text),
    Column("to_node", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("started", Float, nullable=False),
    Column("evicted", Float),
    Column("bound", Float),
    Column("ready", Float),
    Column("ended", Float),
    Column("outcome", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("replacement_uid", Text, nullable=False),
    Column("cycle", Text, nullable=False),
    Column("at", Float, nullable=False),
    Column("reasons", JsonTuple, nullable=False),
    Column("seq", Seq, nullable=False),
    Index("moves_plan_id", "plan_id"),
    Index("moves_seq", "seq"),
    Index("moves_pod_key", "pod_key", "seq"),
)

# Small: a row per bin of load.
probes_by_load = Table(
    "probes_by_load",
    metadata,
    Column("bin", Integer, primary_key=True),
    Column("probes", Float, nullable=False),
    Column("failures", Float, nullable=False),
    Column("load", Float, nullable=False),
    Column("expected", Float, nullable=False),
    Column("at", Float, nullable=False),
)

startup_times = Table(
    "startup_times",
    metadata,
    Column("workload", Text, primary_key=True),
    Column("at", Float, nullable=False),
    Column("seconds", JsonTuple, nullable=False),
    Index("startup_times_at", "at"),
)

move_checks = Table(
    "move_checks",
    metadata,
    Column("move_id", Text, primary_key=True),
    Column("plan_id", Text, nullable=False),
    Column("replacement_uid", Text, nullable=False),
    Column("node", Text, nullable=False),
    Column("at", Float, nullable=False),
    Column("expected", Float, nullable=False),
    Column("observed", Float),
    Column("helped", Boolean),
    Index("move_checks_at", "at"),
)

# What is kept as one document per name: what the forecasts have learned.
documents = Table(
    "documents",
    metadata,
    Column("name", Text, primary_key=True),
    Column("at", Float, nullable=False),
    Column("document", LargeBinary, nullable=False),
)

settings_revisions = Table(
    "settings_revisions",
    metadata,
    Column("id", Text, primary_key=True),
    Column("at", Float, nullable=False),
    Column("source", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("accepted", Boolean, nullable=False),
    Column("errors", JsonTuple, nullable=False),
    Column("text", Text, nullable=False),
    Column("seq", Seq, nullable=False),
    Index("settings_revisions_at", "at"),
    Index("settings_revisions_seq", "seq"),
)
