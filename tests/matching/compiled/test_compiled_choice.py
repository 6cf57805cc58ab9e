"""The compiled loops and numpy give the same answer, bit for bit, and that answer is serial choice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from random import Random
from types import ModuleType
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loadtests.benchmarks.planner_instances import Mix, realistic
from matching.compilation import warm_up
from matching.compiled import loading
from matching.planners.stable.planner import StablePlanner
from matching.planners.stable.serial_choice import serial_choice
from matching.planning.move_order import by_value, order_moves
from matching.planning.outcome import Choice
from matching.planning.prepared import PreparedProblem, prepare
from matching.planning.reasons.replay import ranks_of
from matching.problem import Availability, Node, Options, Pod, Problem, Scope

Problems = Callable[[int, int], st.SearchStrategy[Problem]]

entry: ModuleType = pytest.importorskip("matching.compiled.entry", exc_type=ImportError)


@contextmanager
def compiled(yes: bool) -> Iterator[None]:
    with patch.object(loading, "_loaded", [entry] if yes else []), patch.object(loading, "LARGE", 1 << 60):
        yield


def both(problem: Problem) -> list[tuple[PreparedProblem, Choice]]:
    found = []
    for yes in (False, True):
        with compiled(yes):
            prepared = prepare(replace(problem))
            found.append((prepared, serial_choice(prepared, prepared.movable, prepared.arrays.current)))
    return found


def assert_same(problem: Problem) -> None:
    (slow_case, slow), (quick_case, quick) = both(problem)
    assert slow.at.tolist() == quick.at.tolist()
    assert slow.headroom == quick.headroom
    moving = (slow.at != slow_case.arrays.current) & (slow.at >= 0)
    for part in ("rank", "nearer_than_current", "there", "here"):
        answers = []
        for yes, prepared in ((False, slow_case), (True, quick_case)):
            with compiled(yes):
                answers.append(np.asarray(getattr(ranks_of(prepared, slow, moving), part))[moving].tolist())
        assert answers[0] == answers[1], part


def sized(seed: int, options: Options) -> Problem:
    """Tight, with ties: few sizes, some nodes alike."""
    pick = Random(seed)
    nodes = tuple(
        Node(f"n{at:03}", (pick.choice([8.0, 8.0, 16.0]), pick.choice([16.0, 24.0])), max_pods=pick.choice([4, 30]))
        for at in range(pick.randint(1, 70))
    )
    pods = []
    for at in range(pick.randint(1, 200)):
        usage = (pick.choice([0.1, 0.5, pick.uniform(0.05, 1.5)]), pick.choice([0.2, pick.uniform(0.1, 3.0)]))
        pods.append(
            Pod(
                f"d/p{at:03}",
                f"{at}",
                usage,
                request=(usage[0] * pick.choice([0.0, 1.0, 1.3]), usage[1]),
                peak=(usage[0] * pick.uniform(1.0, 2.0), usage[1] * pick.choice([1.0, 1.4])),
                node=pick.choice([None, *(node.name for node in nodes)]),
                happy=pick.random() > 0.05,
            )
        )
    return Problem(("cpu", "memory"), tuple(pods), nodes, options)


OPTIONS = st.builds(
    Options,
    scope=st.sampled_from([Scope.CLUSTER, Scope.UNHAPPY, Scope.PENDING]),
    inertia=st.sampled_from([0.0, 0.05, 0.2, 1 / 3]),
    headroom=st.sampled_from([0.0, 0.15, 0.5]),
    availability=st.sampled_from(Availability),
)


@settings(max_examples=120, deadline=None)
@given(seed=st.integers(0, 2**31), options=OPTIONS)
def test_compiled_and_numpy_choose_alike(seed: int, options: Options) -> None:
    assert_same(sized(seed, options))


@settings(max_examples=100, deadline=None)
@given(data=st.data(), availability=st.sampled_from(Availability))
def test_compiled_and_numpy_choose_alike_whatever_the_rules(
    data: st.DataObject, availability: Availability, random_problems: Problems
) -> None:
    problem = data.draw(random_problems(12, 5))
    assert_same(replace(problem, options=replace(problem.options, availability=availability)))


@pytest.mark.parametrize("inertia", [0.2, 0.0])
def test_compiled_and_numpy_agree_on_a_cluster_with_rules_between_pods(inertia: float) -> None:
    problem = realistic(Mix(600, 60, workloads=60, anti_affinity=0.2, unhappy=12), Options(inertia=inertia))
    assert any(pod.rules.pod_anti_affinity for pod in problem.pods)
    assert_same(problem)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**31), options=OPTIONS)
def test_plans_are_equal_with_and_without_the_compiled_loops(seed: int, options: Options) -> None:
    problem, plans = sized(seed, options), []
    for yes in (False, True):
        with compiled(yes):
            plans.append(StablePlanner().plan(replace(problem)))
    assert plans[0] == plans[1]


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**31), options=OPTIONS)
def test_moves_are_put_into_the_same_order(seed: int, options: Options) -> None:
    prepared = prepare(sized(seed, options))
    pick = Random(seed)
    at = np.array([pick.randrange(len(prepared.arrays.nodes)) for _ in prepared.arrays.pods])
    pods = by_value(prepared.arrays, prepared.ranking, np.flatnonzero(at != prepared.arrays.current))
    with compiled(False):
        slow = order_moves(prepared.arrays, pods, at)
    with compiled(True):
        quick = order_moves(prepared.arrays, pods, at)
    assert slow == quick
    assert sorted((*quick.in_order, *quick.stuck)) == sorted(pods)


def test_after_a_warm_up_nothing_is_left_to_compile() -> None:
    with compiled(True):
        assert warm_up() is not None
        kernels = [getattr(entry, name) for name in entry.__all__ if name != "NOTHING"]
        before = [len(kernel.nopython_signatures) for kernel in kernels]
        for options in (Options(), Options(inertia=0, only_if_better=False), Options(availability=Availability.AFTER)):
            StablePlanner().plan(realistic(Mix(400, 60, workloads=60, anti_affinity=0.2, unhappy=2), options))
        assert [len(kernel.nopython_signatures) for kernel in kernels] == before


def test_without_numba_there_is_nothing_to_warm_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "_loaded", [])
    monkeypatch.setattr(loading, "find_spec", lambda _: None)
    loading.load.cache_clear()
    assert warm_up() is None
    assert loading.kernels(1 << 20, 1 << 20) is None
    loading.load.cache_clear()


def test_a_small_problem_does_not_load_the_kernels_and_a_large_one_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "_loaded", [])
    loading.load.cache_clear()
    assert loading.kernels(1_000, 50) is None
    assert loading.kernels(150_000, 5_000) is entry
    assert loading.kernels(1, 1) is entry
    loading.load.cache_clear()
