"""What is too old or too much to keep, as statements that delete a bounded number of rows each."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import ColumnElement, Delete, Table, and_, delete, exists, or_, select, tuple_

from storage.limits import Retention
from storage.tables import decisions, happiness, moves, plans, settings_revisions, usage_samples

CHUNK_ROWS = 5_000


def outdated(now: float, keep: Retention) -> Iterator[Delete]:
    """Each statement is to be repeated until it deletes fewer rows than a chunk."""
    oldest = now - keep.records
    yield _chunk(usage_samples, usage_samples.c.at < now - min(keep.samples, keep.records))
    yield _chunk(happiness, happiness.c.at < oldest)
    yield _chunk(decisions, or_(decisions.c.at < oldest, _beyond_newest(decisions, keep.decisions)))
    yield _chunk(moves, moves.c.ended < oldest)
    yield _chunk(plans, and_(or_(plans.c.at < oldest, _beyond_newest(plans, keep.plans)), ~_has_open_move()))
    yield _chunk(settings_revisions, and_(settings_revisions.c.at < oldest, ~_is_in_force()))


def _chunk(table: Table, condition: ColumnElement[bool]) -> Delete:
    key = tuple_(*table.primary_key)
    return delete(table).where(key.in_(select(*table.primary_key).where(condition).limit(CHUNK_ROWS)))


def _beyond_newest(table: Table, count: int) -> ColumnElement[bool]:
    newest_at = table.alias().c.at
    first_too_many = select(newest_at).order_by(newest_at.desc()).limit(1).offset(count).scalar_subquery()
    return table.c.at <= first_too_many


def _has_open_move() -> ColumnElement[bool]:
    return exists().where(moves.c.plan_id == plans.c.id, moves.c.ended.is_(None))


def _is_in_force() -> ColumnElement[bool]:
    other = settings_revisions.alias()
    newest_accepted = select(other.c.id).where(other.c.accepted).order_by(other.c.at.desc()).limit(1)
    return settings_revisions.c.id == newest_accepted.scalar_subquery()
