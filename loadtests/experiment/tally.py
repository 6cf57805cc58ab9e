"""What the controller did, counted from the outcomes of its cycles."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from loadtests.experiment.driver import MoveSpan
from reactor.execution.outcome import Outcome
from reactor.state.moves import Move, MoveState


@dataclass(frozen=True, slots=True)
class Counts:
    """Of one step."""

    rematches: int = 0
    """Plans that moved somebody."""
    dumped: int = 0
    moves: int = 0
    """That were completed."""


class Tally:
    """Of one run. The spans of its moves are kept to the end: a move may reach over several steps."""

    def __init__(self) -> None:
        self._counts = Counts()
        self._spans: dict[str, MoveSpan] = {}

    def count(self, outcome: Outcome) -> None:
        counts = self._counts
        if outcome.rematch is not None and outcome.rematch.plan.moves:
            dumped = counts.dumped + len(outcome.rematch.plan.unplaced)
            counts = replace(counts, rematches=counts.rematches + 1, dumped=dumped)
        done = sum(move.state is MoveState.DONE for move in outcome.moves)
        self._counts = replace(counts, moves=counts.moves + done)
        for move in outcome.moves:
            self._follow(move)

    def take(self) -> Counts:
        """What was counted so far; counting starts again."""
        taken, self._counts = self._counts, Counts()
        return taken

    def spans(self) -> tuple[MoveSpan, ...]:
        """Of all moves that were completed or are under way; times are the controller's clock's."""
        return tuple(self._spans.values())

    def _follow(self, move: Move) -> None:
        """A move that came to nothing is no move."""
        if move.owner is not None and move.evicted is not None and (move.active or move.state is MoveState.DONE):
            ended = math.inf if move.ended is None else move.ended
            app = move.owner.name.rpartition("-")[0]
            self._spans[move.id] = MoveSpan(app, move.evicted, ended)
        else:
            self._spans.pop(move.id, None)
