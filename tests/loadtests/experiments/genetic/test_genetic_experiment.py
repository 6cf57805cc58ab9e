"""The workload of GENETIC's experiment and what is measured on it."""

from __future__ import annotations

from loadtests.experiments.genetic.design import AXES, NODES, SECONDS, deviations, draw_pods, loads, plan, traces

START = {pod.name: "strong" for pod in draw_pods(1)}


def test_the_workload_is_the_same_for_a_seed_and_uses_about_half_of_the_nodes() -> None:
    pods = draw_pods(1)
    assert pods == draw_pods(1) != draw_pods(2)
    for axis in range(len(AXES)):
        share = sum(pod.use[axis] for pod in pods) / sum(node.room[axis] for node in NODES)
        assert 0.35 < share < 0.75


def test_a_search_by_one_axis_makes_that_axis_even() -> None:
    pods = draw_pods(1)
    before = deviations(pods, START)
    found = plan("genetic", {"weights": {"network": 1.0}, "generations": 20, "population": 20}, pods, START)
    assert deviations(pods, found.placement)["network"] < before["network"] / 5
    assert found.moves == sum(found.placement[name] != node for name, node in START.items())
    assert found.cpu_seconds > 0


def test_traces_wander_about_the_loads() -> None:
    pods = draw_pods(1)
    found = traces(pods, START, "cpu", 1)
    assert {name: len(values) for name, values in found.items()} == {node.name: SECONDS for node in NODES}
    mean = sum(found["strong"]) / SECONDS
    assert abs(mean / (100 * float(loads(pods, START)[0, 0])) - 1) < 0.2
    assert set(found["weak1"]) == {0.0}
