"""The fast verifier against the slow reference that defines what it computes."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from matching.compiled import loading
from matching.plan import PlannedMove, Stay, Unplaced
from matching.problem import (
    Availability,
    Dumping,
    Node,
    Pod,
    PodTerm,
    Preferred,
    Problem,
    Scope,
    Selector,
    Spread,
    Taint,
    Term,
)
from matching.problem import Requirement as Is
from matching.registry import known_planners, load_planner
from matching.testing import problem_with_pod_rules, random_problem, with_surges, with_volumes
from matching.verify import blocking, reference
from matching.verify.feasibility import violations

MANY = 10_000
Entries = tuple[list[PlannedMove], list[Stay], list[Unplaced]]


def _varied(problem: Problem, seed: int) -> Problem:
    """The same with soft constraints, an axis that only rejects, fuller nodes, and every option."""
    pick = Random(seed)
    pods = tuple(_varied_pod(pod, pick) for pod in problem.pods)
    options = replace(
        problem.options,
        scope=pick.choice(list(Scope)),
        availability=pick.choice(list(Availability)),
        dumping=pick.choice(list(Dumping)),
        soft_weight=pick.choice([0.0, 0.5, 5.0]),
        relief=pick.choice([0.0, 0.05]),
    )
    nodes = tuple(_varied_node(node, pick) for node in problem.nodes)
    return replace(problem, pods=pods, nodes=nodes, options=options, hard_only=pick.choice([(), ("memory",)]))


def _varied_pod(pod: Pod, pick: Random) -> Pod:
    rules = pod.rules
    if pick.random() < 0.5:
        term = PodTerm(pick.choice(["host", "zone"]), Selector((Is("app", "In", (pick.choice(["w1", "w2"]),)),)))
        wanted = Preferred(
            nodes=pick.choice([(), ((3, Term((Is("zone", "In", ("a",)),))),)]),
            with_pods=pick.choice([(), ((2, term),)]),
            apart_from=pick.choice([(), ((1, term),), ((1, term), (5, PodTerm("host", Selector())))]),
            spread=pick.choice([(), (Spread("zone", term.selector, honor_affinity=False),)]),
        )
        rules = replace(rules, preferred=wanted)
    request = pick.choice([pod.request, tuple(0.0 for _ in pod.request)])
    return replace(pod, rules=rules, request=request, leaving=pick.random() < 0.2)


def _varied_node(node: Node, pick: Random) -> Node:
    taints = pick.choice([node.taints, (Taint("soft", "PreferNoSchedule"), Taint("x", "PreferNoSchedule"))])
    labels = {key: value for key, value in node.labels.items() if pick.random() < 0.8}
    return replace(node, taints=taints, labels=labels)


def _any_plan(problem: Problem, seed: int) -> Entries:
    """Pods that may not move stay; the others stay, move anywhere or lose their node."""
    pick, names = Random(seed), [node.name for node in problem.nodes]
    moves: list[PlannedMove] = []
    stays: list[Stay] = []
    unplaced: list[Unplaced] = []
    for pod in problem.pods:
        kind = pick.random()
        target = pick.choice(names)
        if pod.node is not None and (pod.fixed or pod.node not in names or kind < 0.5 or target == pod.node):
            stays.append(Stay(pod.key, pod.uid, pod.node, ""))
        elif pod.fixed or kind < 0.55:
            unplaced.append(Unplaced(pod.key, pod.uid, "", source=pod.node))
        else:
            moves.append(PlannedMove(pod.key, pod.uid, pod.node, target, 1, (), strategy=pod.strategy))
    pick.shuffle(moves)
    return moves, stays, unplaced


def _broken(problem: Problem, entries: Entries, pick: Random) -> Entries:
    """The plan with one mistake, or one entry that is moved to the wrong list."""
    moves, stays, unplaced = list(entries[0]), list(entries[1]), list(entries[2])
    names = [node.name for node in problem.nodes]
    mistake = pick.randrange(6)
    pod = pick.choice(problem.pods)
    if mistake == 0:
        moves.append(PlannedMove(pod.key, pod.uid, pod.node, pick.choice([*names, "nowhere"]), 1, ()))
    elif mistake == 1:
        stays.append(Stay(pod.key, pod.uid, pick.choice(names), ""))
    elif mistake == 2:
        unplaced.append(Unplaced(pod.key, pod.uid, "", source=pick.choice([None, *names])))
    elif mistake == 3:
        del pick.choice([part for part in (moves, stays, unplaced) if part])[0]
    elif mistake == 4:
        moves.append(PlannedMove("default/stranger", "uid", None, names[0], 1, ()))
    elif moves:
        at = pick.randrange(len(moves))
        moves[at] = replace(moves[at], source=pick.choice([None, *names]), target=pick.choice(names))
    return moves, stays, unplaced


def _objects(found: list[str]) -> set[str]:
    """Violations say `object: what is wrong`."""
    return {text.split(": ")[0] for text in found}


def _check(problem: Problem, entries: Entries) -> set[str]:
    expected = _objects(list(reference.violations(problem, *entries)))
    assert _objects(list(violations(problem, *entries))) == expected
    return expected


def _problem(seed: int) -> Problem:
    pick = Random(seed)
    if pick.random() < 0.5:
        problem = problem_with_pod_rules(seed, pods=8, nodes=4)
        problem = with_volumes(problem, seed) if pick.random() < 0.5 else problem
        problem = with_surges(problem, seed) if pick.random() < 0.5 else problem
        scope = pick.choice(list(Scope))
        replicas = tuple(replace(pod, workload=pod.labels.get("app", "")) for pod in problem.pods)
        return replace(problem, pods=replicas, options=replace(problem.options, scope=scope, headroom=0.0))
    return _varied(random_problem(seed, pick.randint(1, 9), pick.randint(1, 5)), seed)


@pytest.mark.parametrize("first", range(0, 400, 10))
def test_the_same_violations(first: int) -> None:
    for seed in range(first, first + 10):
        problem = _problem(seed)
        entries = _any_plan(problem, seed)
        _check(problem, entries)
        _check(problem, _broken(problem, entries, Random(seed)))


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("first", range(0, 400, 10))
def test_the_same_blocking_pairs(first: int, compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if compiled:
        entry = pytest.importorskip("matching.compiled.entry", exc_type=ImportError)
        monkeypatch.setattr(loading, "_loaded", [entry])
    else:
        monkeypatch.setattr(loading, "_loaded", [])
    for seed in range(first, first + 10):
        problem = _problem(seed)
        moves, stays, unplaced = _any_plan(problem, seed)
        ends: dict[str, str | None] = {each.pod: None for each in unplaced}
        ends |= {each.pod: each.node for each in stays} | {each.pod: each.target for each in moves}
        found = blocking.blocking_pairs(problem, ends, MANY)
        pairs = {(pod, node) for pod, node, _ in found.first}
        assert pairs == reference.blocking_pairs(problem, ends), seed
        assert len(pairs) == found.count


@pytest.mark.parametrize("seed", range(40))
def test_the_same_blocking_pairs_by_history(seed: int) -> None:
    draw = Random(seed)
    problem = _problem(seed)
    pods = [
        replace(
            pod,
            mean=tuple(amount * draw.uniform(0.2, 3.0) for amount in pod.usage) if draw.random() < 0.7 else (),
            idle_cpu=draw.uniform(0.0, 2.0) if draw.random() < 0.3 else None,
        )
        for pod in problem.pods
    ]
    problem = replace(problem, pods=tuple(pods))
    moves, stays, unplaced = _any_plan(problem, seed)
    ends: dict[str, str | None] = {each.pod: None for each in unplaced}
    ends |= {each.pod: each.node for each in stays} | {each.pod: each.target for each in moves}
    found = blocking.blocking_pairs(problem, ends, MANY)
    assert {(pod, node) for pod, node, _ in found.first} == reference.blocking_pairs(problem, ends)


@pytest.mark.parametrize("name", [name for name in known_planners() if name not in ("function", "stable-paper")])
def test_real_plans_are_feasible_and_broken_ones_are_not(name: str) -> None:
    planner = load_planner(name, {"population": 12, "generations": 8} if name == "genetic" else {})
    for seed in range(12):
        problem = random_problem(seed, 8, 4)
        options = dict.fromkeys(("max_moves", "max_moves_per_workload", "max_moves_per_node"))
        problem = replace(problem, options=replace(problem.options, **options, max_moves_per_namespace=None))  # type: ignore[arg-type]
        plan = planner.plan(problem)
        entries = (list(plan.moves), list(plan.stays), list(plan.unplaced))
        assert _check(problem, entries) == set()
        gone = (entries[0], entries[1][1:], entries[2]) if entries[1] else (entries[0][1:], [], entries[2])
        if gone != entries:
            assert _check(problem, gone)


@pytest.mark.parametrize("name", [name for name in known_planners() if name not in ("function", "stable-paper")])
def test_plans_with_surges_are_feasible(name: str) -> None:
    planner = load_planner(name, {"population": 12, "generations": 8} if name == "genetic" else {})
    made = random_problem if name == "network" else problem_with_pod_rules
    for seed in range(12):
        problem = with_surges(made(seed, 8, 4), seed)
        plan = planner.plan(problem)
        assert _check(problem, (list(plan.moves), list(plan.stays), list(plan.unplaced))) == set()
        strategies = {pod.key: pod.strategy for pod in problem.pods}
        assert all(move.strategy is strategies[move.pod] for move in plan.moves)
