"""What inertia does: nothing at 0, and above sqrt(axes) + soft_weight no happy pod leaves a feasible placement."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import sqrt
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from matching.plan import Plan
from matching.problem import Node, Options, Pod, PodTerm, Preferred, Problem, Requirement, Rules, Selector, Term

Planning = Callable[[Problem], Plan]
Ends = Callable[[Plan], dict[str, str | None]]
examples = settings(max_examples=60, deadline=None)
seeds = st.integers(0, 2**31)

SOFT = 0.4


def _wishes(pick: Random) -> Rules:
    zone = Term((Requirement("zone", "In", (pick.choice("ab"),)),))
    mates = PodTerm("zone", Selector((Requirement("app", "Exists"),)))
    return pick.choice(
        [
            Rules(),
            Rules(preferred=Preferred(nodes=((100, zone),))),
            Rules(preferred=Preferred(apart_from=((50, mates),))),
            Rules(preferred=Preferred(with_pods=((1, mates),), nodes=((100, zone),))),
        ]
    )


def _all_happy(seed: int, axes: int, inertia: float) -> Problem:
    """Everybody is happy and fits where it is; nodes are of all sizes, and soft constraints draw pods elsewhere."""
    pick = Random(seed)
    names = [f"n{at}" for at in range(4)]

    def amounts(most: int) -> tuple[float, ...]:
        return tuple(float(pick.randint(0, most)) for _ in range(axes))

    pods = tuple(
        Pod(
            key=f"d/p{at}",
            uid=f"u{at}",
            usage=amounts(9),
            request=amounts(2),
            peak=amounts(3),
            node=pick.choice(names),
            rules=_wishes(pick),
            labels={"app": "x"},
        )
        for at in range(pick.randint(1, 8))
    )
    nodes = []
    for name in names:
        on_node = [pod for pod in pods if pod.node == name]
        needs = [sum(max(pod.peak[axis], pod.request[axis]) for pod in on_node) for axis in range(axes)]
        room = tuple(need + pick.choice([0.1, 5.0, 40.0]) for need in needs)
        nodes.append(Node(name, room, labels={"zone": pick.choice("ab")}))
    options = Options(inertia=inertia, soft_weight=SOFT)
    return Problem(tuple(f"axis{at}" for at in range(axes)), pods, tuple(nodes), options)


@examples
@given(seeds, st.integers(1, 4))
def test_above_the_stated_value_nobody_leaves(matched: Planning, seed: int, axes: int) -> None:
    result = matched(_all_happy(seed, axes, sqrt(axes) + SOFT + 1e-6))
    assert result.moves == ()
    assert result.certificate.blocking_pairs == 0


def test_the_stated_value_is_not_larger_than_it_must_be(matched: Planning) -> None:
    """An empty pod between a node of no room to speak of and the largest one, and all soft constraints on its side."""
    soft = Rules(preferred=Preferred(nodes=((100, Term((Requirement("zone", "In", ("a",)),))),)))
    pod = Pod("d/p", "u", (0.0, 0.0), (0.0, 0.0), (0.0, 0.0), node="large", rules=soft)
    nodes = (Node("large", (1000.0, 1000.0)), Node("tiny", (0.001, 0.001), labels={"zone": "a"}))
    problem = Problem(("cpu", "memory"), (pod,), nodes, Options(inertia=sqrt(2) + SOFT - 0.01, soft_weight=SOFT))
    assert [move.target for move in matched(problem).moves] == ["tiny"]
    kept = replace(problem, options=replace(problem.options, inertia=sqrt(2) + SOFT + 1e-6))
    assert matched(kept).moves == ()


@examples
@given(seeds, seeds)
def test_at_zero_it_does_not_matter_where_a_pod_is(matched: Planning, ends: Ends, seed: int, other: int) -> None:
    """Without inertia a home is a node like any other, so the matching is the same from wherever it starts."""
    drawn = _all_happy(seed, 2, 0.0)
    pick = Random(other)
    nodes = tuple(replace(node, allocatable=tuple(60.0 + room for room in node.allocatable)) for node in drawn.nodes)
    here = replace(drawn, nodes=nodes, pods=tuple(replace(pod, rules=Rules()) for pod in drawn.pods))
    moved = tuple(replace(pod, node=pick.choice(nodes).name) for pod in here.pods)
    assert ends(matched(here)) == ends(matched(replace(here, pods=moved)))
