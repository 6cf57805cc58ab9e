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
inertias = st.sampled_from([0.0, 0.2, 2.0])


def _instance(seed: int, pods: int, nodes: int, most: int, inertia: float) -> Problem:
    """Free of rules; requests are small, so that only the quotas bind."""
    pick = Random(seed)
    current_nodes: list[str | None] = [None, *(f"n{at}" for at in range(nodes))]
    return Problem(
        ("cpu", "memory"),
        tuple(
            Pod(
                key=f"p{at}",
                uid=f"u{at}",
                usage=(pick.randint(0, most), pick.randint(0, most)),
                request=(0.5, 0.5),
                peak=(pick.randint(1, most), pick.randint(1, most)),
                node=pick.choice(current_nodes),
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


def _wishes(problem: Problem, pod: Pod, chosen: Placement) -> list[str]:
    """The pod's list, best first, when the pods in `chosen` have chosen and all others are where they were."""
    largest = [max(node.allocatable[at] for node in problem.nodes) for at in AXES]
    fixed = [p for p in problem.pods if p.fixed]
    counted = chosen if problem.options.inertia > 0 else {}
    placement: Placement = {p.key: counted.get(p.key, p.node) for p in problem.pods}
    loads = {node.name: _load(node, _on(problem, placement, node.name)) for node in problem.nodes}
    current = next((node for node in problem.nodes if node.name == pod.node), None)
    relieved_node = (
        current is not None and _load(current, _pods_now(problem, current)) > 1 - HEADROOM > loads[current.name]
    )

    def key(node: Node) -> tuple[int, float, str]:
        used = [sum(p.usage[at] for p in fixed if p.node == node.name) for at in AXES]
        room = [max(0, node.allocatable[at] - used[at]) for at in AXES]
        square = sum(Fraction(int(room[at]) - int(pod.usage[at]), int(largest[at])) ** 2 for at in AXES)
        distance = sqrt(square) - (problem.options.inertia if pod.happy and pod.node == node.name else 0)
        if pod.happy or pod.node is None:
            return 0, round(distance, 9), node.name
        if pod.node == node.name:
            return -1 if relieved_node else 1, 0, node.name
        relieved = _load(node, [*_on(problem, placement, node.name), pod]) <= loads[pod.node] - RELIEF
        return 0 if relieved else 2, round(distance, 9), node.name

    return [node.name for node in sorted(problem.nodes, key=key)]


def _pods_now(problem: Problem, node: Node) -> list[Pod]:
    return [pod for pod in problem.pods if pod.node == node.name]


def _load(node: Node, pods: list[Pod]) -> Fraction:
    return max(Fraction(sum(int(p.peak[at]) for p in pods), int(node.allocatable[at])) for at in AXES)


def _fits(problem: Problem, pod: Pod, name: str, others: list[Pod]) -> bool:
    """With headroom, which a happy pod does not need on its current node unless inertia is 0."""
    node = next(each for each in problem.nodes if each.name == name)
    at_home = pod.happy and pod.node == name and problem.options.inertia > 0
    share = 1 if at_home else 1 - HEADROOM
    return all(int(node.allocatable[at]) * share > sum(int(p.peak[at]) for p in [*others, pod]) for at in AXES)


def _on(problem: Problem, where: Placement, name: str) -> list[Pod]:
    return [pod for pod in problem.pods if where.get(pod.key) == name]


def _fixed(problem: Problem) -> Placement:
    return {pod.key: pod.node for pod in problem.pods if pod.fixed}


def _serial_choice(problem: Problem) -> Placement | None:
    """None when somebody does not fit with the full headroom."""
    where = _fixed(problem)
    for pod in _ranked(problem):
        listed = _wishes(problem, pod, where)
        where[pod.key] = next((n for n in listed if _fits(problem, pod, n, _on(problem, where, n))), None)
        if where[pod.key] is None:
            return None
    return where


def _blocking(problem: Problem, where: Placement) -> Iterator[tuple[str, str]]:
    """Pods are looked at in rank order, so `above` always holds those that rank higher, and what cannot move."""
    above = _fixed(problem)
    for pod in _ranked(problem):
        listed, has = _wishes(problem, pod, above), where[pod.key]
        for name in listed[: listed.index(has)] if has is not None else listed:
            if _fits(problem, pod, name, _on(problem, above, name)):
                yield pod.key, name
        above[pod.key] = has


def _quotas_kept(problem: Problem, where: Placement) -> bool:
    """Everybody fits where it is beside those that rank higher, and what cannot move."""
    above = _fixed(problem)
    for pod in _ranked(problem):
        has = where[pod.key]
        if has is not None and not _fits(problem, pod, has, _on(problem, above, has)):
            return False
        above[pod.key] = has
    return True


def _stable_placements(problem: Problem) -> Iterator[Placement]:
    ranked = _ranked(problem)
    choices: list[str | None] = [None, *(node.name for node in problem.nodes)]
    for taken in itertools.product(choices, repeat=len(ranked)):
        where = {**_fixed(problem), **{pod.key: name for pod, name in zip(ranked, taken, strict=True)}}
        if _quotas_kept(problem, where) and not any(_blocking(problem, where)):
            yield where


@settings(max_examples=300, deadline=None)
@given(seed=seeds, pods=st.integers(1, 12), nodes=st.integers(1, 5), inertia=inertias)
def test_same_as_serial_choice(seed: int, pods: int, nodes: int, inertia: float, matched: Planning, ends: Ends) -> None:
    problem = _instance(seed, pods, nodes, 3, inertia)
    expected = _serial_choice(problem)
    assume(expected is not None)
    result = matched(problem)
    assert ends(result) == expected
    assert result.certificate.blocking_pairs == 0
    assert result.certificate.feasible


@settings(max_examples=80, deadline=None)
@given(seed=seeds, pods=st.integers(1, 5), nodes=st.integers(1, 3), inertia=inertias)
def test_the_one_stable_matching_of_brute_force(
    seed: int, pods: int, nodes: int, inertia: float, matched: Planning, ends: Ends
) -> None:
    problem = _instance(seed, pods, nodes, 4, inertia)
    assume(_serial_choice(problem) is not None)
    stable = list(_stable_placements(problem))
    assert stable == [ends(matched(problem))]


@settings(max_examples=300, deadline=None)
@given(seed=seeds, pods=st.integers(1, 8), nodes=st.integers(1, 4), inertia=inertias)
def test_certificate_finds_exactly_the_pairs_of_the_definition(
    seed: int, pods: int, nodes: int, inertia: float, plan: Planning, ends: Ends
) -> None:
    """Also on plans that were held back or narrowed and on crowded clusters."""
    problem = _instance(seed, pods, nodes, 5, inertia)
    result = plan(problem)
    expected = set(_blocking(problem, ends(result)))
    assert {(pair.pod, pair.node) for pair in result.certificate.blocking} == expected
