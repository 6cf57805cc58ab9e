"""Which series there are: a number and a block for every pod, node and workload whose usage is recorded.

A pod is known by its namespace and name: that of a StatefulSet goes on with its series after a restart or a move.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from storage.rows import SeriesKind, SeriesRow

BLOCK_SERIES = 256
"""Series of one block. A reader of one series decompresses all of its block."""
DAY = 86400.0
FORGOTTEN_AFTER = 32 * DAY
"""A day later than the store forgets pods (`storage.retention`): no name ever has two series there."""


class SeriesIndex:
    def __init__(self, rows: Iterable[SeriesRow] = ()) -> None:
        self._rows: dict[tuple[SeriesKind, str], SeriesRow] = {(row.kind, row.name): row for row in rows}
        self._last_id = max((row.id for row in self._rows.values()), default=0)
        self._last_block = max((row.block for row in self._rows.values()), default=-1)
        self._changed: list[SeriesRow] = []

    def assign(self, kind: SeriesKind, names: Sequence[str], now: float) -> list[SeriesRow]:
        """The series of these names, in their order. New ones join blocks with room among those of the others."""
        known = [self._rows.get((kind, name)) for name in names]
        room = self._room(Counter(row.block for row in known if row is not None))
        return [
            self._new(kind, name, next(room), now) if row is None else self._seen(row, now)
            for name, row in zip(names, known, strict=True)
        ]

    def take_changed(self) -> list[SeriesRow]:
        """Rows to store: new series, and those that are seen again on another day."""
        taken, self._changed = self._changed, []
        return taken

    def forget_old(self, now: float) -> None:
        self._rows = {
            key: row for key, row in self._rows.items() if row.kind != "pod" or row.seen >= now - FORGOTTEN_AFTER
        }

    def _room(self, taken: Counter[int]) -> Iterator[int]:
        """Blocks, one for each new series."""
        for block, number in taken.items():
            yield from (block for _ in range(BLOCK_SERIES - number))
        while True:
            self._last_block += 1
            yield from (self._last_block for _ in range(BLOCK_SERIES))

    def _new(self, kind: SeriesKind, name: str, block: int, now: float) -> SeriesRow:
        self._last_id += 1
        return self._put(SeriesRow(self._last_id, kind, name, block, now))

    def _seen(self, row: SeriesRow, now: float) -> SeriesRow:
        return row if now - row.seen < DAY else self._put(replace(row, seen=now))

    def _put(self, row: SeriesRow) -> SeriesRow:
        self._rows[row.kind, row.name] = row
        self._changed.append(row)
        return row
