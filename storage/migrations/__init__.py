"""Alembic's environment, run by `storage.database` on a connection that is open already."""
