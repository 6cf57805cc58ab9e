"""Small problems by hand and at random. Amounts are small whole numbers, so that tests can count exactly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import strategies as st

from matching.plan import Plan
from matching.planners.stable import StablePlanner
from matching.problem import Node, Options, Pod, Problem
from matching.testing import ends_of, small_problem

AXES = ("cpu", "memory")


def _pod(name: str, cpu: float = 1, memory: float = 1, **more: Any) -> Pod:
    """Usage, request and peak are the same unless told apart."""
    amounts = {"usage": (cpu, memory), "request": (cpu, memory), "peak": (cpu, memory)}
    return Pod(key=f"default/{name}", uid=f"uid-{name}", **{**amounts, **more})


def _node(name: str, cpu: float = 10, memory: float = 10, **more: Any) -> Node:
    return Node(name=name, allocatable=(cpu, memory), **more)


def _problem(pods: list[Pod], nodes: list[Node], **options: Any) -> Problem:
    return Problem(AXES, tuple(pods), tuple(nodes), Options(**options))


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
        return st.builds(small_problem, st.integers(0, 2**31), st.integers(0, most_pods), st.integers(1, most_nodes))

    return up_to


@pytest.fixture(scope="session")
def ends() -> Callable[[Plan], dict[str, str | None]]:
    return ends_of
