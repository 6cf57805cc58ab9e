"""Against serial choice and brute force, both written from the definitions with exact fractions."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from fractions import Fraction
from math import sqrt
from random import Random

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from matching.plan import Plan
from matching.problem import Node, Options, Pod, Problem

Planning = Callable[[Problem], Plan]
Ends = Callable[[Plan], dict[str, str | None]]
Placement = dict[str, str | None]

HEADROOM = Fraction(1, 4)
RELIEF = Fraction(1, 20)
AXES = range(2)

seeds = st.integers(0, 2**31)


def _instance(seed: int, pods: int, nodes: int, most: int, inertia: float) -> Problem:
    """Free of rules; requests are small, so that only the quotas bind."""
    pick = Random(seed)
    homes: list[str | None] = [None, *(f"n{at}" for at in range(nodes))]
    return Problem(
        ("cpu", "memory"),
        tuple(
            Pod(
                key=f"p{at}",
                uid=f"u{at}",
                usage=(pick.randint(0, most), pick.randint(0, most)),
                request=(0.5, 0.5),
                peak=(pick.randint(1, most), pick.randint(1, most)),
                node=pick.choice(homes),
                priority=pick.randint(0, 1),
                happy=pick.random() < 0.7,
                fixed="DaemonSet" if pick.random() < 0.2 else "",
            )
            for at in range(pods)
        ),
        tuple(Node(f"n{at}", (pick.randint(6, 16), pick.randint(6, 16))) for at in range(nodes)),
        Options(inertia=inertia, headroom=float(HEADROOM), relief=float(RELIEF)),
    )


def _chooses(pod: Pod) -> bool:
    return not pod.fixed


def _ranked(problem: Problem) -> list[Pod]:
    running = sorted((p for p in problem.pods if _chooses(p) and p.node), key=lambda p: (-p.usage[0], p.key))
    pending = [p for p in problem.pods if _chooses(p) and not p.node]
    return running + sorted(pending, key=lambda p: (-p.priority, -p.usage[0], p.key))


def _wishes(problem: Problem, pod: Pod) -> list[str]:
    """The pod's list, best first."""
    largest = [max(node.allocatable[at] for node in problem.nodes) for at in AXES]
    fixed = [p for p in problem.pods if p.fixed]
    loads = {node.name: _load(node, [p for p in problem.pods if p.node == node.name]) for node in problem.nodes}

    def key(node: Node) -> tuple[int, float, str]:
        used = [sum(p.usage[at] for p in fixed if p.node == node.name) for at in AXES]
        room = [max(0, node.allocatable[at] - used[at]) for at in AXES]
        square = sum(Fraction(int(room[at]) - int(pod.usage[at]), int(largest[at])) ** 2 for at in AXES)
        distance = sqrt(square) - (problem.options.inertia if pod.happy and pod.node == node.name else 0)
        if pod.happy or pod.node is None:
            return 0, round(distance, 9), node.name
        if pod.node == node.name:
            return 1, 0, node.name
        there = [p for p in problem.pods if p.node == node.name]
        relieved = _load(node, [*there, pod]) <= loads[pod.node] - RELIEF
        return 0 if relieved else 2, round(distance, 9), node.name

    return [node.name for node in sorted(problem.nodes, key=key)]


def _load(node: Node, pods: list[Pod]) -> Fraction:
    return max(Fraction(sum(int(p.peak[at]) for p in pods), int(node.allocatable[at])) for at in AXES)


def _fits(node: Node, pods: list[Pod]) -> bool:
    return all(int(node.allocatable[at]) * (1 - HEADROOM) > sum(int(p.peak[at]) for p in pods) for at in AXES)


def _on(problem: Problem, where: Placement, name: str) -> list[Pod]:
    return [pod for pod in problem.pods if where.get(pod.key) == name]


def _serial_choice(problem: Problem) -> Placement | None:
    """None when somebody does not fit with the full headroom."""
    nodes = {node.name: node for node in problem.nodes}
    where: Placement = {pod.key: pod.node for pod in problem.pods if pod.fixed}
    for pod in _ranked(problem):
        fitting = (n for n in _wishes(problem, pod) if _fits(nodes[n], [*_on(problem, where, n), pod]))
        where[pod.key] = next(fitting, None)
        if where[pod.key] is None:
            return None
    return where


def _blocks(problem: Problem, where: Placement, wishes: dict[str, list[str]], ranks: dict[str, int]) -> bool:
    nodes = {node.name: node for node in problem.nodes}
    for key, listed in wishes.items():
        pod = next(p for p in problem.pods if p.key == key)
        has = where[key]
        for name in listed[: listed.index(has)] if has is not None else listed:
            above = [p for p in _on(problem, where, name) if p.fixed or ranks[p.key] < ranks[key]]
            if _fits(nodes[name], [*above, pod]):
                return True
    return False


def _quotas_kept(problem: Problem, where: Placement) -> bool:
    return all(
        _fits(node, there) or all(pod.fixed for pod in there)
        for node in problem.nodes
        if (there := _on(problem, where, node.name))
    )


def _stable_placements(problem: Problem) -> Iterator[Placement]:
    ranked = _ranked(problem)
    wishes = {pod.key: _wishes(problem, pod) for pod in ranked}
    ranks = {pod.key: at for at, pod in enumerate(ranked)}
    fixed: Placement = {pod.key: pod.node for pod in problem.pods if pod.fixed}
    choices: list[str | None] = [None, *(node.name for node in problem.nodes)]
    for taken in itertools.product(choices, repeat=len(ranked)):
        where: Placement = {**fixed, **{pod.key: name for pod, name in zip(ranked, taken, strict=True)}}
        if _quotas_kept(problem, where) and not _blocks(problem, where, wishes, ranks):
            yield where


@settings(max_examples=200, deadline=None)
@given(seed=seeds, pods=st.integers(1, 12), nodes=st.integers(1, 5), inertia=st.sampled_from([0.0, 0.2]))
def test_same_as_serial_choice(seed: int, pods: int, nodes: int, inertia: float, matched: Planning, ends: Ends) -> None:
    problem = _instance(seed, pods, nodes, 3, inertia)
    expected = _serial_choice(problem)
    assume(expected is not None)
    result = matched(problem)
    assert ends(result) == expected
    assert result.certificate.blocking_pairs == 0
    assert result.certificate.feasible


@settings(max_examples=60, deadline=None)
@given(seed=seeds, pods=st.integers(1, 5), nodes=st.integers(1, 3))
def test_the_one_stable_matching_of_brute_force(
    seed: int, pods: int, nodes: int, matched: Planning, ends: Ends
) -> None:
    problem = _instance(seed, pods, nodes, 4, 0.0)
    assume(_serial_choice(problem) is not None)
    stable = list(_stable_placements(problem))
    assert stable == [ends(matched(problem))]


@settings(max_examples=100, deadline=None)
@given(seed=seeds, pods=st.integers(1, 6), nodes=st.integers(1, 3))
def test_certificate_counts_no_fewer_and_no_more_pairs_than_the_definition(
    seed: int, pods: int, nodes: int, plan: Planning, ends: Ends
) -> None:
    """Also on plans that were held back and on crowded clusters."""
    problem = _instance(seed, pods, nodes, 5, 0.0)
    result = plan(problem)
    ranked = _ranked(problem)
    wishes = {pod.key: _wishes(problem, pod) for pod in ranked}
    ranks = {pod.key: at for at, pod in enumerate(ranked)}
    assert _blocks(problem, ends(result), wishes, ranks) == (result.certificate.blocking_pairs > 0)
