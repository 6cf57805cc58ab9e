"""How large a store becomes, and how large its volume has to be."""

from __future__ import annotations

from storage.retention import Retention

SAMPLE_BYTES = 110
"""Of one usage sample on disk, measured: a pod's UID is a third of it."""
DECISION_BYTES = 450
PLAN_BYTES = 4_000
PROBLEM_BYTES_PER_POD = 60
HAPPINESS_BYTES = 600
WRITE_AHEAD_LOG = 64 * 2**20
"""What SQLite keeps of it between two checkpoints."""
_FREE = 1.1
"""Pages that are not full."""


def wanted_bytes(pods: int, nodes: int, keep: float = Retention().records, interval: float = 15.0) -> int:
    """What the whole history of a cluster takes: `history.maxBytes` for which nothing is deleted before its time."""
    limits = Retention()
    samples = (pods + nodes) * min(keep, limits.samples) / interval * SAMPLE_BYTES
    plans = limits.plans * PLAN_BYTES + limits.problems * pods * PROBLEM_BYTES_PER_POD
    return int((samples + limits.decisions * DECISION_BYTES + plans + pods * HAPPINESS_BYTES) * _FREE)


def volume_bytes(max_bytes: int) -> int:
    """The size of the volume for a store with this `history.maxBytes`: the file, its write-ahead log, and a tenth."""
    return int(max_bytes * 1.1) + WRITE_AHEAD_LOG
