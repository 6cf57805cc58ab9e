"""What is kept between cycles, or worked out for many pods at once, changes no plan."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matching.array_types import NOWHERE
from matching.model import pod_columns as module
from matching.planners.stable.planner import StablePlanner
from matching.planners.stable.weighed_placement import WeighedPlacement
from matching.planning.expectation import Expectation
from matching.planning.prepared import prepare
from matching.problem import Pod, Preference, Problem, Scope
from matching.serialization import plan_to_json
from matching.testing.random_problems import problem_with_pod_rules, random_problem, uneven_problem

KINDS: tuple[Callable[..., Problem], ...] = (uneven_problem, problem_with_pod_rules, random_problem)
SCOPES = (Scope.CLUSTER, Scope.UNHAPPY, Scope.AFFECTED)


def changed(pod: Pod, pick: Random) -> Pod:
    factor = pick.choice((0.3, 0.9, 1.1, 2.0))
    used = tuple(factor * amount for amount in pod.usage)
    return replace(
        pod,
        usage=used,
        peak=tuple(max(pair) for pair in zip(pod.peak, used, strict=True)),
        happy=pick.random() < 0.5,
        fixed=pick.choice(("", "", pod.fixed)),
    )


def next_problem(problem: Problem, pick: Random) -> Problem:
    """A few pods have changed, one may be gone, and one may have come. The others are the very same values."""
    pods = list(problem.pods)
    for _ in range(pick.randint(1, max(1, len(pods) // 8))):
        at = pick.randrange(len(pods))
        pods[at] = changed(pods[at], pick)
    if pick.random() < 0.3 and len(pods) > 8:
        del pods[pick.randrange(len(pods))]
    if pick.random() < 0.3:
        like = pick.choice(pods)
        name = f"{like.key}-{pick.getrandbits(32):08x}"
        pods.append(replace(like, key=name, uid=name))
    return replace(problem, pods=tuple(pods))


def built_anew(problem: Problem) -> Problem:
    """Equal, but no pod is the same value, so that nothing can be taken over."""
    return replace(problem, pods=tuple(replace(pod) for pod in problem.pods))


@settings(max_examples=10)
@given(st.sampled_from(KINDS), st.integers(0, 10_000), st.sampled_from(SCOPES))
def test_plans_with_kept_columns_are_those_of_problems_built_anew(
    kind: Callable[..., Problem], seed: int, scope: Scope
) -> None:
    pick = Random(seed)
    problem = kind(seed, pods=14, nodes=4)
    problem = replace(problem, options=replace(problem.options, scope=scope))
    planner, taken_over = StablePlanner(), 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_last", None)
        for _ in range(3):
            problem = next_problem(problem, pick)
            before = module._last
            kept = planner.plan(problem)
            taken_over += before is not None and any(id(pod) in before.position for pod in problem.pods)
            with pytest.MonkeyPatch.context() as alone:
                alone.setattr(module, "_last", None)
                anew = planner.plan(built_anew(problem))
            assert plan_to_json(kept) == plan_to_json(anew)
    assert taken_over


@pytest.mark.parametrize("preference", list(Preference))
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(12))
def test_moves_that_are_weighed_together_are_those_weighed_alone(
    kind: Callable[..., Problem], preference: Preference, seed: int
) -> None:
    problem = kind(seed, pods=24, nodes=6)
    prepared = prepare(replace(problem, options=replace(problem.options, preference=preference)))
    placement = WeighedPlacement(prepared, Expectation(prepared.arrays), prepared.arrays.current)
    running = np.flatnonzero(prepared.arrays.current != NOWHERE).tolist()
    together = placement.best_moves(running)
    assert together == [placement.best_moves([pod])[0] for pod in running]
