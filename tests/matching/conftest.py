"""Small problems by hand and at random. Amounts are small whole numbers, so that tests can count exactly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import strategies as st

from matching.plan import Plan
from matching.planners.stable import StablePlanner
from matching.problem import Node, Options, Pod, Problem, Rules, Scope, Taint, Toleration

AXES = ("cpu", "memory")

_SELECTIONS = (
    Rules(),
    Rules(),
    Rules(),
    Rules(node_selector=(("zone", "a"),)),
    Rules((Toleration(operator="Exists"),)),
)


def _pod(name: str, cpu: float = 1, memory: float = 1, **more: Any) -> Pod:
    """Usage, request and peak are the same unless told apart."""
    amounts = {"usage": (cpu, memory), "request": (cpu, memory), "peak": (cpu, memory)}
    return Pod(key=f"default/{name}", uid=f"uid-{name}", **{**amounts, **more})


def _node(name: str, cpu: float = 10, memory: float = 10, **more: Any) -> Node:
    return Node(name=name, allocatable=(cpu, memory), **more)


def _problem(pods: list[Pod], nodes: list[Node], **options: Any) -> Problem:
    return Problem(AXES, tuple(pods), tuple(nodes), Options(**options))


def _random_node(name: str, pick: Random) -> Node:
    return Node(
        name=name,
        allocatable=(pick.randint(4, 12), pick.randint(4, 12)),
        max_pods=pick.choice([2, 4, 110]),
        labels=pick.choice([{"zone": "a"}, {"zone": "b"}]),
        taints=pick.choice([(), (), (Taint("k", "NoSchedule"),), (Taint("k", "NoExecute"),)]),
        unschedulable=pick.random() < 0.15,
        ready=pick.random() < 0.85,
        measured=pick.random() < 0.85,
        background=pick.choice([(), (0, 0), (1, 1)]),
    )


def _random_pod(name: str, homes: list[str | None], pick: Random) -> Pod:
    return Pod(
        key=f"default/{name}",
        uid=f"uid-{name}",
        usage=(pick.randint(0, 5), pick.randint(0, 5)),
        request=(pick.randint(0, 5), pick.randint(0, 5)),
        peak=(pick.randint(0, 5), pick.randint(0, 5)),
        node=pick.choice(homes),
        priority=pick.randint(0, 2),
        happy=pick.random() < 0.6,
        fixed=pick.choice(["", "", "", "DaemonSet"]),
        rules=pick.choice(_SELECTIONS),
    )


def _random_problem(seed: int, pods: int, nodes: int) -> Problem:
    pick = Random(seed)
    names = [f"n{at}" for at in range(nodes)]
    homes = [None, "gone", *names, *names]
    options = Options(
        scope=pick.choice(list(Scope)),
        inertia=pick.choice([0.0, 0.2, 2.0]),
        headroom=pick.choice([0.0, 0.25, 0.5]),
        max_moves=pick.choice([None, None, 0, 1, 2]),
        only_if_better=pick.random() < 0.5,
    )
    return Problem(
        AXES,
        tuple(_random_pod(f"p{at}", homes, pick) for at in range(pods)),
        tuple(_random_node(name, pick) for name in names),
        options,
    )


@pytest.fixture(scope="session")
def pod() -> Callable[..., Pod]:
    return _pod


@pytest.fixture(scope="session")
def node() -> Callable[..., Node]:
    return _node


@pytest.fixture(scope="session")
def problem() -> Callable[..., Problem]:
    return _problem


@pytest.fixture(scope="session")
def plan() -> Callable[[Problem], Plan]:
    return StablePlanner().plan


@pytest.fixture(scope="session")
def matched() -> Callable[[Problem], Plan]:
    """The stable matching itself, whether it is worth its moves or not."""

    def plan_anyway(problem: Problem) -> Plan:
        return StablePlanner().plan(replace(problem, options=replace(problem.options, only_if_better=False)))

    return plan_anyway


@pytest.fixture(scope="session")
def random_problems() -> Callable[[int, int], st.SearchStrategy[Problem]]:
    """Anything goes: fixed and lost pods, overfull nodes, taints, nodes that are not ready or not measured."""

    def up_to(most_pods: int, most_nodes: int) -> st.SearchStrategy[Problem]:
        return st.builds(_random_problem, st.integers(0, 2**31), st.integers(0, most_pods), st.integers(1, most_nodes))

    return up_to


@pytest.fixture(scope="session")
def ends() -> Callable[[Plan], dict[str, str | None]]:
    """Where each pod of a plan ends."""

    def of(plan: Plan) -> dict[str, str | None]:
        found: dict[str, str | None] = {each.pod: None for each in plan.unplaced}
        found.update({each.pod: each.node for each in plan.stays})
        found.update({each.pod: each.target for each in plan.moves})
        return found

    return of
