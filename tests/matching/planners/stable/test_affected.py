"""Scope affected: the fewest moves that make the unhappy pods happy, against every placement where there are few."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loadtests.benchmarks.planner_instances import Mix, realistic
from matching.plan import BlockingCause, Plan
from matching.planners.stable.affected_search import HappinessCheck, search_moves
from matching.planners.stable.planner import StablePlanner
from matching.planning.prepared import prepare
from matching.problem import Node, Options, Pod, Problem, Rules, Scope

Make = Callable[..., Any]
Ends = Callable[[Plan], dict[str, str | None]]
Where = dict[str, str]

HEADROOM, RELIEF = Fraction(1, 4), Fraction(1, 20)
ZONE_A = Rules(node_selector=(("zone", "a"),))


def _instance(seed: int) -> Problem:
    """Everybody runs; whole numbers, so that shares are exact fractions."""
    pick = Random(seed)
    names = ["n0", "n1", "n2"]
    pods = tuple(
        Pod(
            key=f"d/p{at}",
            uid=f"u{at}",
            usage=(pick.randint(0, 4), pick.randint(0, 4)),
            request=(pick.randint(0, 4), 1),
            peak=(pick.randint(1, 5), pick.randint(1, 5)),
            node=pick.choice(names),
            happy=pick.random() < 0.6,
            fixed="DaemonSet" if pick.random() < 0.1 else "",
            rules=ZONE_A if pick.random() < 0.2 else Rules(),
        )
        for at in range(pick.randint(1, 6))
    )
    nodes = tuple(
        Node(name, (pick.randint(6, 14), pick.randint(6, 14)), labels={"zone": pick.choice("ab")}) for name in names
    )
    budget = pick.choice([None, None, None, 1, 2])
    options = Options(Scope.AFFECTED, headroom=float(HEADROOM), relief=float(RELIEF), max_moves=budget)
    return Problem(("cpu", "memory"), pods, nodes, options)


class Truth:
    """The definitions once more, in exact fractions."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.nodes = {node.name: node for node in problem.nodes}
        self.now: Where = {pod.key: pod.node or "" for pod in problem.pods}
        self.loads = self._loads(self.now)

    def best(self, *, at_once: bool = False) -> tuple[int, int]:
        """How many of the unhappy pods at most, and with how few moves. The moves can be carried out in some order, or
        all `at_once`."""
        allowed = [where for where in self._placements() if self.allowed(where)]
        allowed.sort(key=lambda where: (-len(self.happy(where)), self.moves(where)))
        found = next(where for where in allowed if at_once or self._reachable(where, self.now))
        return len(self.happy(found)), self.moves(found)

    def _reachable(self, where: Where, now: Where) -> bool:
        """Whether some order of the moves that are left has room for each at its turn."""
        left = [key for key in where if where[key] != now[key]]
        steps = ({**now, key: where[key]} for key in left)
        return not left or any(self._fits(step, now) and self._reachable(where, step) for step in steps)

    def moves(self, where: Where) -> int:
        return sum(where[key] != self.now[key] for key in where)

    def happy(self, where: Where) -> set[str]:
        after = self._loads(where)
        found = set()
        for pod in self.problem.pods:
            before, end = max(self.loads[self.now[pod.key]]), max(after[where[pod.key]])
            if not pod.happy and ((before > 1 - HEADROOM >= end) or end <= before - RELIEF):
                found.add(pod.key)
        return found

    def allowed(self, where: Where) -> bool:
        budget = self.problem.options.max_moves
        if (budget is not None and self.moves(where) > budget) or not self._fits(where, self.now):
            return False
        after = self._loads(where)
        if self._overload(after) > self._overload(self.loads):
            return False
        for pod in self.problem.pods:
            before, end = max(self.loads[self.now[pod.key]]), max(after[where[pod.key]])
            moved = where[pod.key] != self.now[pod.key]
            if moved and end > 1 - HEADROOM and end > before - RELIEF:
                return False
            if not pod.happy and (end >= before + RELIEF or end > 1 - HEADROOM >= before):
                return False
        return True

    def _fits(self, where: Where, before: Where) -> bool:
        """Whether the pods that are not where they were before have room."""
        for pod in self.problem.pods:
            node = self.nodes[where[pod.key]]
            if where[pod.key] == before[pod.key]:
                continue
            there = [each for each in self.problem.pods if where[each.key] == node.name]
            for axis in (0, 1):
                if pod.request[axis] and sum(each.request[axis] for each in there) > node.allocatable[axis]:
                    return False
        return True

    def _placements(self) -> Iterator[Where]:
        pods = self.problem.pods
        choices = [
            [n for n in self.nodes.values() if n.name == p.node or (not p.fixed and _admits(p, n))] for p in pods
        ]
        for nodes in itertools.product(*choices):
            yield {pod.key: node.name for pod, node in zip(pods, nodes, strict=True)}

    def _loads(self, where: Where) -> dict[str, list[Fraction]]:
        return {
            node.name: [
                Fraction(
                    sum(int(p.peak[axis]) for p in self.problem.pods if where[p.key] == node.name),
                    int(node.allocatable[axis]),
                )
                for axis in (0, 1)
            ]
            for node in self.nodes.values()
        }

    def _overload(self, loads: dict[str, list[Fraction]]) -> Fraction:
        return sum((max(Fraction(0), s - 1 + HEADROOM) for shares in loads.values() for s in shares), Fraction(0))


