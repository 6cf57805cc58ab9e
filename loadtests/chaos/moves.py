"""Moves as the audit log shows them."""

from __future__ import annotations

from collections.abc import Iterable

from loadtests.chaos.audit import Write
from loadtests.chaos.requests import Step


def count_moves(writes: Iterable[Write]) -> int:
    """Pods taken away: evicted, deleted after their release, or scaled away (a surge scales up and down)."""
    ours = [write for write in writes if write.ours and write.accepted]
    taken = sum(write.step in (Step.EVICT, Step.POD_DELETE) for write in ours)
    return taken + sum(write.step is Step.OWNER for write in ours) // 2
