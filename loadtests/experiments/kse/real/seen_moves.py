"""The moves of a run, as its controller tells of them."""

from __future__ import annotations

from reactor.execution.cycle_outcome import Outcome
from reactor.state.moves import Move, MoveState


class SeenMoves:
    def __init__(self) -> None:
        self._moves: dict[str, Move] = {}

    def listen(self, _cycle: str, _snapshot: object, outcome: Outcome) -> None:
        self._moves.update((move.id, move) for move in outcome.moves)

    def steps(self) -> list[tuple[str, str, str]]:
        """Workload, source and target of each move that was completed or is under way, in the order of their
        beginnings."""
        made = [
            (move.began, move)
            for move in self._moves.values()
            if move.began is not None and (move.in_flight or move.state is MoveState.DONE)
        ]
        return [(move.workload, move.source, move.target) for _, move in sorted(made, key=lambda one: one[0])]
