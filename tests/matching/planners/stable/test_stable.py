"""The planner on cases small enough to see why."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from matching.plan import BlockingCause, Plan
from matching.problem import Problem, Rules, Scope, Taint

Make = Callable[..., Any]
Planning = Callable[[Problem], Plan]


def targets(plan: Plan) -> dict[str, str]:
    return {move.pod.removeprefix("default/"): move.target for move in plan.moves}


def test_nearest_fit_not_biggest_node_first(pod: Make, node: Make, problem: Make, plan: Planning) -> None:
    found = plan(problem([pod("a")], [node("big", 20, 20), node("small", 2, 2)]))
    assert targets(found) == {"a": "small"}
    assert found.moves[0].rank == 1


def test_ties_go_by_node_name(pod: Make, node: Make, problem: Make, plan: Planning) -> None:
    assert targets(plan(problem([pod("a")], [node("n2"), node("n1")]))) == {"a": "n1"}


def test_an_unhappy_pod_leaves_an_overloaded_node(pod: Make, node: Make, problem: Make, plan: Planning) -> None:
    """STABLE's trouble: the weak node is full while the others idle."""
    nodes = [node("strong", 12, 12), node("weak", 5, 8)]
    pods = [pod(f"web{at}", 1, node="weak", happy=at > 0) for at in range(5)]
    found = plan(problem(pods, nodes, scope=Scope.UNHAPPY))
    assert targets(found) == {"web0": "strong"}
    assert found.moves[0].reasons[0] == "unhappy on weak, which is at 100 % at peak"
    assert found.before.overloaded == ("weak",)
    assert found.after.overloaded == ()


@pytest.mark.parametrize("scope", [Scope.CLUSTER, Scope.UNHAPPY])
def test_an_unhappy_pod_is_not_sent_back_by_nearness(
    scope: Scope, pod: Make, node: Make, problem: Make, plan: Planning
) -> None:
    """Starved, it uses next to nothing, so its own small node is nearest; it goes where there is less load."""
    pods = [
        pod("starved", 0.2, 0.2, node="small", happy=False),
        pod("greedy", 3.7, 1, node="small", fixed="DaemonSet"),
    ]
    found = plan(problem(pods, [node("big", 20, 20), node("small", 4, 4)], scope=scope))
    assert targets(found) == {"starved": "big"}
    assert found.certificate.blocking_pairs == 0


def test_an_unhappy_pod_stays_when_no_node_is_clearly_less_loaded(
    pod: Make, node: Make, problem: Make, plan: Planning
) -> None:
    pods = [pod("a", 2, node="n", happy=False), pod("b", 2, node="m", fixed="DaemonSet")]
    found = plan(problem(pods, [node("m"), node("n")]))
    assert found.moves == ()
    assert "clearly less loaded" in found.stays[0].reason


def test_a_plan_that_helps_nobody_is_empty_and_says_why(
    pod: Make, node: Make, problem: Make, plan: Planning, matched: Planning
) -> None:
    case = problem([pod("a", node="big")], [node("big", 20, 20), node("small", 2, 2)], inertia=0.0)
    found = plan(case)
    assert found.moves == ()
    assert found.notes[0] == "no running pod is moved"
    assert "no pod is unhappy" in found.notes[1]
    assert {pair.cause for pair in found.certificate.blocking} == {BlockingCause.NOT_WORTH_IT}
    assert targets(matched(case)) == {"a": "small"}


def test_the_unhappy_pods_alone_are_matched_when_the_whole_cluster_would_not_help_them(
    pod: Make, node: Make, problem: Make, plan: Planning
) -> None:
    """`heavy` likes n1 better and ranks first; with it there, n1 would be no relief for the unhappy pod."""
    pods = [
        pod("sad", 1, 1, node="n0", happy=False),
        pod("rock", 6, 1, node="n0", fixed="DaemonSet"),
        pod("heavy", 7, 1, node="n2"),
    ]
    found = plan(problem(pods, [node("n0"), node("n1"), node("n2", 20, 10)], inertia=0.0))
    assert targets(found) == {"sad": "n1"}
    assert found.notes[0].startswith("matching of the whole cluster dropped")
    assert {pair.cause for pair in found.certificate.blocking} == {BlockingCause.NOT_WORTH_IT}


def test_inertia_keeps_a_happy_pod(pod: Make, node: Make, problem: Make, matched: Planning) -> None:
    case = problem([pod("a", node="big")], [node("big", 20, 20), node("small", 2, 2)], inertia=1.5)
    found = matched(case)
    assert found.moves == ()
    assert found.stays[0].reason == "happy where it is (inertia)"


def test_headroom_is_given_up_step_by_step(pod: Make, node: Make, problem: Make, plan: Planning) -> None:
    def reason(cpu: float) -> str:
        return plan(problem([pod("a", cpu, request=(1, 1))], [node("n")], headroom=0.2)).moves[0].reasons[-1]

    assert "degraded" not in reason(7.9)
    assert "leaves 10 %" in reason(8.5)
    assert "leaves 0 %" in reason(9.5)
    assert "least overloaded" in reason(12)


