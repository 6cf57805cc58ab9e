"""The first schema. Written out and not taken from `storage.tables`: a revision never changes once it is released."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    _signals()
    _decisions()
    _plans()
    _moves()
    _settings()


def _signals() -> None:
    op.create_table(
        "happiness",
        sa.Column("uid", sa.Text, primary_key=True),
        sa.Column("namespace", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("successes", sa.Float, nullable=False),
        sa.Column("failures", sa.Float, nullable=False),
        sa.Column("at", sa.Float, nullable=False),
        sa.Column("ledger", sa.Text, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "usage_samples",
        sa.Column("at", sa.Float, primary_key=True),
        sa.Column("kind", sa.Text, primary_key=True),
        sa.Column("subject", sa.Text, primary_key=True),
        sa.Column("cpu", sa.Float),
        sa.Column("memory", sa.Float),
        sa.Column("source", sa.Text, nullable=False),
        sqlite_with_rowid=False,
    )


def _decisions() -> None:
    op.create_table(
        "decisions",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("cycle", sa.Text, nullable=False),
        sa.Column("at", sa.Float, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("pod_uid", sa.Text, nullable=False),
        sa.Column("pod_key", sa.Text, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("until", sa.Float),
    )
    op.create_index("decisions_at", "decisions", ["at"])
    op.create_index("decisions_pod_uid", "decisions", ["pod_uid", "at"])
    op.create_index("decisions_pod_key", "decisions", ["pod_key", "at"])


def _plans() -> None:
    op.create_table(
        "plans",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("cycle", sa.Text, nullable=False),
        sa.Column("at", sa.Float, nullable=False),
        sa.Column("planner", sa.Text, nullable=False),
        sa.Column("mode", sa.Text, nullable=False),
        sa.Column("trigger", sa.Text, nullable=False),
        sa.Column("moves", sa.Integer, nullable=False),
        sa.Column("blocking_pairs", sa.Integer, nullable=False),
        sa.Column("feasible", sa.Boolean, nullable=False),
        sa.Column("document", sa.Text, nullable=False),
    )
    op.create_index("plans_at", "plans", ["at"])


def _moves() -> None:
    op.create_table(
        "moves",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("plan_id", sa.Text, sa.ForeignKey("plans.id", ondelete="SET NULL")),
        sa.Column("pod_uid", sa.Text, nullable=False),
        sa.Column("pod_key", sa.Text, nullable=False),
        sa.Column("workload", sa.Text, nullable=False),
        sa.Column("from_node", sa.Text),
        sa.Column("to_node", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("started", sa.Float, nullable=False),
        sa.Column("evicted", sa.Float),
        sa.Column("bound", sa.Float),
        sa.Column("ready", sa.Float),
        sa.Column("ended", sa.Float),
        sa.Column("outcome", sa.Text, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("replacement_uid", sa.Text, nullable=False),
    )
    op.create_index("moves_plan_id", "moves", ["plan_id"])
    op.create_index("moves_started", "moves", ["started"])


def _settings() -> None:
    op.create_table(
        "settings_revisions",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("at", sa.Float, nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("accepted", sa.Boolean, nullable=False),
        sa.Column("errors", sa.Text, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
    )
    op.create_index("settings_revisions_at", "settings_revisions", ["at"])
    op.create_table(
        "meta",
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("value", sa.Text, nullable=False),
    )
