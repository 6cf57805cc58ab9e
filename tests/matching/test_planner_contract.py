"""One contract for every registered planner; a planner is let off exactly what it says it waives."""

from __future__ import annotations

import copy
import itertools
import math
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from matching.certificate.rules import may_come
from matching.plan import Plan, Planner, Promise
from matching.problem import (
    HostPort,
    Latency,
    Measurement,
    Node,
    Options,
    Pod,
    PodTerm,
    Problem,
    ProblemError,
    Requirement,
    Role,
    Rules,
    Scope,
    Selector,
    Spread,
)
from matching.registry import known_planners, load_planner, planner_class

AXES = ("cpu", "memory", "network")
CONTRACT_MODULE = "rematch_contract_function"
PARAMETERS: dict[str, dict[str, object]] = {
    "function": {"path": f"{CONTRACT_MODULE}:to_the_emptiest"},
    "genetic": {"population": 12, "generations": 8},
}

Problems = Callable[[int, int], st.SearchStrategy[Problem]]
Ends = Callable[[Plan], dict[str, str | None]]
examples = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
every_planner = pytest.mark.parametrize("name", known_planners())


def _to_the_emptiest(pods: list[Any], nodes: list[Any]) -> dict[str, str]:
    """A user's function in KSE's form, wild enough to ask for what cannot be."""
    emptiest = min(nodes, key=lambda node: (node.metrics["cpu"], node.name))
    return {pod["name"]: emptiest["name"] for pod in pods}


@pytest.fixture(scope="module", autouse=True)
def _user_function() -> Iterator[None]:
    module = ModuleType(CONTRACT_MODULE)
    module.to_the_emptiest = _to_the_emptiest  # type: ignore[attr-defined]
    sys.modules[CONTRACT_MODULE] = module
    yield
    del sys.modules[CONTRACT_MODULE]


def _planner(name: str) -> Planner:
    return load_planner(name, PARAMETERS.get(name, {}))


def _promised(name: str, promise: Promise) -> None:
    if promise in planner_class(name).waives:
        pytest.skip(f"{name} waives {promise}")


def _with_more(problem: Problem, seed: int) -> Problem:
    """The same with a network axis, some of it unknown, rules between pods, latency measurements, all budgets."""
    pick = random.Random(seed)

    def network(most: int) -> tuple[float, tuple[str, ...]]:
        return (0.0, ("network",)) if pick.random() < 0.2 else (float(pick.randint(1, most)), ())

    pods: list[Pod] = []
    roles: dict[str, Role] = {}
    last: dict[str, Measurement] = {}
    for pod in problem.pods:
        demand, unknown = network(4)
        usage, request, peak = ((*amounts, extra) for amounts, extra in _triples(pod, demand))
        workload = pick.choice(["", "w1", "w2"])
        rules = _among_pods(pod.rules, pick) if pick.random() < 0.4 else pod.rules
        needs = replace(pod, usage=usage, request=request, peak=peak, unknown=unknown)
        pods.append(replace(needs, workload=workload, labels={"app": workload}, rules=rules))
        if pick.random() < 0.5:
            full = sum(role is Role.TARGET for role in roles.values()) == 2
            roles[pod.key] = Role.PROBE if full else pick.choice(list(Role))
            last[pod.key] = Measurement(pick.randint(1, 9) / 10, pick.randint(0, 9))
    nodes = []
    for node in problem.nodes:
        bandwidth, unknown = network(12)
        background = (*node.background, 0.0) if node.background else ()
        allocatable = (*node.allocatable, bandwidth)
        labels = {**node.labels, "host": node.name}
        nodes.append(replace(node, allocatable=allocatable, background=background, unknown=unknown, labels=labels))
    latency = Latency(
        pick.choice([10.0, 100.0]), 5.0, roles, last, frozenset(pick.sample(sorted(n.name for n in nodes), 1))
    )
    options = replace(
        problem.options,
        max_moves_per_workload=pick.choice([None, None, 1]),
        max_moves_per_node=pick.choice([None, None, 1, 2]),
        max_moves_per_namespace=pick.choice([None, None, 2]),
    )
    return replace(problem, axes=AXES, pods=tuple(pods), nodes=tuple(nodes), options=options, latency=latency)


