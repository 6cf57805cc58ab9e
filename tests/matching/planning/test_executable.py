"""Every move that a plan lists can be carried out in its order, with every planner."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matching.array_types import Ints
from matching.model.arrays import arrays_of
from matching.plan import BlockingCause, Plan, PlannedMove, Unplaced
from matching.planners.function import plan_with
from matching.planning.executable import executable
from matching.planning.move_order import order_moves
from matching.planning.outcome import Choice, Outcome
from matching.planning.prepared import PreparedProblem, prepare
from matching.planning.reasons.stays import stays
from matching.problem import Node, Pod, Problem, Scope
from matching.registry import known_planners, load_planner
from matching.testing import full_problem, problem_with_pod_rules, random_problem
from matching.verify import certify
from matching.verify.reference_pod_rules import PlacedPods

Make = Callable[..., Any]
Planning = Callable[[Problem], Plan]

PLANNERS = [name for name in known_planners() if name != "function"]
PARAMETERS: dict[str, dict[str, object]] = {"genetic": {"population": 12, "generations": 8}}


def _plan(name: str, problem: Problem) -> Plan:
    return load_planner(name, PARAMETERS.get(name, {})).plan(problem)


def _late_moves(problem: Problem, moves: Sequence[PlannedMove], unplaced: Sequence[Unplaced]) -> Iterator[str]:
    """Carries the moves out one after the other: a simulator that knows nothing of planners and their ledgers."""
    pods = {pod.key: pod for pod in problem.pods}
    nodes = {node.name: node for node in problem.nodes}
    where = {pod.key: pod.node for pod in problem.pods} | {left.pod: None for left in unplaced}
    for move in moves:
        pod, node = pods[move.pod], nodes[move.target]
        there = [other for other in problem.pods if where[other.key] == node.name]
        if not _has_room(problem, pod, node, there) or not PlacedPods(problem, where).allows(pod, node):
            yield move.pod
        where[move.pod] = move.target


def _has_room(problem: Problem, pod: Pod, node: Node, there: list[Pod]) -> bool:
    if len(there) >= node.max_pods:
        return False
    for axis, room in enumerate(node.allocatable):
        largest = max(each.allocatable[axis] for each in problem.nodes)
        requested = sum(each.request[axis] for each in (*there, pod))
        if pod.request[axis] and requested > room + 1e-9 * largest * (len(there) + 1):
            return False
    return True


def test_of_600_plans_for_full_clusters_every_move_can_be_carried_out() -> None:
    """Before the rule, 504 of the 1,541 moves in these plans could not."""
    problems = [full_problem(seed, 3 + seed % 4) for seed in range(60)]
    late = [
        (name, key)
        for problem in problems
        for name in PLANNERS
        for plan in (_plan(name, problem),)
        for key in _late_moves(problem, plan.moves, plan.unplaced)
    ]
    assert late == []


@pytest.mark.parametrize("name", PLANNERS)
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**31))
def test_the_moves_of_every_planner_can_be_carried_out_in_their_order(name: str, seed: int) -> None:
    problems = [full_problem(seed, 2 + seed % 5), random_problem(seed)]
    if name != "network":
        problems.append(problem_with_pod_rules(seed))
    for problem in problems:
        plan = _plan(name, problem)
        assert list(_late_moves(problem, plan.moves, plan.unplaced)) == []
        assert len({move.pod for move in plan.moves}) == len(plan.moves)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**31))
def test_so_can_those_that_a_users_function_asks_for(seed: int) -> None:
    problem = full_problem(seed, 4)

    def next_node(pods: list[Any], nodes: list[Any]) -> dict[str, str]:
        names = [node.name for node in nodes]
        return {pod.name: names[(names.index(pod.node or names[0]) + 1) % len(names)] for pod in pods}

    plan = plan_with(next_node, problem)
    assert list(_late_moves(problem, plan.moves, plan.unplaced)) == []


@pytest.fixture
def swap(pod: Make, node: Make, problem: Make) -> Callable[..., Problem]:
    """The unhappy pod only fits where the happy one is, which prefers the room that the unhappy one leaves."""

    def swap_with(*more: Node) -> Problem:
        pods = [
            pod("sad", 4, request=(8, 8), node="n0", happy=False),
            pod("rock", 6, request=(1, 1), node="n0", fixed="DaemonSet"),
            pod("small", 1, request=(7, 7), node="n1"),
        ]
        return problem(pods, [node("n0"), node("n1"), *more], inertia=0.2)  # type: ignore[no-any-return]

    return swap_with


def test_a_ring_is_broken_through_a_node_with_slack(swap: Callable[..., Problem], node: Make, plan: Planning) -> None:
    found = plan(swap(node("n2", 7.5, 7.5)))
    assert [(move.pod, move.target) for move in found.moves] == [("default/small", "n2"), ("default/sad", "n1")]
    assert found.moves[0].reasons[-1] == "not to n0: moves there wait for each other's room"
    assert "sent to another node, because moves would wait for each other's room: default/small" in found.notes
    assert found.certificate.feasible
    assert {pair.cause for pair in found.certificate.blocking} <= {BlockingCause.MOVE_ORDER}


def test_a_ring_without_slack_is_given_up_and_said(swap: Callable[..., Problem], node: Make) -> None:
    prepared = prepare(swap(node("n2", 2, 2)))
    found = executable(prepared, _outcome(prepared, [0, 1, 0]))
    assert found.order == ()
    assert found.choice.at.tolist() == prepared.arrays.current.tolist()
    assert found.choice.given_up[1] == (
        "kept here: n1 has no room for it, because the moves that would make some wait for each other"
    )
    assert found.cause is BlockingCause.MOVE_ORDER


def test_a_happy_pod_that_cannot_make_room_says_so(swap: Callable[..., Problem], node: Make) -> None:
    """Also where only unhappy pods are in scope."""
    problem = swap(node("n2", 2, 2))
    prepared = prepare(replace(problem, options=replace(problem.options, scope=Scope.AFFECTED)))
    reasons = {stay.pod: stay.reason for stay in stays(prepared, executable(prepared, _outcome(prepared, [0, 1, 0])))}
    assert reasons["default/small"].startswith("kept here: n0 has no room for it")


def test_without_an_objective_no_pod_goes_where_the_planner_did_not_send_it(
    swap: Callable[..., Problem], node: Make
) -> None:
    prepared = prepare(swap(node("n2", 7.5, 7.5)))
    assert executable(prepared, _outcome(prepared, [0, 1, 0])).order == ()
    wanted = executable(prepared, _outcome(prepared, [0, 1, 0], lambda at: (float((at[1:] == [0, 1]).sum()),)))
    assert wanted.order == (2, 1)
    assert wanted.choice.at.tolist() == [0, 1, 2]


def _outcome(
    prepared: PreparedProblem, at: list[int], worth: Callable[[Ints], tuple[float, ...]] | None = None
) -> Outcome:
    choice = Choice(np.array(at), prepared.movable, {})
    return Outcome(choice, choice, worth=worth)


def test_a_pending_pod_goes_elsewhere_when_its_node_is_not_freed(pod: Make, node: Make, problem: Make) -> None:
    pods = [pod("a", 8, node="n0"), pod("b", 8, node="n1"), pod("new", 5)]
    prepared = prepare(problem(pods, [node("n0"), node("n1"), node("n2", 5, 5)]))
    found = executable(prepared, _outcome(prepared, [1, 0, 0]))
    assert (found.order, found.choice.at.tolist()) == ((2,), [0, 1, 2])


def test_it_keeps_away_from_its_replicas(pod: Make, node: Make, problem: Make) -> None:
    """n2 would be less loaded than n3."""
    pods = [
        pod("a", 8, node="n0"),
        pod("b", 8, node="n1"),
        pod("new", 5, workload="web"),
        pod("old", 1, node="n2", workload="web"),
        pod("other", 2, node="n3"),
    ]
    prepared = prepare(problem(pods, [node(f"n{at}") for at in range(4)]))
    at = executable(prepared, _outcome(prepared, [1, 0, 0, 2, 3])).choice.at
    names = {each.key: prepared.arrays.nodes[end].name for each, end in zip(prepared.arrays.pods, at, strict=True)}
    assert names["default/new"] == "n3"


def test_nobody_arrives_where_a_ring_keeps_the_load(pod: Make, node: Make, problem: Make) -> None:
    """`guest` fits on n0 by requests, but only with `a` gone it is not crowded there."""
    pods = [
        pod("a", 8, request=(6, 6), node="n0"),
        pod("b", 1, request=(6, 6), node="n1"),
        pod("guest", 4, request=(1, 1), node="n2"),
    ]
    prepared = prepare(problem(pods, [node("n0"), node("n1"), node("n2")]))
    assert executable(prepared, _outcome(prepared, [1, 0, 0])).order == (2,)
    found = executable(prepared, _outcome(prepared, [1, 0, 0], lambda _: (0.0,)))
    assert found.order == ()
    assert found.choice.given_up[2] == "kept here: n0 stays crowded, because pods that should leave it cannot"


def test_a_possible_move_waits_where_only_that_order_works(pod: Make, node: Make, problem: Make) -> None:
    """x is possible at once, but takes the room that y needs before z can leave."""
    pods = [pod("x", 4, node="n2"), pod("y", 4, node="n0"), pod("z", 6, node="n1")]
    arrays = arrays_of(problem(pods, [node("n0", 6, 6), node("n1"), node("n2")]))
    assert order_moves(arrays, [0, 1, 2], np.array([1, 1, 0])).in_order == (1, 2, 0)


def test_the_verifier_refuses_a_ring(swap: Callable[..., Problem]) -> None:
    """In the end all of them have room."""
    problem = swap()
    moves = [
        PlannedMove("default/sad", "uid-sad", "n0", "n1", 1, ("",)),
        PlannedMove("default/small", "uid-small", "n1", "n0", 1, ("",)),
    ]
    found = certify(problem, moves, [], [])
    assert (
        "default/sad: at its turn n1 has no room: requests of cpu add up to 15, allocatable is 10" in found.violations
    )
    assert list(_late_moves(problem, moves, [])) == ["default/sad"]


def test_part_of_a_matching_that_is_not_worth_it_is_not_taken() -> None:
    """Here the two moves that are possible would be better than nothing by accident: the matching adds overload. With
    inertia moves are weighed one by one, so this is about the matching without."""
    problem = full_problem(1541, 8)
    found = _plan("stable", replace(problem, options=replace(problem.options, only_if_better=True, inertia=0.0)))
    assert any(note.startswith("matching of the whole cluster dropped: it would add overload") for note in found.notes)
