"""What the demo prints while a person looks on."""

from __future__ import annotations

import asyncio
import io
from types import SimpleNamespace
from typing import Any

import pytest

from loadtests.demo.progress import Progress, waits_in_one_line
from reactor.record.history_reader import HistoryEntry, HistoryKind, HistoryMove, MoveProgress


def decision(number: int, kind: HistoryKind, reason: str, pod: str = "shop/app-01") -> HistoryEntry:
    moves = (HistoryMove(pod, "worker-2", "worker-1", MoveProgress.PLANNED),) if kind is HistoryKind.REMATCH else ()
    return HistoryEntry(number, 0.0, "c1", kind, pod, reason, f"{reason} text", moves)


DECISIONS = (
    decision(1, HistoryKind.WAIT, "recovering"),
    decision(2, HistoryKind.WAIT, "tooLittleEvidence", "shop/app-02"),
    decision(3, HistoryKind.REMATCH, "unhappy"),
    decision(4, HistoryKind.PLACE, "pending"),
    decision(5, HistoryKind.MOVE, "done"),
    decision(6, HistoryKind.WAIT, "recovering"),
)


class Controller:
    async def decisions(self) -> tuple[HistoryEntry, ...]:
        return tuple(reversed(DECISIONS))

    async def overview(self) -> Any:
        return SimpleNamespace(nodes=(), totals=None, moves=1)


async def printed(*, verbose: bool) -> list[str]:
    """What is printed up to the first summary, without the times."""
    recent = SimpleNamespace(recent=lambda: SimpleNamespace(availability=None, p95_ms=None))
    arm: Any = SimpleNamespace(controller=Controller(), lab=SimpleNamespace(log=recent))
    out = io.StringIO()
    task = asyncio.create_task(Progress(arm, out, verbose).report())
    while "no requests yet" not in out.getvalue():
        await asyncio.sleep(0)
    task.cancel()
    return [line.split(maxsplit=2)[1] for line in out.getvalue().splitlines()]


async def test_moves_and_rematches_are_printed_and_the_waits_in_one_line() -> None:
    assert await printed(verbose=False) == ["REMATCH", "MOVE", "WAITS", "cpu"]


async def test_verbose_prints_every_decision() -> None:
    assert await printed(verbose=True) == ["WAIT", "WAIT", "REMATCH", "PLACE", "MOVE", "WAIT", "cpu"]


@pytest.mark.parametrize(
    ("count", "said"),
    [(1, "WAITS    1 of 1 pod: recovering 1"), (6, "WAITS    3 of 2 pods: recovering 2, tooLittleEvidence 1")],
)
def test_the_line_of_waits_counts_by_reason(count: int, said: str) -> None:
    assert waits_in_one_line(DECISIONS[:count]) == said


def test_without_waits_there_is_no_line() -> None:
    assert waits_in_one_line([entry for entry in DECISIONS if entry.kind is not HistoryKind.WAIT]) == ""