def _among_pods(rules: Rules, pick: random.Random) -> Rules:
    """The same rules and one about other pods."""
    selector = Selector((Requirement("app", "In", (pick.choice(["w1", "w2"]),)),))
    where = pick.choice(["host", "zone"])
    return pick.choice(
        [
            replace(rules, pod_anti_affinity=(PodTerm(where, selector),)),
            replace(rules, pod_affinity=(PodTerm(where, selector),)),
            replace(rules, spread=(Spread(where, selector),)),
            replace(rules, ports=(HostPort(80),)),
        ]
    )


def _triples(pod: Pod, demand: float) -> list[tuple[tuple[float, ...], float]]:
    return [(pod.usage, demand), (pod.request, 0.0), (pod.peak, demand)]


def _drawn(data: st.DataObject, random_problems: Problems) -> Problem:
    return _with_more(data.draw(random_problems(8, 4)), data.draw(st.integers(0, 2**20)))


def _without_budget(problem: Problem) -> Problem:
    options = {each.name: None for each in fields(Options) if each.name.startswith("max_moves")}
    return replace(problem, options=replace(problem.options, **options))  # type: ignore[arg-type]


@every_planner
def test_says_what_it_is(name: str) -> None:
    planner = _planner(name)
    assert planner.name == name
    assert planner.waives <= set(Promise)
    with pytest.raises((AttributeError, TypeError)):
        planner.anything = 1  # type: ignore[attr-defined]


@every_planner
@examples
@given(data=st.data())
def test_feasible_with_everyone_accounted_for(name: str, data: st.DataObject, random_problems: Problems) -> None:
    _promised(name, Promise.FEASIBLE)
    problem = _drawn(data, random_problems)
    if Promise.BUDGETS in planner_class(name).waives:
        problem = _without_budget(problem)
    plan = _planner(name).plan(problem)
    assert plan.planner == name
    assert plan.certificate.violations == ()
    named = [each.pod for part in (plan.moves, plan.stays, plan.unplaced) for each in part]
    assert sorted(named) == sorted(pod.key for pod in problem.pods)


@every_planner
@examples
@given(data=st.data())
def test_same_answer_every_time_whatever_the_order_of_the_input(
    name: str, data: st.DataObject, random_problems: Problems
) -> None:
    problem = _drawn(data, random_problems)
    first = _planner(name).plan(problem)
    pods, nodes = list(problem.pods), list(problem.nodes)
    shuffle = random.Random(data.draw(st.integers(0, 99)))
    shuffle.shuffle(pods)
    shuffle.shuffle(nodes)
    again = _planner(name).plan(problem)
    other = _planner(name).plan(replace(problem, pods=tuple(pods), nodes=tuple(nodes)))
    if Promise.DETERMINISTIC not in planner_class(name).waives or name == "function":
        assert first == again == other


@every_planner
@examples
@given(data=st.data())
def test_input_is_untouched(name: str, data: st.DataObject, random_problems: Problems) -> None:
    problem = _drawn(data, random_problems)
    before = copy.deepcopy(problem)
    _planner(name).plan(problem)
    assert problem == before


@every_planner
@examples
@given(data=st.data())
def test_budgets_are_kept(name: str, data: st.DataObject, random_problems: Problems) -> None:
    _promised(name, Promise.BUDGETS)
    problem = _drawn(data, random_problems)
    plan = _planner(name).plan(problem)
    pods, options = {pod.key: pod for pod in problem.pods}, problem.options
    running = [move for move in plan.moves if move.source is not None]
    counts: list[tuple[int | None, Counter[str | None]]] = [
        (options.max_moves, Counter("all" for _ in running)),
        (options.max_moves_per_workload, Counter(pods[move.pod].workload or move.pod for move in running)),
        (options.max_moves_per_namespace, Counter(pods[move.pod].namespace for move in running)),
        (options.max_moves_per_node, Counter(end for move in running for end in (move.source, move.target))),
    ]
    for limit, counted in counts:
        assert limit is None or max(counted.values(), default=0) <= limit


@every_planner
@examples
@given(data=st.data())
def test_never_moves_what_may_not_move(name: str, data: st.DataObject, random_problems: Problems) -> None:
    problem = _drawn(data, random_problems)
    plan = _planner(name).plan(problem)
    pods = {pod.key: pod for pod in problem.pods}
    for move in plan.moves:
        pod = pods[move.pod]
        assert not pod.fixed
        assert pod.node == move.source != move.target
        assert pod.node != "gone"
        if pod.node is not None and problem.options.scope is not Scope.CLUSTER:
            assert problem.options.scope is not Scope.PENDING
            may_make_room = problem.options.scope is Scope.AFFECTED and name == "stable"
            assert may_make_room or not pod.happy or Promise.SCOPE in planner_class(name).waives


