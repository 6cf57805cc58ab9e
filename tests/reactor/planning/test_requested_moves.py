"""Moves that somebody asks for, by namespace/name or by name alone."""

from __future__ import annotations

import pytest

from matching.problem import Strategy
from reactor.cluster.requests import RequestedMove
from reactor.decision.cooldowns import Cooldowns
from reactor.errors import InputError
from reactor.planning.requested_moves import RequestedPlan, plan_requested
from tests.support.cluster import make_node, make_pod, make_settings
from tests.support.rig import Rig


def planned(*moves: tuple[str, str], scope: str = "cluster") -> RequestedPlan:
    rig = Rig(make_settings(mode="act", planner={"scope": scope}))
    rig.sync(make_pod("web-1"), make_pod("db-1"), make_pod("web-1", namespace="other", uid="o"))
    rig.put(make_node("n1"), make_node("n2"))
    rig.measure({"web-1": 1.0, "db-1": 1.0}, {"n1": 2.0, "n2": 0.0})
    asked = [RequestedMove(*move) for move in moves]
    return plan_requested(asked, rig.snapshot(), Cooldowns(), rig.settings, "a test")


def test_a_name_that_one_pod_has_is_enough() -> None:
    found = planned(("db-1", "n2"))
    assert [(move.pod, move.target) for move in found.plan.moves] == [("shop/db-1", "n2")]
    assert found.pods["db-1"].key == "shop/db-1"


@pytest.mark.parametrize(
    ("moves", "problem"),
    [
        ([("none", "n2")], "there is no pod none$"),
        ([("shop/db", "n2")], "there is no pod shop/db; did you mean shop/db-1"),
        ([("web-1", "n2")], "several pods: other/web-1, shop/web-1; write namespace/name"),
        ([("shop/db-1", "n9")], "there is no node n9"),
        ([("shop/db-1", "n2"), ("db-1", "n1")], "shop/db-1 is wanted on n2 and on n1"),
        ([], "names no pod"),
    ],
)
def test_unknown_and_ambiguous_names_are_refused(moves: list[tuple[str, str]], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        planned(*moves)


@pytest.mark.parametrize("scope", ["cluster", "unhappy"])
def test_a_happy_pod_is_moved_by_its_best_strategy_whatever_the_scope_of_our_own_plans(scope: str) -> None:
    found = planned(("shop/db-1", "n2"), scope=scope)
    strategies = {pod.key: pod.strategy for pod in found.problem.pods}
    expected = planned(("shop/db-1", "n2")).problem
    assert strategies["shop/db-1"] is {pod.key: pod.strategy for pod in expected.pods}["shop/db-1"]
    assert strategies["shop/db-1"] in Strategy
    assert [move.pod for move in found.plan.moves] == ["shop/db-1"]
