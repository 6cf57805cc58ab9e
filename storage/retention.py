"""How long rows are kept, and the statements that delete the others, a bounded number of rows each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Delete, Select, Table, and_, delete, exists, or_, select, tuple_

from storage.tables import (
    decisions,
    happiness,
    move_checks,
    moves,
    plans,
    problems,
    settings_revisions,
    startup_times,
    usage_chunks,
    usage_events,
    usage_series,
)

CHUNK_ROWS = 5_000


@dataclass(frozen=True, slots=True)
class Retention:
    records: float = 7 * 24 * 3600.0
    """Seconds that finished records are kept."""
    usage: tuple[tuple[int, float], ...] = ((60, 6 * 3600.0), (300, 30 * 24 * 3600.0), (3600, 90 * 24 * 3600.0))
    """Seconds that usage is kept, by the step that it is recorded in."""
    pods: float = 31 * 24 * 3600.0
    """Seconds after which a pod that is gone is forgotten; its usage is part of its workload's."""
    series: float = 91 * 24 * 3600.0
    """The same for nodes and workloads, and for what changed them."""
    decisions: int = 200_000
    """The newest so many, whatever their age."""
    plans: int = 1_000
    """The newest so many, whatever their age."""
    startups: int = 20_000
    """Start-up times of the newest so many workloads, whatever their age."""
    problems: int = 100
    """Problems of the newest so many plans: a problem has a line per pod."""


def outdated(now: float, keep: Retention) -> Iterator[Delete]:
    """Repeat each statement until it deletes fewer rows than a chunk."""
    oldest = now - keep.records
    for step, seconds in keep.usage:
        yield _chunk(usage_chunks, and_(usage_chunks.c.step == step, usage_chunks.c.start < now - seconds))
    yield _chunk(usage_events, usage_events.c.at < now - keep.series)
    yield _chunk(usage_series, _unseen(now, keep))
    yield _chunk(happiness, happiness.c.at < oldest)
    yield _chunk(decisions, or_(decisions.c.at < oldest, _beyond_newest(decisions, keep.decisions)))
    yield _chunk(moves, moves.c.ended < oldest)
    yield _chunk(move_checks, move_checks.c.at < oldest)
    yield _chunk(startup_times, _beyond_newest(startup_times, keep.startups))
    yield _chunk(plans, and_(or_(plans.c.at < oldest, _beyond_newest(plans, keep.plans)), ~_has_open_move()))
    yield _chunk(problems, problems.c.plan_id.not_in(_newest_plans(keep.problems)))
    yield _chunk(settings_revisions, and_(settings_revisions.c.at < oldest, ~_is_in_force()))


def oldest() -> Iterator[Delete]:
    """The oldest rows, the bulk first, for a store that is too large. Repeat each statement while it is, and until it
    deletes nothing."""
    yield _oldest(usage_chunks, usage_chunks.c.start, rows=100)
    yield _oldest(problems, problems.c.plan_id, select(problems.c.plan_id).join(plans).order_by(plans.c.seq), 10)
    yield _oldest(plans, plans.c.seq, select(plans.c.id).where(~_has_open_move()).order_by(plans.c.seq), 10)
    yield _oldest(decisions, decisions.c.seq)


def _unseen(now: float, keep: Retention) -> ColumnElement[bool]:
    seen = usage_series.c.seen
    return or_(and_(usage_series.c.kind == "pod", seen < now - keep.pods), seen < now - keep.series)


def _oldest(table: Table, order: ColumnElement[Any], keys: Select[Any] | None = None, rows: int = CHUNK_ROWS) -> Delete:
    found = select(*table.primary_key).order_by(order) if keys is None else keys
    return delete(table).where(tuple_(*table.primary_key).in_(found.limit(rows)))


def _chunk(table: Table, condition: ColumnElement[bool]) -> Delete:
    key = tuple_(*table.primary_key)
    return delete(table).where(key.in_(select(*table.primary_key).where(condition).limit(CHUNK_ROWS)))


def _beyond_newest(table: Table, count: int) -> ColumnElement[bool]:
    newest_at = table.alias().c.at
    first_too_many = select(newest_at).order_by(newest_at.desc()).limit(1).offset(count).scalar_subquery()
    return table.c.at <= first_too_many


def _newest_plans(count: int) -> Select[tuple[str]]:
    return select(plans.c.id).order_by(plans.c.seq.desc()).limit(count)


def _has_open_move() -> ColumnElement[bool]:
    return exists().where(moves.c.plan_id == plans.c.id, moves.c.ended.is_(None))


def _is_in_force() -> ColumnElement[bool]:
    other = settings_revisions.alias()
    newest_accepted = select(other.c.id).where(other.c.accepted).order_by(other.c.at.desc()).limit(1)
    return settings_revisions.c.id == newest_accepted.scalar_subquery()
