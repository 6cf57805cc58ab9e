"""Where the replacements of moved pods landed, against where they were planned."""

from __future__ import annotations

from collections import Counter
from enum import StrEnum

from reactor.state.moves import Move
from reactor.state.snapshot import Snapshot


class Landing(StrEnum):
    PLANNED = "planned"
    ELSEWHERE = "elsewhere"
    SOURCE = "source"
    """Back on the node that the pod should leave."""


class Landings:
    """Counted since the process started."""

    def __init__(self) -> None:
        self.counts: Counter[Landing] = Counter()

    def observe(self, move: Move, snapshot: Snapshot) -> Landing | None:
        """Of a move that has just ended; None when nothing landed, or nowhere in particular was planned."""
        pod = snapshot.cluster.pods.get(move.replacement or "")
        if move.ended is None or move.dumps or pod is None or pod.node is None:
            return None
        found = {move.target: Landing.PLANNED, move.source: Landing.SOURCE}.get(pod.node, Landing.ELSEWHERE)
        self.counts[found] += 1
        return found
