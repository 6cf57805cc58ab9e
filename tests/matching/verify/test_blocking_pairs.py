"""Rules between pods for all nodes at once against the same rules one node at a time, and the compiled count of
blocking pairs against the count in numpy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matching.compiled import loading
from matching.problem import Availability, Problem
from matching.testing import problem_with_pod_rules
from matching.verify.blocking import Blocking, blocking_pairs
from matching.verify.placement import Placement
from matching.verify.pod_rules import PodCounts, PodRules
from matching.verify.pod_rules_by_node import PodRulesByNode

Problems = Callable[[int, int], st.SearchStrategy[Problem]]
MANY = 10_000


def anywhere(problem: Problem, seed: int) -> dict[str, str | None]:
    """Some placement: pods that may not move stay, the others are anywhere, or nowhere."""
    pick, names = Random(seed), [node.name for node in problem.nodes]
    ends: dict[str, str | None] = {}
    for pod in problem.pods:
        stays = pod.fixed or pod.node not in (None, *names) or pick.random() < 0.5
        ends[pod.key] = pod.node if stays else pick.choice([None, *names])
    return ends


def allowed_on(placement: Placement, counts: PodCounts, row: int, node: int) -> bool:
    """Take the pods away that rank below the pod there, check, and put them back."""
    rules, there = PodRules(counts), placement.nodes[node].name
    below = [placement.pods[at].key for at in range(row + 1, len(placement.pods)) if placement.end[at] == node]
    gone = [key for key in below if key in counts.kinds]
    for key in gone:
        rules.move(key, None)
    allowed = not rules.violation(placement.pods[row].key, placement.nodes[node])
    for key in gone:
        rules.move(key, there)
    return allowed


@pytest.mark.parametrize("seed", range(60))
def test_inter_pod_constraints_for_all_nodes_at_once(seed: int) -> None:
    problem = problem_with_pod_rules(seed, pods=12)
    ends = anywhere(problem, seed)
    placement = Placement(problem, ends)
    rules, counts = PodRulesByNode(placement, ends), PodCounts(problem, ends)
    for row in range(len(placement.pods)):
        if rules.involved[row]:
            found = rules.allowed(row).tolist()
            for node in range(len(placement.nodes)):
                if node != placement.end[row]:
                    assert found[node] == allowed_on(placement, counts, row, node), (row, node)
        rules.advance(row)


def counted(problem: Problem, ends: Mapping[str, str | None], compiled: bool) -> Blocking:
    if not compiled:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(loading, "_loaded", [])
            return blocking_pairs(problem, ends, MANY)
    entry = pytest.importorskip("matching.compiled.entry", exc_type=ImportError)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loading, "_loaded", [entry])
        return blocking_pairs(problem, ends, MANY)


@settings(max_examples=150, deadline=None)
@given(data=st.data(), seed=st.integers(0, 2**31), availability=st.sampled_from(Availability))
def test_the_compiled_count_is_the_one_of_numpy(
    data: st.DataObject, seed: int, availability: Availability, random_problems: Problems
) -> None:
    problem = data.draw(random_problems(12, 5))
    problem = replace(problem, options=replace(problem.options, availability=availability))
    ends = anywhere(problem, seed)
    assert counted(problem, ends, compiled=True) == counted(problem, ends, compiled=False)


@pytest.mark.parametrize("seed", range(20))
def test_the_compiled_count_knows_inter_pod_constraints(seed: int) -> None:
    problem = problem_with_pod_rules(seed, pods=14)
    ends = anywhere(problem, seed)
    assert counted(problem, ends, compiled=True) == counted(problem, ends, compiled=False)


def test_only_so_many_are_named_and_all_are_counted() -> None:
    problem = problem_with_pod_rules(3, pods=14)
    ends: dict[str, str | None] = {pod.key: None for pod in problem.pods}
    every, few = blocking_pairs(problem, ends, MANY), blocking_pairs(problem, ends, 5)
    assert len(every.first) == every.count == few.count > 5
    assert few.first == every.first[:5]
