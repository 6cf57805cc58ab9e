"""One contract for every registered planner; a planner is let off exactly what it says it waives."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matching.plan import Plan, Planner, Promise
from matching.planners import function
from matching.planners.stable.planner import StablePlanner
from matching.problem import Node, Problem, Role, Scope
from matching.registry import known_planners, load_planner
from matching.serialization import problem_from_json
from matching.testing import CHECKS, check_planner
from matching.testing.random_problems import AXES
from matching.verify.node_rules import may_come

PARAMETERS: dict[str, dict[str, object]] = {
    "function": {"path": "a_module:to_the_emptiest"},
    "genetic": {"population": 12, "generations": 8},
}


def _to_the_emptiest(pods: list[Any], nodes: list[Any]) -> dict[str, str]:
    """A user's function in KSE's form, wild enough to ask for what cannot be."""
    emptiest = min(nodes, key=lambda node: (node.metrics["cpu"], node.name))
    return {pod["name"]: emptiest["name"] for pod in pods}


@pytest.fixture(scope="module", autouse=True)
def _user_function() -> Iterator[None]:
    """Called here and not in a process of its own, which `test_function.py` is about: there are hundreds of calls."""

    def call(_path: str, pods: list[Any], nodes: list[Any], _seconds: float) -> dict[str, str]:
        return _to_the_emptiest(pods, nodes)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(function, "call_in_process", call)
        yield


def _waived(planner: Planner) -> frozenset[Promise]:
    """Our function above is deterministic, although nobody can promise that of a user's."""
    return planner.waives - {Promise.DETERMINISTIC} if planner.name == "function" else planner.waives


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("name", known_planners())
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**31))
def test_every_planner_keeps_its_promises(name: str, check: str, seed: int) -> None:
    planner = load_planner(name, PARAMETERS.get(name, {}))
    assert planner.name == name
    waives = _waived(planner)
    if CHECKS[check].promise in waives:
        pytest.skip(f"{name} waives {CHECKS[check].promise}")
    if (name, check) == ("function", "empty cluster"):
        pytest.skip("whether a user's function bears an empty cluster is the user's business")
    objective = OBJECTIVES[name] if check.startswith("never worse") else None
    check_planner(planner, objective=objective, waives=waives, only=[check], seed=seed, problems=1)


@dataclass(frozen=True)
class _Breaking:
    """The default planner with its plans changed afterwards."""

    change: Callable[[Plan, Problem], Plan]
    name: ClassVar[str] = "stable"
    waives: ClassVar[frozenset[Promise]] = frozenset()

    def plan(self, problem: Problem) -> Plan:
        return self.change(StablePlanner().plan(problem), problem)


def _ignores_budget(_: Plan, problem: Problem) -> Plan:
    options = replace(problem.options, max_moves=None, inertia=0.0, only_if_better=False)
    return StablePlanner().plan(replace(problem, options=options))


def _fails(plan: Plan, problem: Problem) -> Plan:
    raise KeyError("no such node")


@pytest.mark.parametrize(
    ("check", "change", "message"),
    [
        ("feasible", lambda plan, _: replace(plan, stays=plan.stays[1:]), "names every pod once"),
        ("feasible", lambda plan, _: replace(plan, planner="other"), "names itself in the plan"),
        ("deterministic", lambda plan, problem: replace(plan, notes=(problem.pods[0].key,)), "whatever the order"),
        ("input untouched", _fails, r"without an error, not KeyError\('no such node'\)"),
        ("budgets", _ignores_budget, "keeps max_moves"),
        (
            "reasons",
            lambda plan, _: replace(plan, stays=tuple(replace(stay, reason="") for stay in plan.stays)),
            "pods that stay have a reason",
        ),
    ],
)
def test_a_broken_promise_is_named_with_its_problem(
    check: str, change: Callable[[Plan, Problem], Plan], message: str
) -> None:
    def changed(plan: Plan, problem: Problem) -> Plan:
        return change(plan, problem) if len(problem.pods) > 3 else plan

    with pytest.raises(AssertionError, match=message) as failure:
        check_planner(_Breaking(changed), only=[check], problems=100)
    problem = problem_from_json(str(failure.value).partition("\nproblem: ")[2].encode())
    assert len(problem.pods) > 3


def test_what_is_waived_is_not_checked() -> None:
    lazy = _Breaking(lambda plan, _: replace(plan, planner="other"))
    check_planner(lazy, only=["feasible"], waives={Promise.FEASIBLE})


