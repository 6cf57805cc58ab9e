"""The history is read from the store alone: `seq` orders and pages it, and problems are stored with their plans.

A plan says what it is for. Until now a decision of kind `rematch` per unhappy pod did, now only where there is no plan.
The table `meta` is dropped because nothing reads it.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_NUMBERS = """
CREATE TEMPORARY TABLE numbers AS
SELECT source, id, CAST(at * 1000000 AS INTEGER) + ROW_NUMBER() OVER (PARTITION BY at ORDER BY rank, place) AS seq
FROM (
    SELECT 'settings_revisions' AS source, id, at, 1 AS rank, rowid AS place FROM settings_revisions
    UNION ALL SELECT 'decisions', id, at, 2, rowid FROM decisions
    UNION ALL SELECT 'plans', id, at, 3, rowid FROM plans
    UNION ALL SELECT 'moves', id, at, 4, rowid FROM moves
)
"""
_CAUSES = """
CREATE TEMPORARY TABLE causes AS
SELECT cycle, group_concat(pod_key || ': ' || text, '; ') AS text, min(pod_key) AS pod_key, count(*) AS pods
FROM decisions WHERE kind = 'rematch' GROUP BY cycle
"""


_SEQ = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    _add_columns()
    if op.get_bind().dialect.name == "sqlite":  # in PostgreSQL no store is as old: it has no rows yet
        _fill_plans()
        _number_rows()
    _change_indexes()
    op.create_table(
        "problems",
        sa.Column("plan_id", sa.Text, sa.ForeignKey("plans.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("document", sa.LargeBinary),
        sa.Column("note", sa.Text, nullable=False),
    )
    op.drop_table("meta")


def _add_columns() -> None:
    for table in ("decisions", "plans", "moves", "settings_revisions"):
        op.add_column(table, sa.Column("seq", _SEQ, nullable=False, server_default="0"))
    op.add_column("plans", sa.Column("pod_key", sa.Text))
    op.add_column("plans", sa.Column("text", sa.Text, nullable=False, server_default=""))
    op.add_column("moves", sa.Column("cycle", sa.Text, nullable=False, server_default=""))
    op.add_column("moves", sa.Column("at", sa.Float, nullable=False, server_default="0"))
    op.add_column("moves", sa.Column("reasons", sa.Text, nullable=False, server_default="[]"))
    op.execute("UPDATE moves SET at = coalesce(ended, ready, bound, evicted, started)")


def _fill_plans() -> None:
    op.execute(_CAUSES)
    op.execute("CREATE INDEX temp.causes_cycle ON causes (cycle)")
    op.execute(
        "UPDATE plans SET text = causes.text, pod_key = CASE WHEN causes.pods = 1 THEN causes.pod_key END"
        " FROM causes WHERE causes.cycle = plans.cycle"
    )
    op.execute("DELETE FROM decisions WHERE kind = 'rematch' AND cycle IN (SELECT cycle FROM plans)")
    op.execute("DROP TABLE temp.causes")


def _number_rows() -> None:
    op.execute(_NUMBERS)
    op.execute("CREATE INDEX temp.numbers_id ON numbers (source, id)")
    for table in ("decisions", "plans", "moves", "settings_revisions"):
        op.execute(
            f"UPDATE {table} SET seq = numbers.seq FROM numbers"
            f" WHERE numbers.source = '{table}' AND numbers.id = {table}.id"
        )
    op.execute("DROP TABLE temp.numbers")


def _change_indexes() -> None:
    op.drop_index("decisions_pod_uid", "decisions")
    op.drop_index("decisions_pod_key", "decisions")
    op.drop_index("moves_started", "moves")
    for table in ("decisions", "plans", "moves", "settings_revisions"):
        op.create_index(f"{table}_seq", table, ["seq"])
    for table in ("decisions", "moves"):
        op.create_index(f"{table}_pod_key", table, ["pod_key", "seq"])
