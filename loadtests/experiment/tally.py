"""What the controller did, counted from the outcomes of its turns."""

from __future__ import annotations

from dataclasses import dataclass, field

from loadtests.experiment.driver import MoveSpan
from reactor.execution.journal import MoveRun, Stage
from reactor.outcome import Outcome


@dataclass(slots=True)
class Tally:
    rematches: int = 0
    """Plans that moved somebody."""
    dumped: int = 0
    moves: list[MoveSpan] = field(default_factory=list)
    """Times are the controller's clock's."""

    def count(self, outcome: Outcome) -> None:
        if outcome.rematch is not None and outcome.rematch.plan.moves:
            self.rematches += 1
            self.dumped += len(outcome.rematch.plan.unplaced)
        self.moves += [span for run in outcome.moves if (span := _span(run)) is not None]

    def take(self) -> Tally:
        """What was counted so far; counting starts again."""
        taken = Tally(self.rematches, self.dumped, self.moves)
        self.rematches, self.dumped, self.moves = 0, 0, []
        return taken

    def moves_since(self, start: float) -> list[MoveSpan]:
        """With times as seconds after `start`."""
        return [MoveSpan(span.app, span.began - start, span.ended - start) for span in self.moves]


def _span(run: MoveRun) -> MoveSpan | None:
    if run.stage is not Stage.DONE or run.evicted is None or run.ended is None:
        return None
    return MoveSpan(run.pod.labels["app"], run.evicted, run.ended)