def test_a_third_party_planner_is_checked_in_one_line() -> None:
    check_planner(StablePlanner, problems=3)


Where = Mapping[str, str | None]


def _load(problem: Problem, where: Where, node: Node, axis: int, what: str = "usage") -> float:
    """As a share of the node's room; where there is none, of the largest node's."""
    here = sum(getattr(pod, what)[axis] for pod in problem.pods if where[pod.key] == node.name)
    background = node.background[axis] if node.background else 0.0
    largest = max(each.allocatable[axis] for each in problem.nodes) or 1.0
    return float(here + background) / (node.allocatable[axis] or largest)


def _in_play(problem: Problem, axes: tuple[str, ...]) -> list[Node]:
    """Nodes of known capacity that a pod may leave or go to; a pod of which something is not known may not."""
    scope, names = problem.options.scope, {node.name for node in problem.nodes}
    pods = [
        pod
        for pod in problem.pods
        if not pod.fixed
        and pod.node in names
        and not set(axes) & set(pod.unknown)
        and (scope is Scope.CLUSTER or (scope in (Scope.UNHAPPY, Scope.AFFECTED) and not pod.happy))
    ]
    return [
        node
        for node in problem.nodes
        if not set(axes) & set(node.unknown)
        and any(pod.node == node.name or (node.measured and may_come(pod.rules, node)) for pod in pods)
    ]


def _cpu_spread(problem: Problem, where: Where) -> float:
    loads = [_load(problem, where, node, 0) for node in _in_play(problem, ("cpu",))]
    return max(loads) - min(loads) if loads else 0.0


def _network_variance(problem: Problem, where: Where) -> float:
    return _variance([_load(problem, where, node, 2) for node in _in_play(problem, ("network",))])


def _mean_load_deviation(problem: Problem, where: Where) -> float:
    """Genetic weighs all axes alike."""
    loads = [[_load(problem, where, node, axis) for axis in range(3)] for node in _in_play(problem, AXES)]
    return math.sqrt(_variance([sum(load) / 3 for load in loads]))


def _overload(problem: Problem, where: Where) -> float:
    """Peaks above the limit; load where there is no room at all counts as more than full. Where moves have a price, CPU
    is weighed by expected failures instead."""
    options, total = problem.options, 0.0
    priced = options.inertia > 0 and options.scope is not Scope.AFFECTED
    for node, axis in itertools.product(problem.nodes, range(int(priced), 3)):
        share = _load(problem, where, node, axis, "peak")
        if not node.allocatable[axis] and share > 0:
            share += 1
        total += max(0.0, share - (1 - problem.options.headroom))
    return total


def _balance(problem: Problem, where: Where) -> float:
    """Spread and four times the overload; an axis counts on the nodes that have room on it."""
    nodes, total = _in_play(problem, ()), 0.0
    for axis in range(3):
        rooms = [node for node in nodes if node.allocatable[axis]]
        loads = [_load(problem, where, node, axis) for node in rooms] + [0.0] * (len(nodes) - len(rooms))
        total += len(nodes) * _variance(loads)
        peaks = [_load(problem, where, node, axis, "peak") for node in rooms]
        total += 4 * sum(max(0.0, peak - (1 - problem.options.headroom)) ** 2 for peak in peaks)
    return total


def _target_round_trips(problem: Problem, where: Where) -> float:
    """What was measured on the node of each target; a node without a measurement is as far as can be."""
    assert problem.latency is not None
    latency, homes = problem.latency, {pod.key: pod.node for pod in problem.pods}
    known: dict[str | None, float] = {}
    known.update(latency.known)
    for key, measured in latency.last.items():
        if key in homes and key in latency.roles:
            known[homes[key]] = min(known.get(homes[key], math.inf), measured.rtt)
    targets = [
        key for key, role in latency.roles.items() if role is Role.TARGET and key in latency.last and key in homes
    ]
    return sum(latency.last[key].rtt if where[key] == homes[key] else known.get(where[key], 1e9) for key in targets)


def _variance(values: list[float]) -> float:
    mean = sum(values) / len(values) if values else 0.0
    return sum((value - mean) ** 2 for value in values) / max(1, len(values))


OBJECTIVES: dict[str, Callable[[Problem, Where], float]] = {
    "stable": _overload,
    "balance": _balance,
    "greedy": _cpu_spread,
    "refine": _cpu_spread,
    "genetic": _mean_load_deviation,
    "network": _network_variance,
    "latency": _target_round_trips,
    "latency-published": _target_round_trips,
}
