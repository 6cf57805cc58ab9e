"""Rules between pods asked for all nodes at once against the same rules asked one node at a time, and the compiled
count of blocking pairs against the one of numpy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matching import compilation
from matching.certificate.beside import Beside
from matching.certificate.blocking import Blocking, blocking_pairs
from matching.certificate.crowd import Crowd
from matching.certificate.neighbours import Neighbourhood
from matching.certificate.view import View
from matching.problem import Availability, Problem

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


def fits_beside(view: View, crowd: Crowd, row: int, node: int) -> bool:
    """Take those away who rank below the pod there, ask, and put them back."""
    neighbourhood, there = Neighbourhood(crowd), view.nodes[node].name
    below = [view.pods[other].key for other in range(row + 1, len(view.pods)) if view.end[other] == node]
    gone = {key: crowd.where[key] for key in below if key in crowd.looks}
    for key in gone:
        neighbourhood.move(key, None)
    fits = not neighbourhood.objection(view.pods[row].key, view.nodes[node])
    for key in gone:
        neighbourhood.move(key, there)
    return fits


@pytest.mark.parametrize("seed", range(60))
def test_rules_between_pods_for_all_nodes_at_once(seed: int, crowd: Callable[..., Problem]) -> None:
    problem = crowd(seed, pods=12)
    ends = anywhere(problem, seed)
    view = View(problem, ends)
    beside, scene = Beside(view, ends), Crowd(problem, ends)
    for row in range(len(view.pods)):
        if beside.concerned[row]:
            found = beside.fits(row).tolist()
            for node in range(len(view.nodes)):
                if node != view.end[row]:
                    assert found[node] == fits_beside(view, scene, row, node), (row, node)
        beside.passes(row)


def counted(problem: Problem, ends: Mapping[str, str | None], compiled: bool) -> Blocking:
    if not compiled:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(compilation, "_loaded", [])
            return blocking_pairs(problem, ends, MANY)
    entry = pytest.importorskip("matching.compiled.entry", exc_type=ImportError)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compilation, "_loaded", [entry])
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
def test_the_compiled_count_knows_rules_between_pods(seed: int, crowd: Callable[..., Problem]) -> None:
    problem = crowd(seed, pods=14)
    ends = anywhere(problem, seed)
    assert counted(problem, ends, compiled=True) == counted(problem, ends, compiled=False)


def test_only_so_many_are_named_and_all_are_counted(crowd: Callable[..., Problem]) -> None:
    problem = crowd(3, pods=14)
    ends: dict[str, str | None] = {pod.key: None for pod in problem.pods}
    every, few = blocking_pairs(problem, ends, MANY), blocking_pairs(problem, ends, 5)
    assert len(every.first) == every.count == few.count > 5
    assert few.first == every.first[:5]
