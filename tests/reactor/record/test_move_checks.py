"""What moves were expected to do, against what they did."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from reactor.decision.effects import Effects
from reactor.record.move_checks import MoveChecks
from reactor.state.moves import Move
from reactor.state.snapshot import Snapshot
from storage.rows import MoveCheckRow
from tests.support.clock import NOW
from tests.support.cluster import GIB, make_node, make_pod, make_snapshot
from tests.support.moves import make_move

WAITS = 300.0


def moved(number: int = 1, **fields: Any) -> Move:
    return replace(
        make_move(make_pod(f"web-{number}"), "n2", "done", replacement=f"uid-new-{number}", ended=NOW, unhappy=True),
        **fields,
    )


def seen(at: float = NOW, *, load: float = 0.9, failures: float = 0.0) -> Snapshot:
    """The replacements run on n2, which has 4 cores."""
    pods = [make_pod(f"new-{number}", node="n2") for number in (1, 2)]
    use = {"n2": (4 * load, 1 * GIB)}
    failed = {"new-1": failures} if failures else {}
    return make_snapshot(pods, [make_node("n1"), make_node("n2")], now=at, node_usage=use, failures=failed)


@pytest.fixture
def rows() -> list[MoveCheckRow]:
    return []


@pytest.fixture
def checks(rows: list[MoveCheckRow]) -> MoveChecks:
    return MoveChecks(rows.append)


def judge(checks: MoveChecks, snapshot: Snapshot, *moves: Move) -> list[str]:
    """What is said of each move."""
    trials = Effects().after_moves(moves, WAITS)
    judged = checks.judge(trials.trials, trials.judge(snapshot)[1], snapshot)
    return [f"{one.pod} {one}" for one in judged]


def test_a_move_is_expected_to_fail_as_the_curve_says_for_its_new_node(
    checks: MoveChecks, rows: list[MoveCheckRow]
) -> None:
    checks.expect(moved(), seen(load=1.0))
    assert rows == [MoveCheckRow("move-web-1", "plan-1", "uid-new-1", "n2", NOW, rows[0].expected)]
    assert rows[0].expected == pytest.approx(0.2, abs=0.01)
    assert checks.summary() is None


def test_a_verdict_adds_what_was_observed(checks: MoveChecks, rows: list[MoveCheckRow]) -> None:
    for number in (1, 2):
        checks.expect(moved(number), seen(load=1.0))
    assert judge(checks, seen(NOW + WAITS, failures=20.0), moved(1), moved(2)) == [
        "shop/new-1 did not help: 100.0% of probes failed on n2, 20.4% expected (plan plan-1)",
        "shop/new-2 helped: 0.0% of probes failed on n2, 20.4% expected (plan plan-1)",
    ]
    assert [(row.move_id, row.observed, row.helped) for row in rows[2:]] == [
        ("move-web-1", 1.0, False),
        ("move-web-2", 0.0, True),
    ]
    summary = checks.summary()
    assert summary is not None
    assert (summary.moves, summary.helped, summary.observed) == (2, 1, 0.5)
    assert summary.expected == pytest.approx(0.2, abs=0.01)


def test_a_move_is_open_until_its_verdict(checks: MoveChecks, rows: list[MoveCheckRow]) -> None:
    checks.expect(moved(), seen())
    judge(checks, seen(NOW + 1), moved())
    assert checks.summary() is None
    judge(checks, seen(NOW + WAITS), moved())
    assert len(rows) == 2
    judge(checks, seen(NOW + WAITS), moved())
    assert len(rows) == 2, "it is judged once"


@pytest.mark.parametrize("change", [{"unhappy": False}, {"replacement": None}, {"replacement": "uid-gone"}])
def test_other_moves_are_not_checked(checks: MoveChecks, rows: list[MoveCheckRow], change: dict[str, Any]) -> None:
    checks.expect(moved(**change), seen())
    assert rows == []


def test_without_fresh_metrics_nothing_is_expected(checks: MoveChecks, rows: list[MoveCheckRow]) -> None:
    pods = [make_pod("new-1", node="n2")]
    checks.expect(moved(), make_snapshot(pods, [make_node("n2")]))
    said = judge(checks, seen(NOW + WAITS, failures=20.0), moved())
    assert said == ["shop/new-1 did not help: 100.0% of probes failed on n2"]
    assert rows == []


def test_checks_survive_a_restart(checks: MoveChecks, rows: list[MoveCheckRow]) -> None:
    checks.expect(moved(1), seen())
    checks.expect(moved(2), seen())
    judge(checks, seen(NOW + WAITS), moved(1))
    again = MoveChecks(rows.append)
    again.restore([rows[1], rows[2]])
    assert again.summary() == checks.summary()
    judge(again, seen(NOW + WAITS), moved(2))
    summary = again.summary()
    assert summary is not None
    assert summary.moves == 2
