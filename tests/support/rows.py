"""A store that keeps its rows in lists."""

from __future__ import annotations

from typing import cast

from storage.rows import DecisionRow, HappinessRow, MoveRow, PlanRow, RevisionRow, SampleRow
from storage.store import Store


class RowsKept:
    def __init__(self) -> None:
        self.decisions: list[DecisionRow] = []
        self.plans: list[PlanRow] = []
        self.moves: list[MoveRow] = []
        self.safe: tuple[MoveRow, ...] = ()
        """Moves that a killed process does not lose: those of the last flush."""
        self.revisions: list[RevisionRow] = []
        self.samples: list[SampleRow] = []
        self.happiness: list[HappinessRow] = []

    @property
    def store(self) -> Store:
        return cast(Store, self)

    async def flush_moves(self) -> bool:
        self.safe = tuple(self.moves)
        return True

    def add_decisions(self, *rows: DecisionRow) -> None:
        self.decisions += rows

    def add_plan(self, row: PlanRow) -> None:
        self.plans.append(row)

    def add_move(self, row: MoveRow) -> None:
        self.moves.append(row)

    def add_revision(self, row: RevisionRow) -> None:
        self.revisions.append(row)

    def add_samples(self, *rows: SampleRow) -> None:
        self.samples += rows

    def add_happiness(self, *rows: HappinessRow) -> None:
        self.happiness += rows
