"""Batches, queues and deadlines of a store."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    flush_seconds: float = 0.5
    """A row waits at most this long for its batch; what a killed process can lose."""
    batch_rows: int = 2_000
    """Rows in one transaction; a batch that is full is written at once."""
    queue_rows: int = 200_000
    """Rows of one table that wait while the database refuses; beyond it the oldest are dropped and counted."""
    busy_seconds: float = 5.0
    """How long SQLite waits for the lock of another process, and PostgreSQL for a connection."""
    call_seconds: float = 30.0
    """Deadline of one call, for a disk or a server that does not answer at all."""
    retry_seconds: float = 2.0
    """Pause after a write that failed."""
