"""The compiled loops and numpy give the same plan of anything, word for word."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matching.compilation import warm_up
from matching.compiled import loading
from matching.plan import Plan
from matching.planners.stable.planner import StablePlanner
from matching.problem import Availability, Node, Pod, Problem


@pytest.fixture(scope="module", autouse=True)
def warm() -> None:
    assert warm_up() is not None, "numba is among the locked dependencies"


@contextmanager
def without_kernels() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loading, "_loaded", [])
        patch.setattr(loading, "LARGE", float("inf"))
        yield


def both_ways(problem: Problem) -> tuple[Plan, Plan]:
    """Each of a copy: what is made ready for a problem is kept as long as it lives."""
    fast = StablePlanner().plan(replace(problem))
    with without_kernels():
        assert loading.kernels(10**6, 10**6) is None
        slow = StablePlanner().plan(replace(problem))
    return fast, slow


@settings(max_examples=150, deadline=None)
@given(data=st.data(), availability=st.sampled_from(list(Availability)))
def test_on_anything(
    data: st.DataObject,
    availability: Availability,
    random_problems: Callable[[int, int], st.SearchStrategy[Problem]],
) -> None:
    problem = data.draw(random_problems(12, 5))
    fast, slow = both_ways(replace(problem, options=replace(problem.options, availability=availability)))
    assert fast == slow


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 64_000), st.integers(1, 7 * 2**40)), min_size=1, max_size=5), st.data())
def test_at_the_boundary_of_requests(sizes: list[tuple[int, int]], data: st.DataObject) -> None:
    """One pod, a byte and a milli-core around the size of some node: it goes to a node that is large enough."""
    nodes = tuple(Node(f"n{at}", (cpu / 1000, float(memory))) for at, (cpu, memory) in enumerate(sizes))
    cpu, memory = (size + data.draw(st.integers(-1, 1)) for size in data.draw(st.sampled_from(sizes)))
    request = (cpu / 1000, float(memory))
    pods = (Pod("default/web", "uid", usage=request, request=request, peak=request),)
    fast, slow = both_ways(Problem(("cpu", "memory"), pods, nodes))
    assert fast == slow
    assert fast.certificate.feasible
    assert bool(fast.moves) is any(cpu <= size[0] and memory <= size[1] for size in sizes)
