"""What a run of the demo came to, said at its end: the requests before and after the first move, and the moves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from loadtests.workloads.samples import RequestSample, summarise
from storage.rows import MoveCheckRow, MoveRow
from storage.store import Store


async def ending(samples: Sequence[RequestSample], began: float, store: Path) -> str:
    """`began` is when the load began, `store` the controller's."""
    async with await Store.open(store, read_only=True) as opened:
        moves, checks = await opened.moves(begun=True), await opened.move_checks()
    return describe(samples, began, moves, checks)


def describe(
    samples: Sequence[RequestSample], began: float, moves: Iterable[MoveRow], checks: Iterable[MoveCheckRow]
) -> str:
    moves = sorted(moves, key=lambda move: move.started)
    if not moves:
        return f"requests: {_answered(samples)}; no pod was moved"
    first = moves[0].started - began
    before = [sample for sample in samples if sample.start < first]
    after = [sample for sample in samples if sample.start >= first]
    verdicts = {check.move_id: check.helped for check in checks}
    return "\n".join(
        (
            f"requests before the first move (in {first:.0f} s): {_answered(before)}",
            f"requests since then: {_answered(after)}",
            f"moves: {len(moves)}",
            *(f"  {_move(move)}: {_verdict(move, verdicts)}" for move in moves),
        )
    )


def _answered(samples: Iterable[RequestSample]) -> str:
    found = summarise(samples)
    return "none" if found.availability is None else f"{found.requests:,}, availability {found.availability:.1%}"


def _move(move: MoveRow) -> str:
    return f"{move.pod_key} {move.from_node or 'pending'} -> {move.to_node}"


def _verdict(move: MoveRow, verdicts: dict[str, bool | None]) -> str:
    """The controller judges a moved pod that was unhappy, some time after its replacement is Ready."""
    if move.ended is None:
        return "still under way"
    helped = verdicts.get(move.id)
    if helped is None:
        return f"{move.outcome}, not judged{' yet' if move.id in verdicts else ''}"
    return f"{move.outcome}, {'helped' if helped else 'did not help'}"
