from __future__ import annotations

import random

import pytest

from loadtests.demo.scenario import WEAK, WORKERS, Scenario, Shape, stable_scenario
from loadtests.workloads.app_spec import parse_app_spec
from loadtests.workloads.placement import default_placement


def scenario(seed: int = 1) -> Scenario:
    return stable_scenario(seed, 120)


@pytest.mark.parametrize("seed", range(8))
def test_the_weak_worker_is_overrun_and_the_cluster_is_not(seed: int) -> None:
    found = scenario(seed)
    loads = found.node_load()
    total = sum(app.need for app in found.apps) / sum(node.cores for node in found.nodes)
    assert 0.70 <= total <= 0.80
    assert 1.2 <= loads.pop(WEAK) <= 1.5
    assert max(loads.values()) < 0.9
    assert 150 <= sum(app.rate for app in found.apps) <= 350


@pytest.mark.parametrize("seed", range(20))
def test_ties_do_not_decide_who_lands_on_the_weak_worker(seed: int) -> None:
    found = scenario()
    specs = [item["spec"]["template"]["spec"] for item in found.deployments("x")]
    placed = default_placement(found.nodes, specs, random.Random(seed))
    assert [node == WEAK for node in placed] == [node == WEAK for node in found.expected]


def test_the_seed_decides() -> None:
    assert scenario(1) == scenario(1)
    assert scenario(1).apps != scenario(2).apps


def test_the_papers_workers_and_apps() -> None:
    found = scenario()
    assert [(node.cores, node.memory_bytes // 10**9) for node in found.nodes] == [(12, 12), (5, 8), (8, 16)]
    assert len(found.apps) == 15
    assert all(10 <= app.spec.work_ms <= 150 for app in found.apps)
    assert [found.expected.count(node.name) for node in WORKERS] == [7, 3, 5]


def test_deployments_ask_for_the_same_and_run_what_was_drawn() -> None:
    found = scenario()
    deployments = found.deployments("rematch")
    templates = [item["spec"]["template"] for item in deployments]
    assert len({str(template["spec"]) for template in templates}) == 1
    assert templates[0]["spec"]["schedulerName"] == "rematch"
    specs = [parse_app_spec(template["metadata"]["annotations"]) for template in templates]
    assert specs == [app.spec for app in found.apps]


def test_the_load_rises_to_the_full_rate() -> None:
    found = scenario()
    plan = found.load_plan()
    last = [load.steps[-1] for load in plan.apps]
    assert {step.start for step in last} == {24.0}
    assert [step.rate for step in last] == [app.rate for app in found.apps]
    assert [load.steps[0].rate for load in plan.apps] == pytest.approx([0.4 * app.rate for app in found.apps])


def test_a_shape_that_cannot_be_drawn_is_said() -> None:
    with pytest.raises(ValueError, match="no draw of seed 1"):
        stable_scenario(1, 120, Shape(weak=(9, 10), draws=50))
