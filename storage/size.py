"""How large a store becomes, and how large its volume has to be."""

from __future__ import annotations

from storage.retention import Retention

USAGE_BYTES = {60: 10.0, 300: 9.5, 3600: 11.0}
"""Of all axes of one pod, node or workload in one step, by the seconds of a step. Measured: `make bench`, history."""
DECISION_BYTES = 450
PLAN_BYTES = 4_000
PROBLEM_BYTES_PER_POD = 60
HAPPINESS_BYTES = 600
WRITE_AHEAD_LOG = 64 * 2**20
"""What SQLite keeps of it between two checkpoints."""
_FREE = 1.1
"""Pages that are not full."""


def wanted_bytes(pods: int, nodes: int, workloads: int | None = None) -> int:
    """What the whole history of a cluster takes: `history.maxBytes` for which nothing is deleted before its time. By
    default a workload for three pods."""
    limits = Retention()
    series = pods + nodes + (pods / 3 if workloads is None else workloads)
    usage = series * sum(kept / step * USAGE_BYTES[step] for step, kept in limits.usage)
    plans = limits.plans * PLAN_BYTES + limits.problems * pods * PROBLEM_BYTES_PER_POD
    return int((usage + limits.decisions * DECISION_BYTES + plans + pods * HAPPINESS_BYTES) * _FREE)


def volume_bytes(max_bytes: int) -> int:
    """The size of the volume for a store with this `history.maxBytes`: the file, its write-ahead log, and a tenth."""
    return int(max_bytes * 1.1) + WRITE_AHEAD_LOG
