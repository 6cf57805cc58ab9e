"""Alembic's environment, run by `storage.schema` on a connection that is open already."""
