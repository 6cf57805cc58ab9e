"""Budgets: how many running pods a plan may disturb, in all, per workload, per node and per namespace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matching.model.arrays import arrays_of
from matching.plan import Plan, PlannedMove
from matching.planning.budget import Budget, budget_text, movers, within_budget
from matching.problem import Node, Options, Pod, Problem, ProblemError
from matching.verify.feasibility import budget_violations

Pods = Callable[..., Pod]
Nodes = Callable[..., Node]
Problems = Callable[..., Problem]
KINDS = ("max_moves", "max_moves_per_workload", "max_moves_per_node", "max_moves_per_namespace")


def _many(pod: Pods, node: Nodes, problem: Problems, **options: Any) -> Problem:
    """Six unhappy pods of two workloads and two namespaces on one node that is far too small, three empty nodes."""
    pods = [
        replace(pod(f"p{at}", cpu=3, node="a", happy=False, workload=f"w{at % 2}"), key=f"team{at % 3 // 2}/p{at}")
        for at in range(6)
    ]
    return problem(pods, [node(name) for name in "abcd"], **options)


def test_a_move_is_counted_in_every_group_it_touches(pod: Pods, node: Nodes, problem: Problems) -> None:
    many = _many(pod, node, problem, max_moves=9, max_moves_per_workload=1)
    budget = Budget(arrays_of(many))
    assert budget.allows(0, 1)
    budget.spend(0, 1)
    same = [at for at, each in enumerate(arrays_of(many).pods) if each.workload == arrays_of(many).pods[0].workload]
    same_namespace = [at for at in same if arrays_of(many).pods[at].namespace == arrays_of(many).pods[0].namespace]
    assert not any(budget.allows(at, 2) for at in same_namespace)
    budget.refund(0, 1)
    assert all(budget.allows(at, 2) for at in range(6))


def test_per_node_counts_what_leaves_and_what_enters(pod: Pods, node: Nodes, problem: Problems) -> None:
    pods = [pod("x", node="a"), pod("y", node="b"), pod("z", node="c")]
    budget = Budget(arrays_of(problem(pods, [node(name) for name in "abcd"], max_moves_per_node=1)))
    budget.spend(0, 1)
    assert budget.may_enter().tolist() == [False, False, True, True]
    assert budget.may_leave(np.arange(3)).tolist() == [False, False, True]
    assert not budget.allows(2, 1)
    assert budget.allows(2, 3)


def test_pending_pods_and_staying_cost_nothing(pod: Pods, node: Nodes, problem: Problems) -> None:
    arrays = arrays_of(problem([pod("new"), pod("old", node="a")], [node("a"), node("b")], max_moves=0))
    budget = Budget(arrays)
    assert budget.allows(0, 1)
    assert budget.allows(1, 0)
    assert not budget.allows(1, 1)
    assert within_budget(arrays, np.array([1, 0]))
    assert not within_budget(arrays, np.array([0, 1]))
    assert movers(arrays, np.array([0, 1])).tolist() == [1]


def test_pods_without_a_workload_are_each_their_own(pod: Pods, node: Nodes, problem: Problems) -> None:
    pods = [pod("x", node="a"), pod("y", node="a")]
    arrays = arrays_of(problem(pods, [node("a"), node("b")], max_moves_per_workload=1))
    assert within_budget(arrays, np.array([1, 1]))


@pytest.mark.parametrize("kind", KINDS)
def test_a_budget_below_nothing_is_refused_by_name(kind: str, node: Nodes, problem: Problems) -> None:
    with pytest.raises(ProblemError, match=kind):
        arrays_of(problem([], [node("a")], **{kind: -1}))


def test_words() -> None:
    assert budget_text(Options()) == ""
    assert budget_text(Options(max_moves=1, max_moves_per_node=2)) == "budget of 1 move, 2 moves per node"


@pytest.mark.parametrize(("kind", "most"), [(KINDS[0], 2), (KINDS[1], 1), (KINDS[2], 2), (KINDS[3], 1)])
def test_stable_keeps_each_of_them_and_uses_it(
    kind: str, most: int, pod: Pods, node: Nodes, problem: Problems, plan: Callable[[Problem], Plan]
) -> None:
    """Three moves would relieve the node."""
    many = _many(pod, node, problem, **{kind: most})
    one_workload = tuple(replace(each, workload="w") for each in many.pods)
    found = plan(replace(many, pods=one_workload))
    assert 0 < len(found.moves) < len(plan(_many(pod, node, problem)).moves)
    assert found.certificate.feasible
    assert any("budget" in note for note in found.notes)


@given(data=st.data(), limits=st.tuples(*[st.sampled_from([None, 0, 1, 2])] * 4))
def test_no_plan_of_stable_is_over_any_budget(
    data: st.DataObject,
    limits: tuple[int | None, ...],
    random_problems: Callable[[int, int], st.SearchStrategy[Problem]],
    plan: Callable[[Problem], Plan],
) -> None:
    drawn = data.draw(random_problems(8, 4))
    budgets: dict[str, Any] = dict(zip(KINDS, limits, strict=True))
    problem = replace(drawn, options=replace(drawn.options, **budgets))
    moves = [move for move in plan(problem).moves if move.source is not None]
    total, per_workload, per_node, per_namespace = (limit if limit is not None else 99 for limit in limits)
    ends = Counter(end for move in moves for end in (move.source, move.target))
    assert len(moves) <= min(total, per_namespace)
    assert max(ends.values(), default=0) <= per_node
    assert not moves or per_workload > 0


def test_the_certificate_counts_again(pod: Pods, node: Nodes, problem: Problems) -> None:
    many = _many(
        pod, node, problem, max_moves=1, max_moves_per_workload=1, max_moves_per_node=1, max_moves_per_namespace=1
    )
    moves = [PlannedMove(each.key, each.uid, "a", "b", 1, ()) for each in many.pods]
    found = list(budget_violations(many, moves))
    assert any(text.startswith("plan: 6 moves") for text in found)
    overdrawn = {text.split(":")[0] for text in found if text.startswith("workload")}
    assert overdrawn == {"workload team0/w0", "workload team0/w1"}
    assert {text.split(":")[0] for text in found if text.startswith("node")} == {"node a", "node b"}
    assert any(text.startswith("namespace team0") for text in found)
    placed = [PlannedMove(each.key, each.uid, None, "b", 1, ()) for each in many.pods]
    assert list(budget_violations(many, placed)) == []
