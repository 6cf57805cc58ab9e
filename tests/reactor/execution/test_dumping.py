"""A pod that a plan leaves without a node: evicted first, no node held for its replacement, nothing waits for it."""

from __future__ import annotations

from dataclasses import replace

from matching.plan import Unplaced
from reactor.cluster.writes import Eviction, EvictionAnswer
from reactor.execution.executor import Executor
from reactor.record.events import move_event
from reactor.state.moves import NO_NODE, MoveState
from tests.support.cluster import make_node, make_pod, make_settings
from tests.support.moves import make_plan, plan_move
from tests.support.rig import Rig
from tests.support.writer import FakeWriter

SETTINGS = make_settings(mode="act", planner={"name": "stable-paper", "allow_unsafe": True})
WEB, DB = make_pod("web-1"), make_pod("db-1")


def rig_with_the_paper(cpu: float = 4.0) -> Rig:
    """web-1 and db-1 on one node that is too small for the peaks of both."""
    rig = Rig(SETTINGS)
    rig.sync(WEB, DB, make_node("n1", cpu=cpu))
    rig.measure({"web-1": 2.0, "db-1": 3.0}, {"n1": 4.0})
    rig.fail(WEB, 20)
    return rig


async def test_the_lower_ranked_pod_is_evicted_and_waits() -> None:
    rig = rig_with_the_paper()
    outcome = await rig.run_cycle()
    assert outcome.rematch is not None
    assert [left.pod for left in outcome.rematch.plan.dumped] == ["shop/web-1"]
    assert rig.writer.evicted == ["web-1"]
    assert [move.state for move in outcome.moves] == [MoveState.PLANNED, MoveState.DONE]
    assert not rig.executor.busy

    rig.replace_pod(WEB, "web-2")
    placement = await rig.bind()
    assert rig.writer.bound == []
    assert placement is not None
    assert placement.plan is not None
    assert [left.pod for left in placement.plan.unplaced] == ["shop/web-2"]

    rig.put(make_node("n2"))
    rig.measure({"db-1": 3.0}, {"n1": 3.0, "n2": 0.1})
    await rig.run_cycle()
    assert rig.writer.bound == [("web-2", "n2")]


async def test_it_is_recorded_and_announced() -> None:
    rig = rig_with_the_paper()
    outcome = await rig.run_cycle()
    rows = [row for row in rig.rows.moves if row.state == "done"]
    assert [(row.pod_key, row.from_node, row.to_node) for row in rows] == [("shop/web-1", "n1", NO_NODE)]
    assert "waits until a node takes it" in rows[0].text
    note = move_event(outcome.moves[-1], rig.snapshot())
    assert note is not None
    assert (note.reason, note.type) == ("Dumped", "Warning")


def test_dumped_pods_go_before_the_other_moves() -> None:
    executor, rig = Executor(FakeWriter().writer), rig_with_the_paper()
    left, waiting = Unplaced(DB.key, DB.uid, "full", source="n1"), Unplaced("shop/new-1", "uid-new-1", "full")
    plan = replace(make_plan(plan_move(WEB, "n2")), unplaced=(left, waiting))
    adopted = executor.adopt(plan, "p", rig.snapshot())
    assert [(move.pod.name, move.target, move.dumps) for move in adopted] == [
        ("db-1", NO_NODE, True),
        ("web-1", "n2", False),
    ]


async def test_a_budget_stops_it() -> None:
    rig = rig_with_the_paper()
    rig.writer.evictions["web-1"] = EvictionAnswer(Eviction.PDB, "not now")
    outcome = await rig.run_cycle()
    assert [move.state for move in outcome.moves] == [MoveState.PLANNED, MoveState.FAILED]
    assert "uid-web-1" in rig.memory.cooldowns.backoffs


async def test_in_mode_observe_nothing_is_touched() -> None:
    rig = rig_with_the_paper()
    rig.settings = make_settings(planner={"name": "stable-paper"})
    outcome = await rig.run_cycle()
    assert outcome.rematch is not None
    assert outcome.rematch.plan.dumped
    assert rig.writer.evicted == []
    assert "would dump it" in rig.memory.cooldowns.backoffs["uid-web-1"].text
