"""One document per name: what the forecasts have learned."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "documents",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("at", sa.Float, nullable=False),
        sa.Column("document", sa.LargeBinary, nullable=False),
    )
