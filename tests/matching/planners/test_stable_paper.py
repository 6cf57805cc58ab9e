"""STABLE as the paper tells it: lists once, quotas by maximum usage, displacement, dumping."""

from __future__ import annotations

import math
from bisect import insort
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from matching.plan import BlockingCause, Plan, Promise
from matching.planners.stable.planner import StablePlanner
from matching.planners.stable_paper import StablePaperPlanner
from matching.problem import Dumping, Node, Options, Pod, Problem, Scope
from matching.serialization import plan_to_json
from matching.verify import certify

Make = Callable[..., Any]
Ends = Callable[[Plan], dict[str, str | None]]
Problems = Callable[[int, int], st.SearchStrategy[Problem]]
examples = settings(max_examples=100, deadline=None)
paper = StablePaperPlanner().plan
matched = StablePaperPlanner().match


def _instance(seed: int) -> Problem:
    """Free of rules; running pods only, some of them fixed."""
    pick = Random(seed)
    names = [f"n{at}" for at in range(pick.randint(1, 4))]
    pods = tuple(
        Pod(
            key=f"d/p{at}",
            uid=f"u{at}",
            usage=(pick.randint(0, 6), pick.randint(0, 6)),
            request=(pick.randint(0, 5), pick.randint(0, 5)),
            peak=(pick.randint(0, 6), pick.randint(0, 6)),
            node=pick.choice(names),
            happy=pick.random() < 0.5,
            fixed="DaemonSet" if pick.random() < 0.2 else "",
        )
        for at in range(pick.randint(1, 9))
    )
    return Problem(
        ("cpu", "memory"), pods, tuple(Node(name, (pick.randint(4, 14), pick.randint(4, 14))) for name in names)
    )


def _by_the_book(problem: Problem) -> dict[str, str | None]:
    """Algorithms 1 and 2 with our reading, written down once more with plain lists."""
    nodes = {node.name: node for node in problem.nodes}
    largest = [max(node.allocatable[axis] for node in problem.nodes) for axis in (0, 1)]
    fixed = [pod for pod in problem.pods if pod.fixed]

    def left(node: Node, what: str, taken: list[Pod], axis: int) -> float:
        return node.allocatable[axis] - sum(float(getattr(pod, what)[axis]) for pod in taken)

    def listed(pod: Pod) -> deque[str]:
        found = []
        for node in problem.nodes:
            here = [each for each in fixed if each.node == node.name]
            if any(pod.request[axis] > left(node, "request", here, axis) for axis in (0, 1) if pod.request[axis]):
                continue
            rooms = [max(0.0, left(node, "usage", here, axis)) - pod.usage[axis] for axis in (0, 1)]
            found.append((round(math.hypot(rooms[0] / largest[0], rooms[1] / largest[1]), 9), node.name))
        return deque(name for _, name in sorted(found))

    pods = {pod.key: pod for pod in problem.pods if not pod.fixed}
    lists = {key: listed(pod) for key, pod in pods.items()}
    matched: dict[str, list[tuple[float, str]]] = {name: [] for name in nodes}

    def takes(pod: Pod, name: str, taken: list[tuple[float, str]]) -> bool:
        there = [each for each in fixed if each.node == name] + [pods[key] for _, key in taken]
        return all(not pod.peak[a] or left(nodes[name], "peak", there, a) > pod.peak[a] for a in (0, 1))

    queue = deque(sorted(pods))
    while queue:
        key = queue.popleft()
        rank = (-pods[key].usage[0], key)
        while lists[key]:
            name = lists[key].popleft()
            taken, gone = list(matched[name]), []
            while not takes(pods[key], name, taken) and taken and taken[-1] > rank:
                gone.append(taken.pop()[1])
            if takes(pods[key], name, taken):
                insort(taken, rank)
                matched[name] = taken
                queue.extend(reversed(gone))
                break
    ends: dict[str, str | None] = {pod.key: None if not pod.fixed else pod.node for pod in problem.pods}
    ends.update({key: name for name, taken in matched.items() for _, key in taken})
    return ends


@examples
@given(st.integers(0, 2**31))
def test_as_the_algorithms_have_it(ends: Ends, seed: int) -> None:
    """And the plan differs only by moves that cannot be carried out."""
    problem = _instance(seed)
    wanted, plan = matched(problem), paper(problem)
    assert wanted == _by_the_book(problem)
    kept = {stay.pod: stay for stay in plan.stays if stay.reason.startswith("kept here")}
    assert {key: end for key, end in ends(plan).items() if key not in kept} == {
        key: end for key, end in wanted.items() if key not in kept
    }
    assert all(wanted[key] not in (None, stay.node) for key, stay in kept.items())


@examples
@given(data=st.data())
def test_everyone_is_accounted_for_and_what_is_listed_can_be_carried_out(
    data: st.DataObject, random_problems: Problems
) -> None:
    """The quota is by maximum usage and requests only shorten the lists, but no move is listed that does not fit."""
    problem = data.draw(random_problems(8, 4))
    plan = paper(problem)
    assert plan.certificate.violations == ()
    named = [each.pod for part in (plan.moves, plan.stays, plan.unplaced) for each in part]
    assert sorted(named) == sorted(pod.key for pod in problem.pods)
    homes = {pod.key: pod for pod in problem.pods}
    for left in plan.dumped:
        assert left.source == homes[left.pod].node
        assert not homes[left.pod].fixed
    if problem.options.scope is Scope.PENDING:
        assert plan.dumped == ()


