"""A user's own get_allocation_plan in KSE's form."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from matching.plan import Plan
from matching.planners.function import FunctionPlanner, plan_with
from matching.planners.function_records import KseNode, KsePod
from matching.problem import Node, Options, Pod, Problem, ProblemError, Rules
from matching.registry import load_planner

Ends = Callable[[Plan], dict[str, str | None]]


def _pod(key: str, node: str | None, **more: Any) -> Pod:
    return Pod(key, key, (0.5, 2e8), (0.1, 1e8), (0.5, 2e8), node=node, **more)


def _problem(*pods: Pod, **options: Any) -> Problem:
    nodes = (Node("n1", (2.0, 4e9), background=(0.25, 0.0)), Node("n2", (2.0, 4e9), labels={"disk": "ssd"}))
    return Problem(("cpu", "memory"), pods, nodes, Options(**options))


def _always(answer: object) -> Callable[[list[KsePod], list[KseNode]], Mapping[str, str]]:
    return lambda _pods, _nodes: answer  # type: ignore[return-value]


def test_pods_and_nodes_come_in_kse_s_form() -> None:
    seen: dict[str, Any] = {}

    def look(pods: list[KsePod], nodes: list[KseNode]) -> dict[str, str]:
        seen.update(pods=pods, nodes=nodes)
        return {}

    plan_with(look, _problem(_pod("a/web", "n1"), _pod("a/fixed", "n1", fixed="DaemonSet"), _pod("b/new", None)))
    assert [(pod.name, pod["namespace"], pod.node) for pod in seen["pods"]] == [("web", "a", "n1"), ("new", "b", None)]
    assert seen["pods"][0]["metrics"] == {"cpu": 500.0, "memory": 200.0}
    assert [node.name for node in seen["nodes"]] == ["n1", "n2"]
    assert seen["nodes"][0].metrics == {"cpu": 1250.0, "memory": 400.0}
    assert [pod.name for pod in seen["nodes"][0].pods] == ["web"]
    assert seen["nodes"][1]["allocatable"] == {"cpu": 2000.0, "memory": 4000.0}
    with pytest.raises(KeyError):
        seen["pods"][0]["nothing"]


def test_the_answer_becomes_a_plan_and_nobody_moves_to_where_it_is(ends: Ends) -> None:
    plan = plan_with(_always({"web": "n2", "b/api": "n1"}), _problem(_pod("a/web", "n1"), _pod("b/api", "n1")))
    assert [(move.pod, move.source, move.target) for move in plan.moves] == [("a/web", "n1", "n2")]
    assert plan.moves[0].reasons[0] == "the function wants it on n2"
    assert ends(plan) == {"a/web": "n2", "b/api": "n1"}


def test_what_cannot_be_stays_and_says_why() -> None:
    picky = _pod("a/picky", "n2", rules=Rules(node_selector=(("disk", "ssd"),)))
    fixed = _pod("a/daemon", "n2", fixed="DaemonSet")
    plan = plan_with(_always({"picky": "n1", "daemon": "n1"}), _problem(picky, fixed))
    assert plan.moves == ()
    assert plan.certificate.feasible
    why = {stay.pod: stay.reason for stay in plan.stays}
    assert why["a/picky"].startswith("the function wants it on n1: ")
    assert why["a/daemon"] == "fixed: DaemonSet"
    assert any("a/daemon may not move" in note for note in plan.notes)


def test_pods_of_one_name_are_told_apart() -> None:
    twins = _problem(_pod("a/web", "n1"), _pod("b/web", "n1"))
    names: list[str] = []

    def note_names(pods: list[KsePod], _nodes: list[KseNode]) -> dict[str, str]:
        names.extend(pod.name for pod in pods)
        return {}

    plan_with(note_names, twins)
    assert names == ["a/web", "b/web"]
    with pytest.raises(ProblemError, match=r"'web', but there are a/web, b/web"):
        plan_with(_always({"web": "n2"}), twins)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (None, "answered NoneType"),
        (["web"], "answered list"),
        ({"nobody": "n1"}, "pod 'nobody'"),
        ({7: "n1"}, "pod 7"),
        ({"web": "n9"}, "pod web on 'n9'"),
        ({"web": None}, "pod web on None"),
    ],
)
def test_a_malformed_answer_is_named(answer: object, says: str) -> None:
    with pytest.raises(ProblemError, match=says):
        plan_with(_always(answer), _problem(_pod("a/web", "n1")))


def test_the_budget_holds_for_functions_too() -> None:
    pods = [_pod(f"a/p{at}", "n1") for at in range(4)]
    plan = plan_with(_always({f"p{at}": "n2" for at in range(4)}), _problem(*pods, max_moves=2))
    assert len(plan.moves) == 2
    assert plan.certificate.feasible


USERS_OWN_CODE = """
import os, sys, time

number = 5
def plan(pods, nodes):
    print("to the log, not into the answer")
    return {pod.name: nodes[1]["name"] for pod in pods if pod["node"] == nodes[0].name}
def broken(pods, nodes): return 1 / 0
def hangs(pods, nodes): time.sleep(600)
def hangs_in_a_child(pods, nodes):
    if os.fork() == 0:
        time.sleep(600)
    os._exit(0)
def exits(pods, nodes): os._exit(3)
def dies(pods, nodes): os.kill(os.getpid(), 9)
def too_much(pods, nodes): return {f"pod-{n}": "x" * 1000 for n in range(20_000)}
def a_list(pods, nodes): return [1, 2]
def garbage(pods, nodes): return {"web": 5}
"""


@pytest.fixture
def users_own_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "users_own_code.py").write_text(USERS_OWN_CODE)
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.usefixtures("users_own_code")
def test_loaded_by_its_path() -> None:
    problem = _problem(_pod("a/web", "n1"))
    assert len(load_planner("function", {"path": "users_own_code:plan"}).plan(problem).moves) == 1


@pytest.mark.usefixtures("users_own_code")
@pytest.mark.parametrize(
    ("function", "says"),
    [
        ("users_own_code:broken", "users_own_code:broken failed with ZeroDivisionError"),
        ("users_own_code:nothing", "cannot be loaded"),
        ("no_such:x", "cannot be loaded"),
        ("users_own_code:number", "not a function"),
        ("users_own_code:hangs", r"did not answer within 1\.5 s and was killed"),
        ("users_own_code:hangs_in_a_child", r"did not answer within 1\.5 s and was killed"),
        ("users_own_code:exits", r"ended its process without an answer \(exit code 3\)"),
        ("users_own_code:dies", r"ended its process without an answer \(exit code -9\)"),
        ("users_own_code:too_much", "more than 16 MiB"),
        ("users_own_code:a_list", "of type list; it must be a mapping of pods to nodes"),
        ("users_own_code:garbage", "which is not a node of the problem"),
    ],
)
def test_whatever_it_does_is_a_clear_error_in_time(function: str, says: str) -> None:
    began = time.monotonic()
    with pytest.raises(ProblemError, match=says):
        FunctionPlanner(function, deadline=1.5 if "hangs" in function else 20.0).plan(_problem(_pod("a/web", "n1")))
    assert time.monotonic() - began < 25
