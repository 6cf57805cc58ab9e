"""What the demo says at its end."""

from __future__ import annotations

from pathlib import Path

from loadtests.demo.ending import describe, ending
from loadtests.workloads.samples import RequestOutcome, RequestSample
from storage.rows import MoveCheckRow, MoveRow
from storage.store import Store

BEGAN = 1000.0
SAMPLES = [
    RequestSample("app-01", second, 0.1, RequestOutcome.ERROR_STATUS if 12 <= second < 20 else RequestOutcome.OK)
    for second in range(100)
]


def move(number: int, **fields: object) -> MoveRow:
    state = {"state": "done", "started": BEGAN + 20 * number, "ended": BEGAN + 20 * number + 3, "outcome": "done"}
    pod = f"shop/app-0{number}"
    return MoveRow(f"m{number}", "p1", f"uid-{number}", pod, pod, "worker-2", "worker-1", **(state | fields))  # type: ignore[arg-type]


def check(number: int, *, helped: bool | None) -> MoveCheckRow:
    return MoveCheckRow(f"m{number}", "p1", f"uid-new-{number}", "worker-1", BEGAN, 0.01, helped=helped)


def test_availability_before_and_after_the_first_move_and_which_moves_helped() -> None:
    moves = [move(3, ended=None), move(2), move(1)]
    lines = describe(SAMPLES, BEGAN, moves, [check(1, helped=True), check(2, helped=False)]).splitlines()
    assert lines == [
        "requests before the first move (in 20 s): 20, availability 60.0%",
        "requests since then: 80, availability 100.0%",
        "moves: 3",
        "  shop/app-01 worker-2 -> worker-1: done, helped",
        "  shop/app-02 worker-2 -> worker-1: done, did not help",
        "  shop/app-03 worker-2 -> worker-1: still under way",
    ]


def test_a_move_without_a_verdict_is_not_said_to_have_helped() -> None:
    said = describe(SAMPLES, BEGAN, [move(1), move(2, outcome="failed")], [check(1, helped=None)])
    assert "app-01 worker-2 -> worker-1: done, not judged yet" in said
    assert said.endswith("app-02 worker-2 -> worker-1: failed, not judged")


def test_without_moves_there_is_no_before_and_after() -> None:
    assert describe(SAMPLES, BEGAN, [], []) == "requests: 100, availability 92.0%; no pod was moved"
    assert describe([], BEGAN, [], []) == "requests: none; no pod was moved"


async def test_the_moves_come_from_the_store_of_the_running_controller(tmp_path: Path) -> None:
    async with await Store.open(tmp_path / "rematch.db") as store:
        store.add_move(move(1))
        store.add_move_checks(check(1, helped=True))
        await store.flush()
        assert "app-01 worker-2 -> worker-1: done, helped" in await ending(SAMPLES, BEGAN, tmp_path / "rematch.db")