def test_peaks_only_prefer_where_requests_fit(pod: Make, node: Make, problem: Make, plan: Planning) -> None:
    pods = [pod("a", 30, request=(1, 1)), pod("b", 30, request=(1, 1))]
    found = plan(problem(pods, [node("m"), node("n")], scope=Scope.PENDING))
    assert sorted(targets(found).values()) == ["m", "n"]


def test_higher_priority_is_placed_first_and_the_missing_is_named(
    pod: Make, node: Make, problem: Make, plan: Planning
) -> None:
    pods = [pod("low", 5), pod("high", 5, priority=10)]
    nodes = [node("n", 6), node("x", taints=(Taint("k", "NoSchedule"),))]
    found = plan(problem(pods, nodes))
    assert targets(found) == {"high": "n"}
    (left,) = found.unplaced
    assert left.pod == "default/low"
    assert "1 too little left by requests" in left.reason
    assert "1 taint k:NoSchedule is not tolerated" in left.reason
    assert left.reason.endswith("nearest: n lacks 4 cpu")


def test_a_running_pod_is_not_sent_to_an_unmeasured_node_a_pending_one_may_be(
    pod: Make, node: Make, problem: Make, plan: Planning
) -> None:
    crowded_pods = [pod("a", 6, node="n", happy=False), pod("b", 6, node="n")]
    unmeasured = [node("m", measured=False), node("n")]
    assert plan(problem(crowded_pods, unmeasured)).moves == ()
    assert targets(plan(problem([*crowded_pods, pod("c")], unmeasured))) == {"c": "m"}


def test_rules_are_ignored_for_what_already_runs(pod: Make, node: Make, problem: Make, plan: Planning) -> None:
    picky = pod("a", node="n", rules=Rules(node_selector=(("zone", "x"),)))
    found = plan(problem([picky], [node("m"), node("n", taints=(Taint("k", "NoSchedule"),))]))
    assert [(stay.pod, stay.node) for stay in found.stays] == [("default/a", "n")]


def test_a_no_execute_taint_drives_out(pod: Make, node: Make, problem: Make, matched: Planning) -> None:
    found = matched(problem([pod("a", node="n")], [node("m"), node("n", taints=(Taint("k", "NoExecute"),))]))
    assert targets(found) == {"a": "m"}
    assert found.moves[0].reasons[0].startswith("may not stay on n: taint k:NoExecute")


def test_fixed_and_lost_pods(pod: Make, node: Make, problem: Make, plan: Planning) -> None:
    pods = [pod("agent", node="n", fixed="DaemonSet"), pod("lost", node="gone"), pod("gated", fixed="scheduling gate")]
    found = plan(problem(pods, [node("n")]))
    assert {stay.pod: stay.reason for stay in found.stays} == {
        "default/agent": "fixed: DaemonSet",
        "default/lost": "fixed: its node gone is not in the problem",
    }
    assert found.unplaced[0].reason == "left alone: scheduling gate"
    assert found.after.pending == 1


def test_nobody_loses_a_node_when_sizes_do_not_pack(pod: Make, node: Make, problem: Make, matched: Planning) -> None:
    """The first would rather be on `small`, where only the second fits by requests."""
    pods = [
        pod("first", 2, request=(1, 1), node="big"),
        pod("second", 1, request=(4, 4), node="small"),
        pod("rock", 0, 0, request=(17, 17), node="big", fixed="DaemonSet"),
    ]
    found = matched(problem(pods, [node("big", 20, 20), node("small", 4, 4)], inertia=0.0))
    assert found.moves == ()
    assert {pair.cause for pair in found.certificate.blocking} == {BlockingCause.NOBODY_LEFT_OUT}
    assert found.certificate.feasible


@pytest.mark.parametrize("most", [0, 1, 2, 3])
def test_budget_keeps_the_unhappy_pods_moves_first(
    most: int, pod: Make, node: Make, problem: Make, plan: Planning
) -> None:
    pods = [pod(f"p{at}", 2, node="n", happy=at not in (1, 3)) for at in range(6)]
    case = problem(pods, [node("n"), node("m", 30, 30)], inertia=2.0)
    found = plan(replace(case, options=replace(case.options, max_moves=most)))
    expected = {0: [], 1: ["p1"], 2: ["p1", "p3"], 3: ["p1", "p3"]}[most]
    assert sorted(targets(found)) == expected
    if most < 2:
        assert {pair.cause for pair in found.certificate.blocking} == {BlockingCause.BUDGET}


def test_pending_pods_are_not_counted_in_the_budget(pod: Make, node: Make, problem: Make, plan: Planning) -> None:
    found = plan(problem([pod("a"), pod("b")], [node("n")], max_moves=0))
    assert sorted(targets(found)) == ["a", "b"]


def test_needs_from_requests_are_mentioned(pod: Make, node: Make, problem: Make, plan: Planning) -> None:
    found = plan(replace(problem([pod("a")], [node("n")]), needs_from="requests"))
    assert found.notes == ("usage and peaks are taken from requests, not from metrics",)