def test_no_node_is_over_its_quota() -> None:
    for seed in range(50):
        built = _instance(seed)
        where = matched(built)
        for each in built.nodes:
            taken = [p for p in built.pods if where[p.key] == each.name]
            free = [p for p in taken if not p.fixed]
            for axis in (0, 1):
                if any(p.peak[axis] for p in free):
                    assert sum(p.peak[axis] for p in taken) < each.allocatable[axis]


def test_displacement_leaves_blocking_pairs_that_serial_choice_does_not() -> None:
    pairs = serial = 0
    for seed in range(60):
        plan = paper(_instance(seed))
        pairs += plan.certificate.blocking_pairs
        causes = {pair.cause for pair in plan.certificate.blocking}
        assert causes <= {BlockingCause.DISPLACEMENT, BlockingCause.MOVE_ORDER}
        options = Options(inertia=0.0, headroom=0.0, soft_weight=0.0, only_if_better=False)
        free = tuple(replace(p, happy=True, request=(0.0, 0.0)) for p in _instance(seed).pods)
        exact = StablePlanner(Dumping.ALLOW).plan(replace(_instance(seed), pods=free, options=options))
        serial += exact.certificate.blocking_pairs
    assert pairs > 0
    assert serial == 0


def test_who_fits_nowhere_is_dumped_and_the_plan_says_so(pod: Make, node: Make, problem: Make) -> None:
    pods = [pod("big", 6, node="n"), pod("small", 5, node="n")]
    plan = paper(problem(pods, [node("n")], inertia=0.2))
    (left,) = plan.unplaced
    assert (left.pod, left.source) == ("default/small", "n")
    assert left.reason.startswith("dumped: its list ended: 1 node of 1")
    assert plan.after.pending == 1
    assert plan_to_json(plan)["unplaced"][0]["from"] == "n"
    assert plan.certificate.feasible


def test_what_it_waives_and_what_it_ignores(pod: Make, node: Make, problem: Make) -> None:
    assert {Promise.NOBODY_LEFT_OUT, Promise.RESTRAINT, Promise.NEVER_WORSE} <= StablePaperPlanner.waives
    pods = [pod("a", 2, node="big"), pod("b", 1, node="big", happy=False)]
    nodes = [node("big", 20, 20), node("snug", 4, 4)]
    options: dict[str, Any] = {"inertia": 5.0, "headroom": 0.5, "max_moves": 0}
    plain, told = paper(problem(pods, nodes)), paper(problem(pods, nodes, scope=Scope.UNHAPPY, **options))
    assert plain.moves == told.moves
    assert {move.target for move in plain.moves} == {"snug"}
    assert told.after.overloaded == ("snug",)
    assert plain.after.overloaded == ()


class TestDumpingAllowed:
    """`stable` with dumping: who fits nowhere by quota is left out, and nothing else changes."""

    def test_only_where_it_is_allowed(self, pod: Make, node: Make, problem: Make) -> None:
        pods = [pod(f"p{at}", 3, request=(1, 1), node="n") for at in range(4)]
        built = problem(pods, [node("n"), node("m", 1, 1)], only_if_better=False)
        assert StablePlanner().plan(built).dumped == ()
        for planner, asked in (
            (StablePlanner(Dumping.ALLOW), built),
            (StablePlanner(), replace(built, options=replace(built.options, dumping=Dumping.ALLOW))),
        ):
            plan = planner.plan(asked)
            assert [left.pod for left in plan.dumped] == ["default/p3"]
            assert plan.certificate.feasible
            assert plan.certificate.blocking_pairs == 0

    def test_by_default_the_certificate_objects(self, pod: Make, node: Make, problem: Make) -> None:
        pods = [pod(f"p{at}", 3, request=(1, 1), node="n") for at in range(4)]
        built = problem(pods, [node("n")], only_if_better=False)
        plan = StablePlanner(Dumping.ALLOW).plan(built)
        again = certify(built, plan.moves, plan.stays, plan.unplaced)
        assert again.violations == ("default/p3: runs on n and would lose its node",)

    @examples
    @given(data=st.data())
    def test_it_is_stable_and_within_the_quotas(self, data: st.DataObject, random_problems: Problems) -> None:
        problem = data.draw(random_problems(8, 4))
        options = replace(problem.options, max_moves=None, only_if_better=False, scope=Scope.CLUSTER)
        plan = StablePlanner(Dumping.ALLOW).plan(replace(problem, options=options))
        assert plan.certificate.violations == ()
        causes = {pair.cause for pair in plan.certificate.blocking}
        assert causes <= {BlockingCause.NOT_WORTH_IT, BlockingCause.MOVE_ORDER}
        said = any("order of the moves" in note or "each other's room" in note for note in plan.notes)
        assert said or BlockingCause.MOVE_ORDER not in causes

    @examples
    @given(data=st.data())
    def test_dumping_counts_as_a_move_in_the_budget(self, data: st.DataObject, random_problems: Problems) -> None:
        problem = data.draw(random_problems(8, 4))
        plan = StablePlanner(Dumping.ALLOW).plan(problem)
        assert plan.certificate.violations == ()
        if problem.options.max_moves is not None:
            running = sum(move.source is not None for move in plan.moves)
            assert running + len(plan.dumped) <= problem.options.max_moves
