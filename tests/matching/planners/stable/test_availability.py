"""`availability: after`: a pod looks at the room that those before it have left."""

from __future__ import annotations

import math
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matching.plan import Plan, PlannedMove, Stay
from matching.planners.stable.planner import StablePlanner
from matching.problem import Availability, Node, Options, Pod, Problem
from matching.verify import certify

ASK = Options(inertia=0.0, headroom=0.0, only_if_better=False, availability=Availability.AFTER)


def serial_choice(problem: Problem) -> dict[str, str]:
    """Written from the definition: by CPU use each pod takes the nearest room that is left, if its peak fits there."""
    unit = [max(node.allocatable[axis] for node in problem.nodes) for axis in range(2)]
    left = {node.name: [node.allocatable[axis] / unit[axis] for axis in range(2)] for node in problem.nodes}
    spare = {name: list(room) for name, room in left.items()}
    at: dict[str, str] = {}
    for pod in sorted(problem.pods, key=lambda pod: (-pod.usage[0], pod.key)):
        usage, peak = ([amount[axis] / unit[axis] for axis in range(2)] for amount in (pod.usage, pod.peak))
        fitting = [name for name, room in spare.items() if all(room[axis] > peak[axis] + 1e-9 for axis in range(2))]
        if not fitting:
            continue

        def far(name: str, usage: list[float] = usage) -> float:
            return round(math.dist([max(0.0, room) for room in left[name]], usage), 9)

        node = min(fitting, key=lambda name: (far(name), name))
        at[pod.key] = node
        for axis in range(2):
            left[node][axis] -= usage[axis]
            spare[node][axis] -= peak[axis]
    return at


def roomy(seed: int, pods: int, nodes: int) -> Problem:
    pick = Random(seed)
    places = tuple(Node(f"n{at}", (pick.uniform(4, 8), pick.uniform(4, 8))) for at in range(nodes))
    guests = []
    for at in range(pods):
        usage = (pick.uniform(0.05, 0.3), pick.uniform(0.05, 0.3))
        peak = (usage[0] * 1.1, usage[1] * 1.2)
        guests.append(Pod(f"d/p{at}", f"{at}", usage, (0.0, 0.0), peak, node=f"n{pick.randrange(nodes)}"))
    return Problem(("cpu", "memory"), tuple(guests), places, ASK)


def ends(plan: Plan) -> dict[str, str]:
    return {stay.pod: stay.node for stay in plan.stays} | {move.pod: move.target for move in plan.moves}


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**31), pods=st.integers(1, 10), nodes=st.integers(1, 4))
def test_after_is_serial_choice_on_what_is_left(seed: int, pods: int, nodes: int) -> None:
    problem = roomy(seed, pods, nodes)
    plan = StablePlanner().plan(problem)
    assert plan.certificate.blocking_pairs == 0
    assert plan.certificate.feasible
    assert ends(plan) == serial_choice(problem)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**31))
def test_no_other_placement_is_stable(seed: int) -> None:
    """Brute force: of all placements that keep the quotas, the certificate calls exactly one stable."""
    problem = roomy(seed, 3, 2)
    stable = []
    for number in range(2**3):
        at = {pod.key: f"n{number >> place & 1}" for place, pod in enumerate(problem.pods)}
        moves = [PlannedMove(p.key, p.uid, p.node, at[p.key], 1, ()) for p in problem.pods if at[p.key] != p.node]
        stays = [Stay(p.key, p.uid, at[p.key], "") for p in problem.pods if at[p.key] == p.node]
        if certify(problem, moves, stays, []).blocking_pairs == 0:
            stable.append(at)
    assert stable == [serial_choice(problem)]


def test_before_and_after_differ() -> None:
    """Both like node a best, until the first of them has taken more of it than the second one needs."""
    nodes = (Node("a", (4.0, 4.0)), Node("b", (5.0, 5.0)))
    pods = tuple(Pod(f"d/{at}", f"{at}", (3.5, 3.5), (0.0, 0.0), (0.1, 0.1)) for at in range(2))
    found = {}
    for availability in Availability:
        options = Options(inertia=0.0, headroom=0.0, availability=availability)
        found[availability] = ends(StablePlanner().plan(Problem(("cpu", "memory"), pods, nodes, options)))
    assert found[Availability.BEFORE] == {"d/0": "a", "d/1": "a"}
    assert found[Availability.AFTER] == {"d/0": "a", "d/1": "b"}


@pytest.mark.parametrize("availability", Availability)
def test_a_stay_says_why(availability: Availability) -> None:
    options = Options(availability=availability)
    problem = Problem(("cpu",), (Pod("d/p", "1", (1.0,), (1.0,), (1.0,), node="a"),), (Node("a", (4.0,)),), options)
    assert StablePlanner().plan(problem).stays[0].reason
