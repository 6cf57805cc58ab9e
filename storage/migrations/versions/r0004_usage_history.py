"""Usage by series, in compressed chunks. The samples of the last six hours, which nothing reads, are dropped."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.drop_table("usage_samples")
    op.create_table(
        "usage_series",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("block", sa.Integer, nullable=False),
        sa.Column("seen", sa.Float, nullable=False),
    )
    op.create_index("usage_series_name", "usage_series", ["kind", "name"], unique=True)
    op.create_table(
        "usage_chunks",
        sa.Column("step", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("start", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("block", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("document", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "usage_events",
        sa.Column("at", sa.Float, primary_key=True),
        sa.Column("kind", sa.Text, primary_key=True),
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("text", sa.Text, nullable=False),
    )
    op.create_index("usage_events_name", "usage_events", ["kind", "name", "at"])
