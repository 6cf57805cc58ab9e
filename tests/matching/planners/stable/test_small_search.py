"""Where a stable matching need not exist: on small cases one is found where there is one, else the fewest pairs."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from matching.plan import BlockingCause, Plan, PlannedMove, Stay
from matching.planners.stable.planner import StablePlanner
from matching.planners.stable.serial_choice import choice_for_all
from matching.planners.stable.small_search import count_blocking, refused_by_inter_pod, with_fewer_blocking_pairs
from matching.planning.prepared import prepare
from matching.problem import (
    HostPort,
    Node,
    Options,
    Pod,
    PodTerm,
    Problem,
    Requirement,
    Rules,
    Selector,
    Spread,
)
from matching.verify import certify
from matching.verify.blocking import blocking_pairs

Make = Callable[..., Any]
Where = dict[str, str | None]
examples = settings(max_examples=20, deadline=None)
seeds = st.integers(0, 2**31)


def _about(app: str) -> Selector:
    return Selector((Requirement("app", "In", (app,)),))


def _rules(pick: Random) -> Rules:
    other, over = _about(pick.choice("ab")), pick.choice(["host", "zone"])
    return pick.choice(
        [
            Rules(),
            Rules(pod_anti_affinity=(PodTerm(over, other),)),
            Rules(pod_affinity=(PodTerm(over, other),)),
            Rules(spread=(Spread(over, other),)),
            Rules(ports=(HostPort(80),)),
        ]
    )


def _instance(seed: int) -> Problem:
    """Four running pods on three nodes; peaks are small, so that only requests and inter-pod constraints bind."""
    pick = Random(seed)
    nodes = tuple(
        Node(f"n{at}", (pick.randint(3, 9), 100), labels={"host": f"n{at}", "zone": pick.choice("xy")})
        for at in range(3)
    )
    pods = tuple(
        Pod(
            key=f"d/p{at}",
            uid=f"u{at}",
            usage=(pick.randint(0, 5), pick.randint(0, 50)),
            request=(pick.randint(1, 3), 1),
            peak=(0.01, 0.01),
            node=f"n{pick.randint(0, 2)}",
            happy=pick.random() < 0.8,
            rules=_rules(pick),
            labels={"app": pick.choice("ab")},
        )
        for at in range(4)
    )
    options = Options(inertia=pick.choice([0.0, 0.3]), soft_weight=0.0, only_if_better=False)
    return Problem(("cpu", "memory"), pods, nodes, options)


def _placements(problem: Problem) -> Iterator[Where]:
    names = [node.name for node in problem.nodes]
    for nodes in itertools.product(names, repeat=len(problem.pods)):
        yield {pod.key: node for pod, node in zip(problem.pods, nodes, strict=True)}


def _pairs(problem: Problem, where: Where) -> int:
    return blocking_pairs(problem, where, 1).count


def _can_be_reached(problem: Problem, where: Where) -> bool:
    """By the certificate, in some order of the moves."""
    moving = [pod for pod in problem.pods if where[pod.key] != pod.node]
    stays = [Stay(pod.key, pod.uid, pod.node or "", "") for pod in problem.pods if where[pod.key] == pod.node]
    for order in itertools.permutations(moving):
        moves = [PlannedMove(pod.key, pod.uid, pod.node, where[pod.key] or "", 1, ()) for pod in order]
        if not certify(problem, moves, stays, []).violations:
            return True
    return False


@examples
@given(seeds)
def test_the_fewest_blocking_pairs_of_all_placements(ends: Callable[[Plan], Where], seed: int) -> None:
    problem = _instance(seed)
    plan = StablePlanner().plan(problem)
    left = plan.certificate.blocking_pairs
    assert plan.certificate.violations == ()
    assert left == _pairs(problem, ends(plan))
    for where in _placements(problem) if left else ():
        assert _pairs(problem, where) >= left or not _can_be_reached(problem, where)


@examples
@given(seeds)
def test_the_planners_own_count_is_the_certificates(seed: int) -> None:
    problem = _instance(seed)
    prepared = prepare(problem)
    names = [node.name for node in prepared.arrays.nodes]
    at = np.array(list(itertools.product(range(3), repeat=4)))[seed % 9 :: 9]
    counts = count_blocking(prepared, prepared.movable, at)
    for row, placed in enumerate(at):
        count = int(counts.certain[row])
        for pod, wants in counts.inter_pod_pairs.items():
            count += sum(
                not refused_by_inter_pod(prepared, prepared.movable, placed, pod, int(n))
                for n in np.flatnonzero(wants[row])
            )
        where = {pod.key: names[node] for pod, node in zip(prepared.arrays.pods, placed.tolist(), strict=True)}
        assert count == _pairs(problem, where)


def test_it_finds_what_serial_choice_misses() -> None:
    """Over many cases; which ones is of no importance."""
    better = stable = 0
    for seed in range(120):
        prepared = prepare(_instance(seed))
        choice = choice_for_all(prepared, prepared.movable)
        if choice is None:
            continue
        found = with_fewer_blocking_pairs(prepared, prepared.movable, choice)
        if (found.at != choice.at).any():
            names = [node.name for node in prepared.arrays.nodes]
            where: Where = {p.key: names[n] for p, n in zip(prepared.arrays.pods, found.at.tolist(), strict=True)}
            better += 1
            stable += _pairs(prepared.problem, where) == 0
    assert better >= 4
    assert stable >= 2


def test_pairs_that_no_placement_resolves_are_listed_by_cause(pod: Make, node: Make, problem: Make) -> None:
    """The hunter wants to be where the prey is, the prey where the hunter is not: there is no rest."""
    both = {"labels": {"host": "n0"}}, {"labels": {"host": "n1"}}
    hunter = pod("hunter", 1, node="n0", labels={"app": "hunter"})
    prey = pod("prey", 2, node="n1", labels={"app": "prey"})
    hunter = replace(hunter, rules=Rules(pod_affinity=(PodTerm("host", _about("prey")),)))
    prey = replace(prey, rules=Rules(pod_anti_affinity=(PodTerm("host", _about("hunter")),)))
    nodes = [node("n0", 4, 4, **both[0]), node("n1", 8, 8, **both[1])]
    plan = StablePlanner().plan(problem([hunter, prey], nodes, inertia=0.0, only_if_better=False))
    assert plan.certificate.feasible
    causes = {pair.cause for pair in plan.certificate.blocking}
    assert causes <= {BlockingCause.BETWEEN_PODS}
    assert plan.certificate.blocking_pairs == min(
        _pairs(problem([hunter, prey], nodes, inertia=0.0), where)
        for where in _reached(problem([hunter, prey], nodes, inertia=0.0))
    )


def _reached(problem: Problem) -> Iterator[Where]:
    return (where for where in _placements(problem) if _can_be_reached(problem, where))


def test_nobody_is_left_out_with_the_fewest_pairs(pod: Make, node: Make, problem: Make) -> None:
    """Had the first two chosen, the third would fit nowhere: one of them has to do without the node it prefers."""
    pods = [
        pod("a", 3, request=(2, 1), peak=(0.1, 0.1), node="big"),
        pod("b", 2, request=(2, 1), peak=(0.1, 0.1), node="big"),
        pod("c", 1, request=(4, 1), peak=(0.1, 0.1), node="small"),
    ]
    nodes = [node("big", 4, 10), node("small", 4, 4)]
    built = problem(pods, nodes, inertia=0.0, only_if_better=False)
    plan = StablePlanner().plan(built)
    assert plan.certificate.feasible
    assert plan.certificate.blocking_pairs == min(_pairs(built, where) for where in _reached(built))
