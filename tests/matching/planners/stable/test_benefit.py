"""Who moves is weighed by benefit and price: few moves, spread, never onto a crowded node, none when nothing helps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matching.plan import Plan
from matching.planners.stable import StablePlanner
from matching.problem import Node, Options, Pod, Problem, Scope, Strategy
from matching.testing.random_problems import random_problem

SCOPES = (Scope.CLUSTER, Scope.UNHAPPY)


def _plan(problem: Problem) -> Plan:
    return StablePlanner().plan(problem)


def _node(name: str, cores: float = 8.0, max_pods: int = 110) -> Node:
    return Node(name, (cores, 32.0), max_pods)


def _pod(name: str, node: str, cores: float, *, happy: bool = True) -> Pod:
    return Pod(f"shop/{name}", f"uid-{name}", (cores, 0.3), (0.1, 0.3), (cores, 0.3), node, happy=happy)


def _problem(pods: list[Pod], nodes: list[Node], options: Options | None = None) -> Problem:
    return Problem(("cpu", "memory"), tuple(pods), tuple(nodes), options or Options(inertia=0.5))


def _large_cluster(seed: int) -> Problem:
    """300 equal nodes, 10,000 pods, four hot nodes with 118 pods, all of them unhappy."""
    pick = Random(seed)
    nodes = [_node(f"n{at:03}") for at in range(300)]
    sizes = [pick.triangular(0.06, 0.56, 0.18) for _ in range(118)]
    hot = [
        _pod(f"hot-{at:03}", f"n{at % 4:03}", size * 8.2 / sum(sizes[at % 4 :: 4]), happy=False)
        for at, size in enumerate(sizes)
    ]
    others = [
        _pod(f"calm-{at:04}", f"n{at % 296 + 4:03}", pick.uniform(0.02, 0.2 if at % 296 < 177 else 0.3))
        for at in range(9882)
    ]
    return _problem([*hot, *others], nodes)


@pytest.mark.parametrize("scope", SCOPES)
def test_a_few_moves_relieve_four_hot_nodes_and_make_no_new_one(scope: Scope) -> None:
    problem = _large_cluster(1)
    plan = _plan(replace(problem, options=replace(problem.options, scope=scope)))
    hot = [f"n{at:03}" for at in range(4)]
    assert all(plan.before.node_load[name] > 1 for name in hot)
    assert 4 <= len(plan.moves) <= 13
    assert all(plan.after.node_load[name] < 0.95 for name in hot)
    targets = Counter(move.target for move in plan.moves)
    assert max(plan.after.node_load[name] for name in targets) < 0.65
    assert plan.certificate.feasible
    assert plan.missing is None


def test_happy_pods_are_not_sent_to_a_crowded_node_because_it_is_the_nearer_fit() -> None:
    """The big node is idle, but has reached its limit of pods."""
    idle = [_pod(f"idle-{at}", "big", 0.32) for at in range(2)]
    crowd = [_pod(f"crowd-{at}", "small", 0.495, happy=at > 2) for at in range(8)]
    plan = _plan(_problem([*idle, *crowd], [_node("big", 64.0, max_pods=2), _node("small", 4.0)]))
    assert plan.before.node_load == pytest.approx({"big": 0.01875, "small": 0.99})
    assert plan.moves == ()
    assert plan.missing is not None
    assert any("limit of pods" in each.constraint for each in plan.missing.relaxations)


def test_one_heavy_happy_pod_leaves_and_cures_the_unhappy_ones_that_stay() -> None:
    light = [_pod(f"light-{at}", "hot", 0.4, happy=False) for at in range(12)]
    plan = _plan(_problem([_pod("heavy", "hot", 3.4), *light], [_node("hot"), _node("calm")]))
    assert [move.pod for move in plan.moves] == ["shop/heavy"]
    assert plan.benefit is not None
    assert plan.benefit.expected < plan.benefit.without / 10
    (move,) = plan.moves
    assert move.benefit is not None
    assert move.benefit.ratio >= plan.benefit.required_ratio


def test_a_pod_that_starves_gets_ample_room() -> None:
    """It uses all that its neighbours leave; how much more it wants cannot be measured."""
    nodes = [_node("hot"), _node("calm")]
    neighbours = [_pod(f"neighbour-{at}", "hot", 0.8) for at in range(4)]
    plan = _plan(_problem([_pod("hungry", "hot", 4.8, happy=False), *neighbours, _pod("big", "calm", 4.0)], nodes))
    assert [move.pod for move in plan.moves] == [f"shop/neighbour-{at}" for at in range(3)]
    assert all(move.benefit is not None and move.benefit.ratio >= 2 for move in plan.moves)


def test_where_there_is_no_ample_room_it_gets_what_is_known_to_be_needed() -> None:
    nodes = [_node("hot"), _node("calm")]
    neighbours = [_pod(f"neighbour-{at}", "hot", 0.8) for at in range(4)]
    plan = _plan(_problem([_pod("hungry", "hot", 4.8, happy=False), *neighbours, _pod("big", "calm", 5.8)], nodes))
    assert [move.pod for move in plan.moves] == ["shop/neighbour-0"]


def test_a_high_peak_in_the_past_does_not_keep_a_pod_where_it_fails() -> None:
    """While a replica was down, the other one had twice its load."""
    busy_once = replace(_pod("busy-once", "calm", 4.0), peak=(8.0, 0.3))
    pods = [_pod("unhappy", "hot", 1.5, happy=False), replace(_pod("other", "hot", 6.5), fixed="DaemonSet"), busy_once]
    (move,) = _plan(_problem(pods, [_node("hot"), _node("calm")])).moves
    assert (move.pod, move.target) == ("shop/unhappy", "calm")


def test_all_unhappy_pods_leave_a_faulty_node_even_for_nodes_that_are_more_loaded() -> None:
    failing = [_pod(f"failing-{at}", "idle", 0.6, happy=False) for at in range(3)]
    others = [_pod(f"other-{at}", f"n{at}", 4.0) for at in range(2)]
    problem = _problem([*failing, *others], [_node("idle"), _node("n0"), _node("n1")])
    assert _plan(problem).moves == ()
    happy, faulty = _pod("happy", "idle", 0.6), replace(problem.nodes[0], faulty=True)
    plan = _plan(replace(problem, pods=(*problem.pods, happy), nodes=(faulty, *problem.nodes[1:])))
    assert {move.pod for move in plan.moves} == {pod.key for pod in failing}


def test_when_the_cluster_is_full_nobody_moves_and_the_plan_says_what_is_missing() -> None:
    pods = [_pod(f"p{at}", f"n{at % 2}", 2.4, happy=at > 1) for at in range(8)]
    plan = _plan(_problem(pods, [_node("n0"), _node("n1")]))
    assert plan.moves == ()
    assert plan.missing is not None
    assert plan.missing.amounts["cpu"] == pytest.approx(2 * (9.6 - 0.85 * 8))
    assert (plan.missing.node_like, plan.missing.cured) == ("n0", 2)
    assert set(plan.missing.pods) == {"shop/p0", "shop/p1"}


def test_a_move_that_saves_less_than_its_price_is_not_made() -> None:
    pods = [_pod("unhappy", "hot", 0.5, happy=False), _pod("other", "hot", 7.6)]
    cheap, dear = (
        _plan(_problem(pods, [_node("hot"), _node("calm", 16.0)], Options(inertia=0.5, move_price=price)))
        for price in (1.0, 1000.0)
    )
    assert len(cheap.moves) == 1
    assert dear.moves == ()


def test_the_price_counts_replicas_start_up_time_and_strategy() -> None:
    def price(change: Callable[[Pod], Pod], replicas: int = 1) -> float:
        pods = [
            replace(change(_pod("unhappy", "hot", 2.0, happy=False)), workload="w"),
            *(replace(_pod(f"replica-{at}", "calm", 0.1), workload="w") for at in range(replicas - 1)),
            replace(_pod("other", "hot", 6.5), fixed="DaemonSet"),
        ]
        (move,) = _plan(_problem(pods, [_node("hot"), _node("calm")])).moves
        assert move.benefit is not None
        return move.benefit.price

    usual = price(lambda pod: pod)
    assert price(lambda pod: replace(pod, startup_seconds=300.0)) == pytest.approx(usual + 4.5)
    assert price(lambda pod: replace(pod, startup_seconds=300.0), replicas=5) < usual + 1
    assert price(lambda pod: replace(pod, strategy=Strategy.SCALE_SURGE)) < usual


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**31), st.sampled_from(SCOPES))
def test_the_rules_hold_for_random_problems(seed: int, scope: Scope) -> None:
    problem = random_problem(seed)
    problem = replace(problem, options=replace(problem.options, scope=scope, inertia=0.5, only_if_better=True))
    plan, pods = _plan(problem), {pod.key: pod for pod in problem.pods}
    moved = [move for move in plan.moves if move.source is not None]
    entered = {move.target for move in plan.moves}
    staying_unhappy = {stay.node for stay in plan.stays if not pods[stay.pod].happy}
    limit = 1 - problem.options.headroom
    known = {node.name for node in problem.nodes}
    anyone_unhappy = any(not pod.happy and pod.node in known for pod in problem.pods)
    for move in moved:
        if pods[move.pod].happy:
            assert plan.after.node_load[move.target] <= limit + 1e-9
            assert not anyone_unhappy or move.source in staying_unhappy | entered
        else:
            assert move.benefit is not None
            assert move.benefit.saved > 0
    assert plan.certificate.feasible
