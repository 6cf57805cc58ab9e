"""Bad problems get an error that names the object; good ones become shares, sorted by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from matching.array_types import NOWHERE
from matching.model.arrays import arrays_of, movable
from matching.plan import Plan
from matching.problem import Node, Pod, Problem, ProblemError, Scope

Make = Callable[..., Any]
NAN, INF = float("nan"), float("inf")


def test_shares_of_the_largest_node_in_order_of_name(pod: Make, node: Make, problem: Make) -> None:
    arrays = arrays_of(problem([pod("b", 2, 5, node="y"), pod("a", 4, 1)], [node("y", 4, 20), node("x", 8, 10)]))
    assert [each.name for each in arrays.nodes] == ["x", "y"]
    assert arrays.usage.tolist() == [[0.5, 0.25], [0.05, 0.25]]
    assert arrays.allocatable.tolist() == [[1.0, 0.5], [0.5, 1.0]]
    assert arrays.current.tolist() == [NOWHERE, 1]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"usage": (NAN, 1)}, "pod default/web: usage of cpu is nan"),
        ({"peak": (1, INF)}, "pod default/web: peak of memory is inf"),
        ({"request": (-1, 1)}, "pod default/web: request of cpu is -1"),
        ({"usage": (1,)}, "pod default/web: usage has 1 amounts, the problem has 2 axes"),
    ],
)
def test_wrong_pods(wrong: dict[str, Any], message: str, pod: Make, node: Make, problem: Make) -> None:
    with pytest.raises(ProblemError, match=message):
        arrays_of(problem([pod("web", **wrong)], [node("n")]))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"cpu": NAN}, "node n: allocatable of cpu is nan"),
        ({"background": (0, -1)}, "node n: background of memory is -1"),
        ({"background": (0,)}, "node n: background has 1 amounts"),
        ({"cpu": 0}, "node n: allocatable cpu is 0 on a ready, schedulable node"),
        ({"max_pods": -1}, "node n: max_pods is -1"),
    ],
)
def test_wrong_nodes(wrong: dict[str, Any], message: str, node: Make, problem: Make) -> None:
    with pytest.raises(ProblemError, match=message):
        arrays_of(problem([], [node("n", **wrong)]))


@pytest.mark.parametrize("excuse", [{"ready": False}, {"unschedulable": True}])
def test_an_empty_node_that_takes_no_pods_is_no_error(excuse: dict[str, bool], node: Make, problem: Make) -> None:
    assert arrays_of(problem([], [node("n", 0, 0, **excuse), node("m")])).allocatable[0].tolist() == [1.0, 0.0]


def test_a_node_without_any_of_a_special_resource_is_no_error(plan: Callable[[Problem], Plan]) -> None:
    plain = Pod("p", "u", usage=(1, 0), request=(1, 0), peak=(1, 0))
    special = Pod("q", "v", usage=(1, 1), request=(1, 1), peak=(1, 1))
    nodes = (Node("n", (4.0, 0.0)), Node("big", (8.0, 2.0)))
    found = plan(Problem(("cpu", "gpu"), (plain, special), nodes))
    assert {move.pod: move.target for move in found.moves} == {"p": "n", "q": "big"}


def test_duplicates(pod: Make, node: Make, problem: Make) -> None:
    with pytest.raises(ProblemError, match="pod 'default/a' occurs 2 times"):
        arrays_of(problem([pod("a"), replace(pod("a"), uid="other")], []))
    with pytest.raises(ProblemError, match="pod uid 'uid-a' occurs 2 times"):
        arrays_of(problem([pod("a"), replace(pod("b"), uid="uid-a")], []))
    with pytest.raises(ProblemError, match="node 'n' occurs 2 times"):
        arrays_of(problem([], [node("n"), node("n")]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"headroom": 1.0}, "headroom is 1.0"),
        ({"headroom": NAN}, "headroom is nan"),
        ({"inertia": -0.1}, "inertia is -0.1"),
        ({"relief": INF}, "relief is inf"),
        ({"max_moves": -1}, "max_moves is -1"),
    ],
)
def test_wrong_options(options: dict[str, Any], message: str, problem: Make) -> None:
    with pytest.raises(ProblemError, match=message):
        arrays_of(problem([], [], **options))


def test_scopes(pod: Make, node: Make, problem: Make) -> None:
    pods = [
        pod("fixed", node="n", fixed="DaemonSet"),
        pod("gone", node="elsewhere"),
        pod("happy", node="n"),
        pod("pending"),
        pod("unhappy", node="n", happy=False),
    ]
    arrays = arrays_of(problem(pods, [node("n")]))
    assert movable(arrays, Scope.CLUSTER).tolist() == [False, False, True, True, True]
    assert movable(arrays, Scope.UNHAPPY).tolist() == [False, False, False, True, True]
    assert movable(arrays, Scope.PENDING).tolist() == [False, False, False, True, False]


def test_nothing_at_all_is_a_problem_with_an_empty_plan(problem: Make, plan: Callable[[Problem], Plan]) -> None:
    found = plan(problem([], []))
    assert (found.moves, found.stays, found.unplaced, found.certificate.feasible) == ((), (), (), True)


def test_pods_without_any_node_are_unplaced(pod: Make, problem: Make, plan: Callable[[Problem], Plan]) -> None:
    found = plan(problem([pod("a")], []))
    assert found.unplaced[0].reason == "fits on none of 0 nodes: there are none"
