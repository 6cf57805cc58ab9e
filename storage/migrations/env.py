"""Called by Alembic. Logging is the application's business and is left alone."""

from __future__ import annotations

from alembic import context

from storage.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata, render_as_batch=True)
with context.begin_transaction():
    context.run_migrations()
