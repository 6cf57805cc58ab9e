"""Order, reasons, measures and the registry."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from matching.model.arrays import arrays_of
from matching.plan import Plan
from matching.planners.stable.planner import StablePlanner
from matching.planning.move_order import order_moves
from matching.planning.reasons.wording import amount, percent
from matching.problem import Problem, ProblemError, Rules, Scope
from matching.registry import known_planners, load_planner

Make = Callable[..., Any]
Planning = Callable[[Problem], Plan]


def test_a_chain_of_moves_starts_where_there_is_room(pod: Make, node: Make, problem: Make) -> None:
    arrays = arrays_of(problem([pod("a", 8, node="n1"), pod("b", 8, node="n2")], [node("n1"), node("n2"), node("n3")]))
    ordered = order_moves(arrays, [0, 1], np.array([1, 2]))
    assert (ordered.in_order, ordered.stuck) == ((1, 0), ())


def test_moves_that_wait_for_each_other_are_stuck(pod: Make, node: Make, problem: Make) -> None:
    pods = [pod("a", 8, node="n1"), pod("b", 8, node="n2"), pod("c", 1, node="n2")]
    arrays = arrays_of(problem(pods, [node("n1"), node("n2"), node("n3")]))
    ordered = order_moves(arrays, [0, 1, 2], np.array([1, 0, 2]))
    assert (ordered.in_order, ordered.stuck) == ((2,), (0, 1))


def test_rejected_nodes_are_listed_best_first_and_the_rest_counted(
    pod: Make, node: Make, problem: Make, plan: Planning
) -> None:
    nodes = [node(f"n{at:02}", 2 + at, 2 + at, labels={"zone": "ab"[at % 2]}) for at in range(30)]
    found = plan(problem([pod("a", rules=Rules(node_selector=(("zone", "a"),)))], nodes))
    move = found.moves[0]
    assert move.target == "n00"
    assert [each.node for each in move.rejected[:3]] == ["n02", "n04", "n06"]
    assert len(move.rejected) == 11
    assert move.rejected[-1].node == "*"
    assert move.rejected[-1].reason == "19 more nodes: 15 node selector zone=a does not match, 4 less preferred"


def test_nodes_liked_better_say_what_was_in_the_way(pod: Make, node: Make, problem: Make, plan: Planning) -> None:
    resident = pod("r", 1, 1, request=(1, 2), node="small", fixed="DaemonSet")
    nodes = [node("big", 20, 20), node("mid", 4, 4), node("small", 2, 2)]
    found = plan(problem([pod("a", 0.9, request=(0.5, 1)), resident, pod("b", 3.5, fixed="x", node="mid")], nodes))
    reasons = {each.node: each.reason for each in found.moves[0].rejected}
    assert found.moves[0].target == "big"
    assert reasons["small"] == "requests: lacks 1 memory"
    assert reasons["mid"] == "peak: cpu would be at 110 %, must stay below 85 %"


def test_measures(pod: Make, node: Make, problem: Make, plan: Planning) -> None:
    pods = [pod("a", 5, 1, node="n"), pod("b", 4, 1, node="n"), pod("c")]
    found = plan(problem(pods, [node("m", background=(1, 0)), node("n")], scope=Scope.PENDING))
    assert found.before.node_load == {"m": 0.1, "n": 0.9}
    assert found.before.spread == pytest.approx(0.8)
    assert found.before.overloaded == ("n",)
    assert (found.before.pending, found.after.pending) == (1, 0)
    assert found.after.node_load["m"] == pytest.approx(0.2)


def test_registry_knows_the_default_planner() -> None:
    assert "stable" in known_planners()
    assert isinstance(load_planner("stable"), StablePlanner)


def test_an_unknown_planner_lists_the_known_ones() -> None:
    with pytest.raises(ProblemError, match=r"unknown planner 'tsable'; known are .*stable"):
        load_planner("tsable")


@pytest.mark.parametrize(
    ("axis", "value", "text"),
    [("cpu", 0.25, "0.25 cpu"), ("memory", 1.5 * 2**30, "1.5Gi memory"), ("memory", 512, "512 memory")],
)
def test_amounts_read_as_people_write_them(axis: str, value: float, text: str) -> None:
    assert amount(axis, value) == text


@pytest.mark.parametrize(("share", "text"), [(0.85, "85 %"), (0.075, "7.5 %"), (1.0, "100 %")])
def test_percent(share: float, text: str) -> None:
    assert percent(share) == text
