"""What is recorded, and in which steps of time.

Each level is made from the minutes themselves, never from another roll-up, so that nothing is rounded twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class Axis(IntEnum):
    """The number is part of the stored format: never reuse one."""

    CPU = 0
    """Cores."""
    MEMORY = 1
    """Bytes."""
    NETWORK = 2
    """Bits per second."""
    DISK = 3
    """Bytes per second, read and written."""
    THROTTLED = 4
    """Share of the scheduling periods in which the CPU limit was hit."""
    SUCCESSES = 5
    """Liveness probes per minute that succeeded."""
    FAILURES = 6
    """Liveness probes per minute that failed."""
    READY = 7
    """Share of the minutes in which it was Ready."""

    @property
    def label(self) -> str:
        return self.name.lower()


NEEDED = (Axis.CPU, Axis.MEMORY)
"""The axes of a pod's needs: only these have histograms."""


@dataclass(frozen=True, slots=True)
class Level:
    step: int
    """Seconds of one bucket."""
    chunk: int
    """Seconds of one row of the store."""

    @property
    def buckets(self) -> int:
        return self.chunk // self.step

    def start_of(self, at: float) -> int:
        """When the chunk begins that has this time."""
        return int(at // self.chunk) * self.chunk


MINUTES = Level(60, 60)
FIVE_MINUTES = Level(300, 3600)
HOURS = Level(3600, 86400)
