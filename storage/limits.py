"""How much the store may hold, wait and keep."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    flush_seconds: float = 0.5
    """A row waits at most this long for its batch; what a killed process can lose."""
    batch_rows: int = 2_000
    """Rows in one transaction; a batch that is full is written at once."""
    queue_rows: int = 200_000
    """Rows of one table that wait while the disk refuses; beyond it the oldest are dropped and counted."""
    busy_seconds: float = 5.0
    """How long SQLite waits for somebody else's lock."""
    call_seconds: float = 30.0
    """Deadline of one call, for a disk that does not answer at all."""
    retry_seconds: float = 2.0
    """Pause after a write that failed."""


@dataclass(frozen=True, slots=True)
class Retention:
    records: float = 7 * 24 * 3600.0
    """Seconds that finished records are kept."""
    samples: float = 6 * 3600.0
    """Seconds that raw usage samples are kept: at 1,000 pods every 15 s this is 1.4 million rows."""
    decisions: int = 200_000
    plans: int = 1_000
    """The newest so many, whatever their age: a plan has a line per pod."""
