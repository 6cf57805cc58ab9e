"""A store that keeps its rows in lists."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import cast

from reactor.record.history_reader import HistoryEntry, history_entries
from storage.rows import (
    ChunkRow,
    DecisionRow,
    HappinessRow,
    LoadBinRow,
    MoveCheckRow,
    MoveRow,
    PlanRow,
    ProblemRow,
    RevisionRow,
    SeriesKind,
    SeriesRow,
    StartupRow,
    UsageEventRow,
)
from storage.store import Store


class RowsKept:
    def __init__(self) -> None:
        self.decisions: list[DecisionRow] = []
        self.plans: list[PlanRow] = []
        self.moves: list[MoveRow] = []
        self.safe: tuple[PlanRow | MoveRow, ...] = ()
        """Plans and moves that a killed process does not lose: those of the last flush."""
        self.writable = True
        self.revisions: list[RevisionRow] = []
        self.series_rows: list[SeriesRow] = []
        self.chunks: list[ChunkRow] = []
        self.usage_events: list[UsageEventRow] = []
        self.happiness: list[HappinessRow] = []
        self.problems: list[ProblemRow] = []
        self.load_bins: list[LoadBinRow] = []
        self.startups: list[StartupRow] = []
        self.move_checks: list[MoveCheckRow] = []
        self._seq = itertools.count(1)

    @property
    def history(self) -> list[HistoryEntry]:
        """What the dashboard shows of these rows, newest first. Of each move the latest row."""
        latest = {row.id: row for row in self.moves}.values()
        begun = [row for row in latest if row.state != "planned"]
        return history_entries([*self.decisions, *self.plans, *begun, *self.revisions])

    @property
    def store(self) -> Store:
        return cast(Store, self)

    async def flush_history(self) -> bool:
        if self.writable:
            self.safe = (*self.plans, *self.moves)
        return self.writable

    def add_decisions(self, *rows: DecisionRow) -> None:
        self.decisions += [replace(row, seq=next(self._seq)) for row in rows]

    def add_plan(self, row: PlanRow) -> int:
        self.plans.append(row if row.seq else replace(row, seq=next(self._seq)))
        return self.plans[-1].seq

    def add_move(self, row: MoveRow) -> None:
        self.moves.append(replace(row, seq=next(self._seq)))

    def add_revision(self, row: RevisionRow) -> None:
        self.revisions.append(replace(row, seq=next(self._seq)))

    async def series(self, *_kinds: SeriesKind) -> list[SeriesRow]:
        return self.series_rows

    def add_series(self, *rows: SeriesRow) -> None:
        self.series_rows += rows

    def add_chunks(self, *rows: ChunkRow) -> None:
        self.chunks += rows

    def add_usage_events(self, *rows: UsageEventRow) -> None:
        self.usage_events += rows

    def add_happiness(self, *rows: HappinessRow) -> None:
        self.happiness += rows

    def add_load_bins(self, *rows: LoadBinRow) -> None:
        self.load_bins += rows

    def add_startups(self, *rows: StartupRow) -> None:
        self.startups += rows

    def add_move_checks(self, *rows: MoveCheckRow) -> None:
        self.move_checks += rows

    def add_problem(self, row: ProblemRow) -> None:
        self.problems.append(row)
