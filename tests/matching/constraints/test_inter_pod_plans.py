"""Plans of problems that are full of inter-pod constraints: feasible by the certificate and by the plain reading."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matching.plan import BlockingCause, PlannedMove
from matching.planners.stable.planner import StablePlanner
from matching.problem import Problem, Scope
from matching.registry import load_planner
from matching.verify import certify

SEEDS = st.integers(0, 10**9)


@settings(max_examples=300, deadline=None)
@given(seed=SEEDS, scope=st.sampled_from(list(Scope)), most=st.sampled_from([None, 1, 2]))
def test_every_move_passes_at_its_turn_and_nobody_is_worse_off(
    seed: int,
    scope: Scope,
    most: int | None,
    inter_pod_problem: Callable[..., Problem],
    slow_scheduler: Callable[..., Any],
) -> None:
    problem = inter_pod_problem(seed, pods=9)
    problem = replace(problem, options=replace(problem.options, scope=scope, max_moves=most))
    plan = StablePlanner().plan(problem)
    assert plan.certificate.feasible, plan.certificate.violations
    plain = slow_scheduler(problem)
    for move in plan.moves:
        assert plain.allows(move.pod, move.target), move
        plain.at[move.pod] = move.target


@settings(max_examples=300, deadline=None)
@given(seed=SEEDS, choice=st.integers(0, 10**6))
def test_the_certificate_objects_exactly_where_the_plain_reading_does(
    seed: int, choice: int, inter_pod_problem: Callable[..., Problem], slow_scheduler: Callable[..., Any]
) -> None:
    problem = inter_pod_problem(seed)
    pod = problem.pods[choice % len(problem.pods)]
    node = problem.nodes[choice // 7 % len(problem.nodes)]
    if pod.node == node.name:
        return
    found = certify(problem, [PlannedMove(pod.key, pod.uid, pod.node, node.name, 1, ())], (), ()).violations
    objects = any("at its turn" in each for each in found)
    assert objects == (not slow_scheduler(problem).allows(pod.key, node.name)), found


@settings(max_examples=150, deadline=None)
@given(seed=SEEDS)
def test_blocking_pairs_that_are_left_are_of_pods_that_rules_between_pods_are_about(
    seed: int, inter_pod_problem: Callable[..., Problem]
) -> None:
    plan = StablePlanner().plan(inter_pod_problem(seed))
    causes = {pair.cause for pair in plan.certificate.blocking}
    assert BlockingCause.NO_STABLE_MATCHING not in causes


@pytest.mark.parametrize("seed", [191, 194, 206])
def test_moves_that_no_order_makes_possible_are_given_up_and_said(
    seed: int, inter_pod_problem: Callable[..., Problem]
) -> None:
    plan = StablePlanner().plan(inter_pod_problem(seed, pods=24))
    assert plan.certificate.feasible
    assert any("no order of the moves lets them go" in note for note in plan.notes)


@pytest.mark.parametrize("name", ["balance", "genetic", "greedy", "latency", "refine"])
def test_every_planner_keeps_inter_pod_constraints(name: str, inter_pod_problem: Callable[..., Problem]) -> None:
    planner = load_planner(name)
    for seed in range(12):
        plan = planner.plan(inter_pod_problem(seed, pods=9))
        assert plan.certificate.feasible, plan.certificate.violations
