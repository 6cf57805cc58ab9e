"""The history as the dashboard, the API and the command line read it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from matching.registry import load_planner
from matching.testing import random_problem
from reactor.cluster.records import Pod
from reactor.decision.decide import Decision, Trigger, Unhappy, Wait
from reactor.decision.evidence import Evidence, Part, PartName, RecentCounts
from reactor.decision.wait_reasons import Reason
from reactor.execution.cycle_outcome import Rematch
from reactor.record.history import History
from reactor.record.history_reader import HistoryEntry, HistoryReader, HistoryTotals
from reactor.record.stored_problem import decompress, problem_row, read_problem
from reactor.record.unhappy_pods import MOST_THAT_STAY
from reactor.settings.model import Mode, Planner
from storage.rows import MoveRow, RevisionRow
from storage.store import Store
from tests.support.clock import NOW
from tests.support.cluster import make_happiness, make_pod
from tests.support.moves import make_move, make_plan, plan_move

WEB, DB = make_pod("web-1"), make_pod("db-1")


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with await Store.open(tmp_path / "rematch.db") as opened:
        yield opened


PARTS = (Part(PartName.PRIOR, 0.1, "mostly ill itself"), Part(PartName.LOAD, 599.98765, "n1 uses 76% of its cpu"))
EVIDENCE = Evidence(PARTS, RecentCounts(0.0, 2.0, 0.0, 0.0, 2.0))


def _unhappy(pod: Pod) -> Unhappy:
    return Unhappy(pod.uid, pod.key, make_happiness(10.0), "n1 is crowded", EVIDENCE)


def _rematch(history: History, plan_id: str, at: float, mode: Mode = Mode.ACT) -> None:
    unhappy = Unhappy(WEB.uid, WEB.key, make_happiness(10.0), "n1 is crowded")
    rematch = Rematch(plan_id, make_plan(plan_move(WEB, "n2")), random_problem(0))
    history.plan("c1", Decision(at, Trigger.UNHAPPY, (unhappy,)), rematch, mode)


def _wait(history: History, at: float, reason: Reason = Reason.COOLDOWN) -> None:
    wait = Wait(DB.uid, DB.key, reason, "moved 3 s ago", at + 5)
    history.waits("c2", Decision(at, Trigger.UNHAPPY, waits=(wait,)))


async def test_a_restart_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "rematch.db"
    async with await Store.open(path) as store:
        history = History(store)
        store.add_revision(RevisionRow("r1", NOW, "file", "abc", True))
        store.add_revision(RevisionRow("r2", NOW + 1, "file", "abd", False, (("mode", "fly is no mode"),)))
        _rematch(history, "p1", NOW + 2)
        await store.flush()
        history.moves("c1", [make_move(WEB, "n2", "done", ended=NOW + 3, outcome="is Ready")], NOW + 3)
        _wait(history, NOW + 4)
        await store.flush()
        before = await HistoryReader(store).entries(10)
    async with await Store.open(path) as store:
        reader = HistoryReader(store)
        assert await reader.entries(10) == before
        assert await reader.rematch_times(NOW) == (NOW + 2,)
        plan = await reader.newest_plan()
    assert plan is not None
    assert plan.id == "p1"
    assert [(entry.kind, entry.pod, entry.reason, entry.text) for entry in before] == [
        ("wait", "shop/db-1", "cooldown", "moved 3 s ago"),
        ("move", "shop/web-1", "done", "is Ready"),
        ("rematch", "shop/web-1", "unhappy", "shop/web-1 at 0.33: n1 is crowded"),
        ("settings", None, "refused", "refused, the last good ones stay: file: mode: fly is no mode"),
        ("settings", None, "accepted", "settings from file are in force"),
    ]
    assert [(move.target, move.state, move.reasons) for move in before[1].moves] == [("n2", "done", ("because",))]


async def test_pages_are_cut_by_id_without_gaps(store: Store) -> None:
    history, reader = History(store), HistoryReader(store)
    for number, reason in enumerate([Reason.COOLDOWN, Reason.BRAKED] * 3):
        _wait(history, NOW, reason)
        _rematch(history, f"p{number}", NOW)
    await store.flush()
    everything = await reader.entries(100)
    pages: list[HistoryEntry] = []
    before: int | None = None
    while page := await reader.entries(5, before):
        pages += page
        before = page[-1].id
    assert tuple(pages) == everything
    assert [entry.id for entry in everything] == sorted({entry.id for entry in everything}, reverse=True)
    assert {entry.kind for entry in await reader.entries(100, waits=False)} == {"rematch"}


async def test_a_move_has_one_entry_with_its_latest_state(store: Store) -> None:
    history, reader = History(store), HistoryReader(store)
    history.moves("", [make_move(WEB, "n2", "planned")], NOW)
    await store.flush()
    assert await reader.entries(10) == ()
    seen: list[tuple[str, str]] = []
    for state, ended in (("evicted", None), ("bound", None), ("late", None), ("failed", NOW + 4)):
        history.moves("c1", [make_move(WEB, "n2", state, ended=ended)], NOW)
        _wait(history, NOW, Reason.COOLDOWN if len(seen) % 2 else Reason.BRAKED)
        await store.flush()
        (entry,) = await reader.entries(10, waits=False)
        seen.append((entry.reason, entry.moves[0].state))
    assert seen == [("evicted", "running"), ("bound", "running"), ("late", "running"), ("failed", "failed")]


async def test_the_history_of_a_pod_has_the_plans_that_move_it(store: Store) -> None:
    history, reader = History(store), HistoryReader(store)
    _wait(history, NOW)
    _rematch(history, "p1", NOW)
    await store.flush()
    assert [entry.kind for entry in await reader.entries(10, pod=WEB.key)] == ["rematch"]
    assert [entry.kind for entry in await reader.entries(10, pod=DB.key)] == ["wait"]
    assert await reader.entries(10, pod="shop/web") == ()


@pytest.mark.parametrize("completed", [False, True])
async def test_the_evidence_that_decided_is_stored_with_the_plan(store: Store, completed: bool) -> None:
    history = History(store)
    rematch = Rematch("p1", make_plan(plan_move(WEB, "n2")), random_problem(0))
    history.plan("c1", Decision(NOW, Trigger.UNHAPPY, (_unhappy(WEB),)), rematch, Mode.ACT)
    if completed:
        await history.complete_plans()
    await store.flush()

    (entry,) = await HistoryReader(store).entries(10)

    (one,) = entry.unhappy
    assert (one.pod, one.happiness, one.cause, one.placement_probability) == (WEB.key, 0.3333, "n1 is crowded", 0.9836)
    assert [(part.name, part.ratio, part.text) for part in one.evidence] == [
        ("prior", 0.1, "mostly ill itself"),
        ("load", 600.0, "n1 uses 76% of its cpu"),
    ]


async def test_of_the_unhappy_pods_that_stay_only_some_are_stored(store: Store) -> None:
    history = History(store)
    pods = [make_pod(f"web-{number}") for number in range(MOST_THAT_STAY + 5)]
    rematch = Rematch("p1", make_plan(plan_move(pods[-1], "n2")), random_problem(0))
    history.plan("c1", Decision(NOW, Trigger.UNHAPPY, tuple(map(_unhappy, pods))), rematch, Mode.ACT)
    await store.flush()

    (entry,) = await HistoryReader(store).entries(10)

    assert [one.pod for one in entry.unhappy] == [pod.key for pod in (*pods[:MOST_THAT_STAY], pods[-1])]


async def test_the_history_of_a_replacement_has_that_of_the_pods_it_replaced(store: Store) -> None:
    history, reader = History(store), HistoryReader(store)
    rematch = Rematch("p1", make_plan(plan_move(WEB, "n2"), plan_move(DB, "n2")), random_problem(0))
    _wait(history, NOW)
    history.plan("c1", Decision(NOW, Trigger.UNHAPPY, (_unhappy(WEB), _unhappy(DB))), rematch, Mode.ACT)
    history.moves("c1", [make_move(WEB, "n2", "done", ended=NOW, replacement="u2")], NOW)
    again = make_move(make_pod("web-2", uid="u2"), "n3", "done", ended=NOW, replacement="u3")
    history.moves("c1", [again], NOW)
    await store.flush()

    found = await reader.of_pod("u3", "shop/web-3", 10)

    assert [(entry.kind, entry.moves[0].pod) for entry in found] == [
        ("move", "shop/web-2"),
        ("move", "shop/web-1"),
        ("rematch", "shop/web-1"),
    ]
    assert [one.pod for one in found[-1].unhappy] == [WEB.key]
    assert await reader.of_pod("u3", "shop/web-3", 1) == found[:1]
    assert await reader.of_pod("u9", "shop/web-9", 10) == ()
    assert [entry.kind for entry in await reader.of_pod(DB.uid, DB.key, 10)] == ["rematch", "wait"]


async def test_a_pod_that_replaces_itself_has_one_history(store: Store) -> None:
    """A pod of a StatefulSet keeps its name; a row could name its own pod."""
    store.add_move(MoveRow("m", None, "u1", "shop/ring-1", "w", "n1", "n2", "done", 1.0, replacement_uid="u1"))
    await store.flush()

    assert [entry.kind for entry in await HistoryReader(store).of_pod("u1", "shop/ring-1", 10)] == ["move"]


async def test_totals_count_carried_out_plans_and_finished_moves(store: Store) -> None:
    history, reader = History(store), HistoryReader(store)
    assert await reader.totals() == HistoryTotals(0, 0)
    _rematch(history, "plan-1", NOW)
    _rematch(history, "plan-2", NOW + 1, Mode.OBSERVE)
    history.moves("c1", [make_move(WEB, "n2", "done", ended=NOW), make_move(DB, "n2", "failed", ended=NOW)], NOW)
    await store.flush()
    assert await reader.totals() == HistoryTotals(rematches=1, moves=1)


def test_a_stored_problem_gives_the_same_plan_again() -> None:
    problem = random_problem(3)
    planner = Planner(name="genetic", parameters={"seed": 7, "generations": 2})
    plan = load_planner(planner.name, planner.parameters).plan(problem)
    row = problem_row("p1", problem, plan, planner)
    again, stored = read_problem(decompress(row))
    assert stored is not None
    assert (stored.planner, stored.parameters, stored.seed) == ("genetic", {"seed": 7, "generations": 2}, 7)
    assert (stored.fallbacks, stored.rematch != "") == (plan.notes, True)
    assert load_planner(stored.planner, stored.parameters).plan(again) == plan


def test_a_problem_that_is_too_large_is_not_stored_and_the_row_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reactor.record.stored_problem.LARGEST", 100)
    row = problem_row("p1", random_problem(0), make_plan(), Planner())
    assert row.document is None
    assert row.note.startswith("not stored: ")


def test_a_problem_with_too_many_pods_is_not_encoded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reactor.record.stored_problem.MOST_PODS", 2)
    problem = random_problem(3)
    row = problem_row("p1", problem, make_plan(), Planner())
    assert (row.document, row.note) == (None, f"not stored: {len(problem.pods)} pods are more than 2")


async def test_the_pod_that_replaces_a_moved_one_is_found_by_the_old_name(store: Store) -> None:
    def moved(uid: str, key: str, replacement: str) -> MoveRow:
        return MoveRow(f"move-{uid}", None, uid, key, "w", "n1", "n2", "done", 1.0, replacement_uid=replacement)

    store.add_move(moved("u1", "shop/web-1", "u2"))
    store.add_move(moved("u2", "shop/web-2", "u3"))
    store.add_move(moved("x1", "bank/web-1", "x2"))
    store.add_move(moved("l1", "shop/ring-1", "l1"))
    await store.flush()
    reader = HistoryReader(store)

    assert await reader.replacements_of("web-1", "shop") == {"u3": "shop/web-1", "u2": "shop/web-1"}
    assert set(await reader.replacements_of("web-1")) == {"u3", "u2", "x2"}
    assert await reader.replacements_of("ring-1") == {"l1": "shop/ring-1"}
    assert await reader.replacements_of("web-9") == {}
