"""When not everybody fits: who comes first, and what is missing where."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from matching.plan import Plan
from matching.planning.reasons.obstacles import kind_of_nodes
from matching.problem import Problem, Requirement, Rules, Term

Make = Callable[..., Any]
Planning = Callable[[Problem], Plan]

GIB = 2.0**30
ZONE_A = Rules(node_selector=(("zone", "a"),))


def _full(pod: Make, node: Make, problem: Make, **more: Any) -> Problem:
    """Four cores in zone a; three pods ask for two each, one of them may go to zone b, too."""
    pods = [
        pod("low", 2, GIB, priority=0, rules=ZONE_A),
        pod("high", 2, GIB, priority=5, rules=ZONE_A),
        pod("middle", 2, GIB, priority=3, rules=ZONE_A),
        pod("elsewhere", 2, GIB, priority=0),
    ]
    nodes = [
        node("a1", 2, 8 * GIB, labels={"zone": "a"}),
        node("a2", 2, 8 * GIB, labels={"zone": "a"}),
        node("b1", 9, 8 * GIB, labels={"zone": "b"}),
    ]
    return problem(pods, nodes, headroom=0.0, **more)  # type: ignore[no-any-return]


def test_priorities_decide_who_gets_the_room(pod: Make, node: Make, problem: Make, plan: Planning) -> None:
    found = plan(_full(pod, node, problem))
    assert {move.pod for move in found.moves} == {"default/high", "default/middle", "default/elsewhere"}
    assert [left.pod for left in found.unplaced] == ["default/low"]


def test_the_plan_names_how_much_of_what_is_missing_where(pod: Make, node: Make, problem: Make, plan: Planning) -> None:
    found = plan(_full(pod, node, problem))
    (note,) = [note for note in found.notes if "no node for" in note]
    assert "1 pending pod (default/low)" in note
    assert "on nodes with zone=a at least 2 cpu more would be needed" in note
    assert "nearest of nodes with zone=a" in found.unplaced[0].reason


def test_enough_in_all_but_not_on_one_node(pod: Make, node: Make, problem: Make, plan: Planning) -> None:
    pods = [pod("wide", 3), pod("here", 2, node="m", fixed="x"), pod("there", 3, node="n", fixed="x")]
    found = plan(problem(pods, [node("m", 4, 9), node("n", 4, 9)]))
    (note,) = [note for note in found.notes if "no node for" in note]
    assert "on all nodes enough is left in total, but not on one node: for default/wide m lacks 1 cpu" in note


def test_the_nearest_node_lacks_the_least_share(pod: Make, node: Make, problem: Make, plan: Planning) -> None:
    """A hundred bytes are less than one core."""
    found = plan(problem([pod("wide", 4, GIB)], [node("a", 3, GIB), node("b", 4, GIB - 100)]))
    assert found.unplaced[0].reason.endswith("nearest: b lacks 100 memory")
    (note,) = [note for note in found.notes if "no node for" in note]
    assert note.endswith("enough is left in total, but not on one node: for default/wide b lacks 100 memory")


def test_no_such_node_at_all(pod: Make, node: Make, problem: Make, plan: Planning) -> None:
    found = plan(problem([pod("lost", rules=ZONE_A)], [node("n", labels={"zone": "b"})]))
    (note,) = [note for note in found.notes if "no node for" in note]
    assert "of nodes with zone=a none would take it" in note


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        (Rules(), "all nodes"),
        (Rules(node_selector=(("disk", "ssd"), ("zone", "a"))), "nodes with disk=ssd and zone=a"),
        (
            Rules(node_affinity=(Term((Requirement("zone", "In", ("a", "b")), Requirement("gpu", "Exists"))),)),
            "nodes with zone in (a,b) and gpu",
        ),
        (
            Rules(
                node_affinity=(
                    Term((Requirement("cores", "Gt", ("8",)),)),
                    Term((Requirement("old", "DoesNotExist"), Requirement("zone", "NotIn", ("c",)))),
                )
            ),
            "nodes with (cores > 8 or !old and zone notin (c))",
        ),
        (Rules(volume_zones=(("zone", ("a",)),)), "nodes with zone in (a)"),
    ],
)
def test_kinds_of_nodes_in_words(rules: Rules, words: str) -> None:
    assert kind_of_nodes(rules) == words
