"""Why a pod is where it is and not elsewhere, for any pod and without a plan."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matching.explain import Explanation, explain
from matching.problem import Problem, ProblemError, Rules, Scope, Taint

Make = Callable[..., Any]
Problems = Callable[[int, int], st.SearchStrategy[Problem]]


def here(found: Explanation) -> str:
    return "; ".join(found.why_here)


def against(found: Explanation) -> dict[str, str]:
    return {each.node: each.reason for each in found.why_not}


def test_a_happy_pod_names_rank_distance_and_load(pod: Make, node: Make, problem: Make) -> None:
    found = explain(problem([pod("a", 2, node="n")], [node("far", 40, 40), node("n")]), "uid-a")
    assert "n is choice 1 of the 2 nodes it may use, distance 0." in here(found)
    assert "at peak n is at cpu 20 %, memory 10 %" in here(found)
    assert "not nearer" in against(found)["far"]


def test_each_kind_of_obstacle_is_told(pod: Make, node: Make, problem: Make) -> None:
    nodes = [
        node("crowded"),
        node("full"),
        node("home"),
        node("many", max_pods=0),
        node("tainted", taints=(Taint("k", "NoSchedule"),)),
        node("unmeasured", measured=False),
        node("other", labels={"zone": "b"}),
    ]
    pods = [
        pod("a", 4, node="home", rules=Rules(node_selector=(("zone", "a"),))),
        pod("b", 6, request=(1, 1), node="crowded"),
        pod("c", 0, request=(8, 1), node="full"),
    ]
    zoned = [each if each.name == "other" else replace(each, labels={"zone": "a"}) for each in nodes]
    reasons = against(explain(problem(pods, zoned), "uid-a"))
    assert reasons["crowded"].startswith("peak: cpu would be at 100 %")
    assert reasons["full"] == "requests: lacks 2 cpu"
    assert "limit of pods" in reasons["many"]
    assert "taint k" in reasons["tainted"]
    assert "no fresh metrics" in reasons["unmeasured"]
    assert "zone=a" in reasons["other"]
    assert "home" not in reasons


def test_inertia_is_named_where_it_decides(pod: Make, node: Make, problem: Make) -> None:
    nodes = [node("big", 20, 20), node("small", 2, 2)]
    held = explain(problem([pod("a", node="big")], nodes, inertia=1.5), "uid-a")
    assert "without the inertia of 1.5 it would prefer small" in here(held)
    assert against(held)["small"].startswith("nearer, but not by the inertia of 1.5")
    free = explain(problem([pod("a", node="big")], nodes, inertia=0.0), "uid-a")
    assert "big is choice 2 of the 2" in here(free)
    assert against(free)["small"].startswith("a matching may move it there")


def test_an_unhappy_pod_compares_loads(pod: Make, node: Make, problem: Make) -> None:
    pods = [
        pod("sad", 3, node="n", happy=False),
        pod("rock", 6.5, node="n", fixed="DaemonSet"),
        pod("stone", 6, node="same", fixed="DaemonSet"),
    ]
    found = explain(problem(pods, [node("idle", 20, 20), node("n"), node("same", 10.5, 10)]), "uid-sad")
    assert "unhappy on n: idle would be clearly less loaded" in here(found)
    assert against(found)["idle"].startswith("clearly less loaded: at peak it would be at 15 %")
    assert "less headroom than wanted" in against(found)["same"]


def test_the_least_loaded_node_is_named_and_not_the_nearest(pod: Make, node: Make, problem: Make) -> None:
    pods = [pod("sad", 3, node="n", happy=False), pod("rock", 6.5, node="n", fixed="DaemonSet")]
    found = explain(problem(pods, [node("big", 40, 40), node("n"), node("near", 10, 10)]), "uid-sad")
    assert next(iter(against(found))) == "near"
    assert "big would be clearly less loaded" in here(found)


def test_why_a_pod_may_not_be_moved_is_told_once(pod: Make, node: Make, problem: Make) -> None:
    pods = [pod("a", node="big", fixed="DaemonSet")]
    fixed = explain(problem(pods, [node("big", 20, 20), node("small", 2, 2)]), "uid-a")
    assert fixed.fixed == "DaemonSet"
    assert "DaemonSet" not in here(fixed)
    assert "may move it there" not in against(fixed)["small"]


def test_an_unhappy_pod_that_no_node_can_help(pod: Make, node: Make, problem: Make) -> None:
    pods = [pod("sad", 3, node="n", happy=False), pod("rock", 3, node="m", fixed="DaemonSet")]
    found = explain(problem(pods, [node("m"), node("n")]), "uid-sad")
    assert "no other node that can take it would be clearly less loaded" in here(found)
    assert against(found)["m"].startswith("no relief")


@pytest.mark.parametrize(
    ("more", "options", "words"),
    [
        ({"node": "n"}, {"scope": Scope.PENDING}, "the scope is pending"),
        ({"node": "gone"}, {}, "its node gone is not in the problem"),
        ({"node": None}, {}, "pending"),
        ({"node": "n", "cpu": 9.5}, {}, "needs no headroom"),
        ({"node": "n", "cpu": 10.5}, {}, "make room"),
    ],
)
def test_special_cases(
    more: dict[str, Any], options: dict[str, Any], words: str, pod: Make, node: Make, problem: Make
) -> None:
    assert words in here(explain(problem([pod("a", **more)], [node("n"), node("o")], **options), "uid-a"))


def test_a_pod_that_may_not_stay_says_so(pod: Make, node: Make, problem: Make) -> None:
    case = problem([pod("a", node="n")], [node("n", taints=(Taint("k", "NoExecute"),)), node("m")])
    found = explain(case, "uid-a")
    assert "may not stay on n: taint k" in here(found)
    assert against(found)["m"].startswith("has room")


def test_the_list_is_bounded(pod: Make, node: Make, problem: Make) -> None:
    found = explain(problem([pod("a", node="n000")], [node(f"n{at:03}") for at in range(200)]), "uid-a")
    assert len(found.why_not) == 11
    assert found.why_not[-1].node == "*"
    assert "189 more nodes" in found.why_not[-1].reason


def test_an_unknown_uid_is_an_error(pod: Make, node: Make, problem: Make) -> None:
    with pytest.raises(ProblemError, match="uid 'other'"):
        explain(problem([pod("a")], [node("n")]), "other")


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_every_pod_of_any_problem_gets_a_reason_per_node(data: st.DataObject, random_problems: Problems) -> None:
    problem = data.draw(random_problems(6, 4))
    for pod in problem.pods:
        found = explain(problem, pod.uid)
        assert found.why_here
        assert sorted(against(found)) == sorted(node.name for node in problem.nodes if node.name != pod.node)
        assert all(each.reason for each in found.why_not)
        reordered = replace(problem, pods=problem.pods[::-1], nodes=problem.nodes[::-1])
        assert explain(reordered, pod.uid) == found


def test_a_pending_pod_names_the_replicas_that_it_avoids(pod: Make, node: Make, problem: Make) -> None:
    pods = [pod("a", workload="web"), pod("b", node="near", workload="web")]
    found = explain(problem(pods, [node("near", 5, 5), node("roomy", 40, 40)]), "uid-a")
    assert "choice 2, distance" in against(found)["near"]
    assert "1 replica of its workload there" in against(found)["near"]
    assert "choice 1, distance" in against(found)["roomy"]
