"""Every search of every planner ends, by its own construction: no deadline stands around it here.

Steps are counted, not seconds. A step is one look at the room or the loads of the nodes, which the body of every loop
takes. `make test-searches` runs 5,000 clusters for each planner.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from functools import wraps
from typing import Any

import pytest

from matching.model.ledger import Ledger
from matching.planners import function
from matching.planners.balance import search
from matching.planners.balance.move_filter import MoveFilter
from matching.planners.balance.state import BalanceState, MoveCosts
from matching.planners.genetic.evolution import Trial
from matching.planners.stable_paper import _TakenPods
from matching.planning.budget import Budget
from matching.planning.load_balancing import _MoveGains
from matching.planning.move_order import _MoveSequence
from matching.problem import Problem
from matching.registry import known_planners, load_planner
from matching.testing.random_problems import problem_with_pod_rules, random_problem, uneven_problem

CLUSTERS = int(os.environ.get("REMATCH_SEARCH_CLUSTERS", "30"))
"""For each planner."""
STEPS = 10_000
"""For each pair of a pod and a node. Far above what a search needs (the most seen is below 700), far below a hang."""

PARAMETERS: dict[str, dict[str, object]] = {
    "function": {"path": "a_module:scatter"},
    "genetic": {"population": 12, "generations": 8},
    "network": {"axis": "cpu"},
}
STEP_METHODS: dict[type, tuple[str, ...]] = {
    Ledger: ("put", "take", "fits", "fits_on", "has_room_on"),
    Budget: ("allows", "may_leave"),
    BalanceState: ("changes", "swap_changes", "heat"),
    MoveFilter: ("allows",),
    Trial: ("sigma",),
    _TakenPods: ("take",),
    _MoveGains: ("best",),
    _MoveSequence: ("_has_room", "_do"),
}


class _Steps:
    def __init__(self) -> None:
        self.left = 0

    def counted(self, method: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(method)
        def step(*args: Any, **kwargs: Any) -> Any:
            self.left -= 1
            assert self.left >= 0, f"the search does not end: too many calls of {method.__qualname__}"
            return method(*args, **kwargs)

        return step


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> _Steps:
    steps = _Steps()
    for kind, names in STEP_METHODS.items():
        for name in names:
            monkeypatch.setattr(kind, name, steps.counted(getattr(kind, name)))
    return steps


@pytest.fixture(autouse=True)
def _user_function(monkeypatch: pytest.MonkeyPatch) -> None:
    """Called here and not in a process of its own: there are very many calls."""

    def call(_path: str, pods: list[Any], nodes: list[Any], _seconds: float) -> dict[str, str]:
        return _scatter(pods, nodes)

    monkeypatch.setattr(function, "call_in_process", call)


def _scatter(pods: list[Any], nodes: list[Any]) -> dict[str, str]:
    return {pod["name"]: nodes[at % len(nodes)]["name"] for at, pod in enumerate(pods)}


def _cluster(seed: int) -> Problem:
    pick = random.Random(seed)
    make = (uneven_problem, random_problem, problem_with_pod_rules)[seed % 3]
    return make(seed, pick.randint(3, 12), pick.randint(2, 6))


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", known_planners())
def test_every_search_ends(name: str, steps: _Steps) -> None:
    planner = load_planner(name, PARAMETERS.get(name, {}))
    for seed in range(CLUSTERS):
        problem = _cluster(seed)
        steps.left = STEPS * len(problem.pods) * len(problem.nodes)
        plan = planner.plan(problem)
        assert len(plan.moves) + len(plan.stays) + len(plan.unplaced) == len(problem.pods)


def test_a_search_that_does_not_end_is_noticed(steps: _Steps) -> None:
    problem = uneven_problem(0)
    steps.left = 5
    with pytest.raises(AssertionError, match="does not end"):
        load_planner("balance", {}).plan(problem)


def test_every_move_of_the_balancing_descent_lowers_its_total(monkeypatch: pytest.MonkeyPatch) -> None:
    """`balance` once did not end, because the second move of a round counted on the mean before the first."""
    move = search._DescentRound._move

    def checked(self: Any, row: int, source: int) -> bool:
        costs: MoveCosts = self._costs
        before = costs.total(self._state)
        made = move(self, row, source)
        assert not made or costs.total(self._state) < before
        return made

    monkeypatch.setattr(search._DescentRound, "_move", checked)
    planner = load_planner("balance", {})
    for seed in range(8):
        planner.plan(uneven_problem(seed))
