"""The verifier finds what is wrong with plans made by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from matching.plan import BlockingCause, PlannedMove, Stay, Unplaced
from matching.problem import Rules, Scope
from matching.verify import certify

Make = Callable[..., Any]


def _move(pod: str, source: str | None, target: str) -> PlannedMove:
    return PlannedMove(f"default/{pod}", f"uid-{pod}", source, target, 1, ())


def _stay(pod: str, node: str) -> Stay:
    return Stay(f"default/{pod}", f"uid-{pod}", node, "")


def _unplaced(pod: str) -> Unplaced:
    return Unplaced(f"default/{pod}", f"uid-{pod}", "")


@pytest.mark.parametrize(
    ("pod_more", "node_more", "options", "message"),
    [
        ({"fixed": "DaemonSet"}, {}, {}, "may not be moved"),
        ({"strategy": "surge"}, {}, {}, "moves by evict, but its strategy is surge"),
        ({"rules": Rules(node_selector=(("zone", "x"),))}, {}, {}, "may not run on m"),
        ({}, {"ready": False}, {}, "may not run on m"),
        ({}, {"unschedulable": True}, {}, "may not run on m"),
        ({}, {"measured": False}, {}, "no fresh metrics"),
        ({"request": (11, 1)}, {}, {}, "requests of cpu add up to 11"),
        ({}, {"max_pods": 0}, {}, "at most 0 are allowed"),
        ({}, {}, {"max_moves": 0}, "the budget is 0"),
        ({}, {}, {"scope": Scope.UNHAPPY}, "not in the scope unhappy"),
        ({}, {}, {"scope": Scope.PENDING}, "not in the scope pending"),
    ],
)
def test_forbidden_moves(
    pod_more: dict[str, Any],
    node_more: dict[str, Any],
    options: dict[str, Any],
    message: str,
    pod: Make,
    node: Make,
    problem: Make,
) -> None:
    case = problem([pod("a", node="n", **pod_more)], [node("n"), node("m", **node_more)], **options)
    found = certify(case, [_move("a", "n", "m")], [], [])
    assert not found.feasible
    assert message in "; ".join(found.violations)


def test_every_pod_is_named_once_where_it_is(pod: Make, node: Make, problem: Make) -> None:
    case = problem([pod("a", node="n"), pod("b", node="n"), pod("c", node="n"), pod("d")], [node("n"), node("m")])
    moves = [_move("a", "m", "n"), _move("a", "n", "m"), _move("x", "n", "m"), _move("d", None, "nowhere")]
    text = "; ".join(certify(case, moves, [_stay("b", "m")], [_unplaced("c")]).violations)
    for expected in (
        "default/a: named 2 times",
        "default/a: moves from m, but is on n",
        "default/a: moves to the node it is on",
        "default/x: not a pod of the problem",
        "target nowhere is not a node",
        "default/b: cannot stay on m, it is on n",
        "default/c: runs on n and would lose its node",
    ):
        assert expected in text
    assert "default/d: missing from the plan" in "; ".join(certify(case, [], [], []).violations)


def test_an_overfull_node_that_receives_nothing_is_no_violation(pod: Make, node: Make, problem: Make) -> None:
    case = problem([pod("a", 8, node="n"), pod("b", 8, node="n")], [node("n")])
    assert certify(case, [], [_stay("a", "n"), _stay("b", "n")], []).feasible


def test_a_pod_that_prefers_a_free_node_blocks(pod: Make, node: Make, problem: Make) -> None:
    case = problem([pod("a", node="big")], [node("big", 20, 20), node("small", 2, 2)], inertia=0.0)
    found = certify(case, [], [_stay("a", "big")], [], cause=BlockingCause.BUDGET)
    assert [(pair.pod, pair.node, pair.cause) for pair in found.blocking] == [
        ("default/a", "small", BlockingCause.BUDGET)
    ]


def test_inertia_resolves_the_pair(pod: Make, node: Make, problem: Make) -> None:
    case = problem([pod("a", node="big")], [node("big", 20, 20), node("small", 2, 2)], inertia=2.0)
    assert certify(case, [], [_stay("a", "big")], []).blocking_pairs == 0


def test_only_pods_that_rank_lower_make_room(pod: Make, node: Make, problem: Make) -> None:
    """`small` holds one of the two; the one with more CPU use ranks higher."""
    nodes = [node("big", 20, 20), node("small", 4, 4)]
    heavy, light = pod("heavy", 3, node="big"), pod("light", 2, node="small")
    unfair = certify(
        problem([heavy, light], nodes, inertia=0.0), [], [_stay("heavy", "big"), _stay("light", "small")], []
    )
    assert [(pair.pod, pair.node) for pair in unfair.blocking] == [("default/heavy", "small")]
    fair = certify(
        problem([heavy, light], nodes, inertia=0.0),
        [_move("heavy", "big", "small"), _move("light", "small", "big")],
        [],
        [],
    )
    assert fair.blocking_pairs == 0


def test_fixed_pods_do_not_make_room(pod: Make, node: Make, problem: Make) -> None:
    nodes = [node("big", 20, 20), node("small", 4, 4)]
    pods = [pod("heavy", 3, node="big"), pod("light", 2, node="small", fixed="DaemonSet")]
    found = certify(problem(pods, nodes, inertia=0.0), [], [_stay("heavy", "big"), _stay("light", "small")], [])
    assert found.blocking_pairs == 0


def test_a_pair_needs_the_headroom(pod: Make, node: Make, problem: Make) -> None:
    nodes = [node("big", 20, 20), node("small", 4, 4)]
    pods = [pod("a", 3.5, node="big")]
    assert certify(problem(pods, nodes, inertia=0.0), [], [_stay("a", "big")], []).blocking_pairs == 0


def test_an_unhappy_pod_blocks_with_a_clearly_less_loaded_node(pod: Make, node: Make, problem: Make) -> None:
    pods = [pod("a", 4, node="n", happy=False), pod("b", 5, node="n", fixed="DaemonSet")]
    found = certify(problem(pods, [node("m"), node("n")]), [], [_stay("a", "n"), _stay("b", "n")], [])
    assert [(pair.pod, pair.node) for pair in found.blocking] == [("default/a", "m")]


def test_a_pod_left_without_a_node_blocks_wherever_it_fits(pod: Make, node: Make, problem: Make) -> None:
    found = certify(problem([pod("a")], [node("m"), node("n")]), [], [], [_unplaced("a")])
    assert [pair.node for pair in found.blocking] == ["m", "n"]


@pytest.mark.parametrize(("inertia", "happy", "blocks"), [(0.2, True, True), (0.2, False, False), (0.0, True, False)])
def test_a_happy_pod_blocks_with_its_own_node_without_headroom(
    inertia: float, happy: bool, blocks: bool, pod: Make, node: Make, problem: Make
) -> None:
    """It was sent away although the peaks fit on its node, if only just."""
    pods = [pod("a", 4, node="n", happy=happy), pod("b", 5.5, node="n", fixed="DaemonSet")]
    case = problem(pods, [node("m", 40, 40), node("n")], inertia=inertia)
    found = certify(case, [_move("a", "n", "m")], [_stay("b", "n")], [])
    assert [(pair.pod, pair.node) for pair in found.blocking] == ([("default/a", "n")] if blocks else [])


@pytest.mark.parametrize(("inertia", "blocking"), [(0.2, [("default/b", "n")]), (0.0, [])])
def test_an_unhappy_pod_sees_which_pods_left_before_it(
    inertia: float, blocking: list[tuple[str, str]], pod: Make, node: Make, problem: Make
) -> None:
    """When the first has left, the node is cured, so the second prefers it."""
    pods = [pod("a", 5, node="n", happy=False), pod("b", 4, node="n", happy=False)]
    case = problem(pods, [node("m", 30, 30), node("n")], inertia=inertia)
    found = certify(case, [_move("a", "n", "m"), _move("b", "n", "m")], [], [])
    assert [(pair.pod, pair.node) for pair in found.blocking] == blocking


def test_all_pairs_are_counted_and_the_first_named(pod: Make, node: Make, problem: Make) -> None:
    nodes = [node("a", 2000, 2000), *(node(f"n{at:02}", 1000, 1000) for at in range(20))]
    pods = [pod(f"p{at}", node="a") for at in range(10)]
    found = certify(problem(pods, nodes, inertia=0.0), [], [_stay(f"p{at}", "a") for at in range(10)], [])
    assert found.blocking_pairs == 200
    assert len(found.blocking) == 100
    assert (found.blocking[0].pod, found.blocking[0].node) == ("default/p0", "n00")
    assert found.blocking[-1].node == "n09"


def test_a_pod_that_both_moves_and_loses_its_node_frees_its_room_once(pod: Make, node: Make, problem: Make) -> None:
    """It would make room for `b` if it left n twice."""
    pods = [pod("a", 4, node="n"), pod("rock", 4, node="n"), pod("b", 8, node="m")]
    case = problem(pods, [node("n"), node("m", 20, 20)])
    moves, stays, unplaced = [_move("a", "n", "m"), _move("b", "m", "n")], [_stay("rock", "n")], [_unplaced("a")]
    expected = "default/b: at its turn n has no room: requests of cpu add up to 12, allocatable is 10"
    assert expected in certify(case, moves, stays, unplaced).violations