@every_planner
@examples
@given(data=st.data())
def test_every_move_and_every_stay_has_its_reasons(name: str, data: st.DataObject, random_problems: Problems) -> None:
    problem = _drawn(data, random_problems)
    plan = _planner(name).plan(problem)
    for move in plan.moves:
        assert move.reasons
        assert all(reason.strip() for reason in move.reasons)
        assert move.rank >= 1
        assert {no.node for no in move.rejected} == {node.name for node in problem.nodes} - {move.target}
        assert all(no.reason for no in move.rejected)
    assert all(stay.reason for stay in plan.stays)
    assert all(pod.reason for pod in plan.unplaced)


@every_planner
@examples
@given(data=st.data())
def test_nobody_who_runs_loses_its_node(name: str, data: st.DataObject, random_problems: Problems, ends: Ends) -> None:
    _promised(name, Promise.NOBODY_LEFT_OUT)
    problem = _drawn(data, random_problems)
    where = ends(_planner(name).plan(problem))
    assert all(where[pod.key] is not None for pod in problem.pods if pod.node is not None)


@every_planner
@examples
@given(data=st.data())
def test_never_worse_than_doing_nothing_on_its_own_objective(
    name: str, data: st.DataObject, random_problems: Problems, ends: Ends
) -> None:
    """Without pending pods, so that doing nothing is the placement as it is."""
    _promised(name, Promise.NEVER_WORSE)
    drawn = _drawn(data, random_problems)
    pods = tuple(pod for pod in drawn.pods if pod.node is not None)
    problem = replace(drawn, pods=pods, options=replace(drawn.options, only_if_better=True))
    objective = OBJECTIVES[name]
    now = {pod.key: pod.node for pod in pods}
    assert objective(problem, ends(_planner(name).plan(problem))) <= objective(problem, now) + 1e-9


_POD = Pod("default/p", "uid-p", (1.0, 1.0, 1.0), (1.0, 1.0, 0.0), (1.0, 1.0, 1.0), node="n")
_NODE = Node("n", (4.0, 4.0, 4.0))
_BAD: dict[str, tuple[list[Pod], list[Node], str]] = {
    "negative need": ([replace(_POD, usage=(-1.0, 1.0, 1.0))], [_NODE], "default/p"),
    "not a number": ([replace(_POD, peak=(math.nan, 1.0, 1.0))], [_NODE], "default/p"),
    "endless": ([replace(_POD, request=(math.inf, 1.0, 1.0))], [_NODE], "default/p"),
    "too few amounts": ([replace(_POD, usage=(1.0,))], [_NODE], "default/p"),
    "pod twice": ([_POD, replace(_POD, uid="other")], [_NODE], "default/p"),
    "node twice": ([_POD], [_NODE, _NODE], "'n'"),
    "node without capacity": ([_POD], [_NODE, replace(_NODE, name="empty", allocatable=(0.0, 4.0, 4.0))], "empty"),
}


@every_planner
@pytest.mark.parametrize("case", _BAD)
def test_a_bad_problem_is_refused_by_name(name: str, case: str) -> None:
    pods, nodes, named = _BAD[case]
    with pytest.raises(ProblemError, match=named):
        _planner(name).plan(Problem(AXES, tuple(pods), tuple(nodes)))


@every_planner
def test_nothing_to_do(name: str) -> None:
    if name == "function":
        pytest.skip("whether a user's function bears an empty cluster is the user's business")
    nothing = _planner(name).plan(Problem(AXES, (), ()))
    assert [*nothing.moves, *nothing.stays, *nothing.unplaced] == []
    waiting = _planner(name).plan(Problem(AXES, (replace(_POD, node=None),), ()))
    assert [pod.pod for pod in waiting.unplaced] == ["default/p"]


Where = dict[str, str | None]


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
    """Peaks above the limit; load where there is no room at all counts as more than full."""
    total = 0.0
    for node, axis in itertools.product(problem.nodes, range(3)):
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
}
