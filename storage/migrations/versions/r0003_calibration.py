"""Probes by the load of the node, start-up times of workloads, and what moves were expected to do."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "probes_by_load",
        sa.Column("bin", sa.Integer, primary_key=True),
        sa.Column("probes", sa.Float, nullable=False),
        sa.Column("failures", sa.Float, nullable=False),
        sa.Column("load", sa.Float, nullable=False),
        sa.Column("expected", sa.Float, nullable=False),
        sa.Column("at", sa.Float, nullable=False),
    )
    op.create_table(
        "startup_times",
        sa.Column("workload", sa.Text, primary_key=True),
        sa.Column("at", sa.Float, nullable=False),
        sa.Column("seconds", sa.Text, nullable=False),
    )
    op.create_index("startup_times_at", "startup_times", ["at"])
    op.create_table(
        "move_checks",
        sa.Column("move_id", sa.Text, primary_key=True),
        sa.Column("plan_id", sa.Text, nullable=False),
        sa.Column("replacement_uid", sa.Text, nullable=False),
        sa.Column("node", sa.Text, nullable=False),
        sa.Column("at", sa.Float, nullable=False),
        sa.Column("expected", sa.Float, nullable=False),
        sa.Column("observed", sa.Float),
        sa.Column("helped", sa.Boolean),
    )
    op.create_index("move_checks_at", "move_checks", ["at"])
