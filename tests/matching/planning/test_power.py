"""Watts before and after a plan: linear in CPU, by usage, with the nodes that nothing needs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from matching.model.arrays import arrays_of
from matching.plan import Plan
from matching.planning.outcome import measure
from matching.problem import Power, Problem
from matching.serialization import plan_from_json, plan_to_json

Make = Callable[..., Any]


def test_power_is_linear_in_cpu_and_never_more_than_full() -> None:
    power = Power(50.0, 150.0)
    assert [power.at(share) for share in (0.0, 0.25, 1.0, 1.3)] == [50.0, 75.0, 150.0, 150.0]


def test_a_move_that_empties_a_node_leaves_it_idle(pod: Make, node: Make, problem: Make) -> None:
    """What belongs to its node does not keep it in use, but uses CPU."""
    pods = [pod("a", 2, node="n1"), pod("agent", 1, node="n1", fixed="DaemonSet", of_node=True), pod("b", 2, node="n2")]
    nodes = [node(name, power=Power(100.0, 200.0), background=(1, 0)) for name in ("n1", "n2")]
    arrays = arrays_of(problem(pods, nodes))
    before = measure(arrays, arrays.current).power
    assert before is not None
    assert before.watts == pytest.approx(140 + 130)
    assert before.idle == ()
    together = arrays.current.copy()
    together[[each.key for each in arrays.pods].index("default/a")] = 1
    after = measure(arrays, together).power
    assert after is not None
    assert after.watts == pytest.approx(120 + 150)
    assert after.idle == ("n1",)
    assert after.idle_watts == pytest.approx(120)


def test_it_counts_what_is_used_not_the_peaks(pod: Make, node: Make, problem: Make) -> None:
    pods = [pod("a", usage=(1, 1), peak=(9, 9), node="n1")]
    arrays = arrays_of(problem(pods, [node("n1", power=Power(0.0, 100.0))]))
    found = measure(arrays, arrays.current).power
    assert found is not None
    assert found.watts == pytest.approx(10)


def test_one_node_without_known_power_makes_the_sum_unknown(pod: Make, node: Make, problem: Make) -> None:
    arrays = arrays_of(problem([pod("a", node="n1")], [node("n1", power=Power(1.0, 2.0)), node("n2")]))
    assert measure(arrays, arrays.current).power is None


def test_a_plan_keeps_its_watts_in_json(pod: Make, node: Make, problem: Make, plan: Callable[[Problem], Plan]) -> None:
    nodes = [node(name, power=Power(7.4, 35.0)) for name in ("n1", "n2")]
    found = plan(problem([pod("a", 3, node="n1"), pod("b")], nodes))
    document = plan_to_json(found)
    assert document["before"]["power"]["idle"] == ["n2"]
    assert plan_from_json(document).after == found.after