def _admits(pod: Pod, node: Node) -> bool:
    return set(pod.rules.node_selector) <= set(node.labels.items())


def _where(ends: dict[str, str | None]) -> Where:
    return {key: node or "" for key, node in ends.items()}


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 2**31))
def test_as_many_as_possible_with_the_fewest_moves(ends: Ends, seed: int) -> None:
    problem = _instance(seed)
    plan = StablePlanner().plan(problem)
    truth = Truth(problem)
    where = _where(ends(plan))
    assert truth.allowed(where)
    assert (len(truth.happy(where)), truth.moves(where)) == truth.best()
    assert plan.certificate.violations == ()


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 2**31))
def test_the_search_for_large_clusters_is_sound_on_small_ones(seed: int) -> None:
    """Nobody pays, and no move is one too many: without it somebody would not be happy."""
    problem = _instance(seed)
    prepared = prepare(problem)
    at = search_moves(prepared, HappinessCheck(prepared.arrays, prepared.arrays.current))
    names = [node.name for node in prepared.arrays.nodes]
    where = {pod.key: names[node] for pod, node in zip(prepared.arrays.pods, at.tolist(), strict=True)}
    truth = Truth(problem)
    assert truth.allowed(where)
    for key in where:
        if where[key] != truth.now[key]:
            without = {**where, key: truth.now[key]}
            assert not truth.allowed(without) or not truth.happy(without) >= truth.happy(where)


def test_how_often_the_search_for_large_clusters_is_as_good_as_looking_at_everything() -> None:
    as_many = as_few = 0
    for seed in range(100):
        problem = _instance(seed)
        prepared = prepare(problem)
        at = search_moves(prepared, HappinessCheck(prepared.arrays, prepared.arrays.current))
        names = [node.name for node in prepared.arrays.nodes]
        where = {pod.key: names[node] for pod, node in zip(prepared.arrays.pods, at.tolist(), strict=True)}
        truth = Truth(problem)
        many, few = truth.best(at_once=True)
        as_many += len(truth.happy(where)) == many
        as_few += (len(truth.happy(where)), truth.moves(where)) == (many, few)
    assert as_many >= 98
    assert as_few >= 97


def test_a_happy_pod_moves_only_to_make_room(pod: Make, node: Make, problem: Make) -> None:
    """n1 is the only other node for the sad one, and full by requests."""
    pods = [
        pod("sad", 4, node="n0", happy=False, rules=ZONE_A),
        pod("rock", 6, request=(1, 1), node="n0", fixed="DaemonSet"),
        pod("small", 1, request=(7, 7), node="n1"),
        pod("bystander", 3, node="n2"),
    ]
    nodes = [node("n0", labels={"zone": "a"}), node("n1", labels={"zone": "a"}), node("n2", 20, 20)]
    plan = StablePlanner().plan(problem(pods, nodes, scope=Scope.AFFECTED))
    assert {move.pod: move.target for move in plan.moves} == {"default/sad": "n1", "default/small": "n2"}
    small = next(move for move in plan.moves if move.pod == "default/small")
    assert "makes room on n1 for default/sad" in small.reasons[0]
    assert {stay.pod: stay.reason for stay in plan.stays}[
        "default/bystander"
    ] == "happy, and it does not have to make room"
    assert plan.certificate.feasible
    assert {pair.cause for pair in plan.certificate.blocking} <= {BlockingCause.FEWEST_MOVES}


def test_the_plan_says_for_whom_nothing_was_found(pod: Make, node: Make, problem: Make) -> None:
    pods = [pod("sad", 9, node="n0", happy=False), pod("glad", 1, node="n1")]
    plan = StablePlanner().plan(problem(pods, [node("n0"), node("n1", 5, 5)], scope=Scope.AFFECTED))
    assert plan.moves == ()
    assert any("1 of 1 unhappy pod no move" in note and "default/sad" in note for note in plan.notes)
    assert "harms no other pod" in {stay.pod: stay.reason for stay in plan.stays}["default/sad"]


@pytest.mark.parametrize("unhappy", [1, 10])
def test_a_large_cluster_is_hardly_touched(unhappy: int) -> None:
    options = Options(Scope.AFFECTED)
    problem = realistic(Mix(2000, 200, unhappy=unhappy), options)
    plan = StablePlanner().plan(problem)
    assert plan.certificate.feasible
    assert 1 <= len(plan.moves) <= unhappy
    assert not any("no move" in note for note in plan.notes)
    shuffled = replace(problem, pods=problem.pods[::-1], nodes=problem.nodes[::-1])
    assert StablePlanner().plan(shuffled) == plan
