"""What every plan keeps, whatever the problem."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterable
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from matching.plan import BlockingCause, Plan
from matching.problem import Pod, Problem, Scope

Problems = Callable[[int, int], st.SearchStrategy[Problem]]
Planning = Callable[[Problem], Plan]
examples = settings(max_examples=200, deadline=None)

Ends = Callable[[Plan], dict[str, str | None]]


def _running_moves(plan: Plan) -> int:
    return sum(move.source is not None for move in plan.moves)


@examples
@given(data=st.data())
def test_feasible_with_everyone_accounted_for(data: st.DataObject, random_problems: Problems, plan: Planning) -> None:
    problem = data.draw(random_problems(8, 4))
    result = plan(problem)
    assert result.certificate.violations == ()
    named = [each.pod for part in (result.moves, result.stays, result.unplaced) for each in part]
    assert sorted(named) == sorted(pod.key for pod in problem.pods)


@examples
@given(data=st.data())
def test_who_may_not_move_does_not_and_who_runs_keeps_a_node(
    data: st.DataObject, random_problems: Problems, plan: Planning, ends: Ends
) -> None:
    problem = data.draw(random_problems(8, 4))
    where = ends(plan(problem))
    for pod in problem.pods:
        if pod.fixed or pod.node == "gone":
            assert where[pod.key] == pod.node
        elif pod.node is not None:
            assert where[pod.key] is not None


@examples
@given(data=st.data())
def test_order_of_input_and_repetition_do_not_matter(
    data: st.DataObject, random_problems: Problems, plan: Planning
) -> None:
    problem = data.draw(random_problems(8, 4))
    first = plan(problem)
    pods, nodes = list(problem.pods), list(problem.nodes)
    shuffle = random.Random(data.draw(st.integers(0, 99)))
    shuffle.shuffle(pods)
    shuffle.shuffle(nodes)
    assert plan(replace(problem, pods=tuple(pods), nodes=tuple(nodes))) == first == plan(problem)


@examples
@given(data=st.data())
def test_input_is_untouched(data: st.DataObject, random_problems: Problems, plan: Planning) -> None:
    problem = data.draw(random_problems(8, 4))
    before = copy.deepcopy(problem)
    plan(problem)
    assert problem == before


@examples
@given(data=st.data())
def test_budget_and_scope_are_kept(data: st.DataObject, random_problems: Problems, plan: Planning) -> None:
    problem = data.draw(random_problems(8, 4))
    result = plan(problem)
    pods = {pod.key: pod for pod in problem.pods}
    if problem.options.max_moves is not None:
        assert _running_moves(result) <= problem.options.max_moves
    for move in result.moves:
        if problem.options.scope is Scope.PENDING:
            assert move.source is None
        if problem.options.scope is Scope.UNHAPPY and move.source is not None:
            assert not pods[move.pod].happy


@examples
@given(data=st.data())
def test_blocking_pairs_have_a_stated_cause(data: st.DataObject, random_problems: Problems, plan: Planning) -> None:
    """Serial choice leaves none; what is left was held back by the budget, by the gate or to keep somebody's node."""
    problem = data.draw(random_problems(8, 4))
    result = plan(problem)
    causes = {pair.cause for pair in result.certificate.blocking}
    assert BlockingCause.NO_STABLE_MATCHING not in causes
    if problem.options.scope is Scope.PENDING:
        assert result.certificate.blocking_pairs == 0


@examples
@given(data=st.data())
def test_never_worse_than_doing_nothing(data: st.DataObject, random_problems: Problems, plan: Planning) -> None:
    """By whole peaks. Where moves have a price, CPU counts by what pods are expected to fail instead: peaks of the past
    do not keep a pod on a node where it starves now."""
    problem = data.draw(random_problems(8, 4))
    problem = replace(problem, options=replace(problem.options, only_if_better=True))
    alone = plan(replace(problem, options=replace(problem.options, scope=Scope.PENDING)))
    result = plan(problem)
    assert len(result.unplaced) <= len(alone.unplaced) or _most_important(problem, result) < _most_important(
        problem, alone
    )
    if _running_moves(result) and len(result.unplaced) == len(alone.unplaced):
        priced = problem.options.inertia > 0 and problem.options.scope is not Scope.AFFECTED
        axes = range(int(priced), len(problem.axes))
        assert _overload(problem, result, axes) <= _overload(problem, alone, axes) + 1e-9
        if priced:
            assert result.benefit is not None
            assert result.benefit.expected <= result.benefit.without


@examples
@given(data=st.data())
def test_pending_pods_are_placed_where_their_requests_fit(
    data: st.DataObject, random_problems: Problems, plan: Planning, ends: Ends
) -> None:
    """Peaks never prevent it. Without rules in the way, an unplaced pod fits nowhere beside what is there."""
    problem = data.draw(random_problems(6, 3))
    problem = replace(problem, pods=tuple(replace(pod, priority=0) for pod in problem.pods))
    where = ends(plan(problem))
    for pod in problem.pods:
        if where[pod.key] is None and not pod.fixed:
            assert not any(_could_take(problem, where, pod, name) for name in _open_nodes(problem))


def _open_nodes(problem: Problem) -> list[str]:
    return [node.name for node in problem.nodes if node.ready and not node.unschedulable and not node.taints]


def _could_take(problem: Problem, where: dict[str, str | None], pod: Pod, name: str) -> bool:
    node = next(each for each in problem.nodes if each.name == name)
    if pod.rules.node_selector and node.labels.get("zone") != "a":
        return False
    there = [each for each in problem.pods if where[each.key] == name]
    room = [total - sum(each.request[at] for each in there) for at, total in enumerate(node.allocatable)]
    return len(there) < node.max_pods and all(
        need == 0 or need <= left for need, left in zip(pod.request, room, strict=True)
    )


def _most_important(problem: Problem, plan: Plan) -> int:
    priorities = {pod.key: pod.priority for pod in problem.pods if not pod.fixed}
    return max((priorities[each.pod] for each in plan.unplaced if each.pod in priorities), default=-1)


def _overload(problem: Problem, plan: Plan, axes: Iterable[int]) -> float:
    where: dict[str, str | None] = {each.pod: each.node for each in plan.stays}
    where.update({each.pod: each.target for each in plan.moves})
    total = 0.0
    for node in problem.nodes:
        for axis in axes:
            room = node.allocatable[axis]
            background = node.background[axis] if node.background else 0.0
            peaks = sum(pod.peak[axis] for pod in problem.pods if where.get(pod.key) == node.name)
            total += max(0.0, (background + peaks) / room - (1 - problem.options.headroom))
    return total
