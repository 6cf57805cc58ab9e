"""The realistic mix for the planners' benches: feasible, reproducible, with the shares it promises."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from loadtests.benchmarks.planner_instances import HOSTNAME, Mix, realistic
from loadtests.benchmarks.planners_kse_rule import best_fixed_spread, scenarios, verdicts
from loadtests.benchmarks.planners_speed import Case, run
from matching.problem import Problem


@pytest.fixture(scope="module")
def cluster() -> Problem:
    return realistic(Mix(pods=3000, nodes=200, unhappy=10))


def test_the_mix_is_as_specified(cluster: Problem) -> None:
    rules = {pod.workload: pod.rules for pod in cluster.pods}
    assert len(rules) == 150
    assert all(each.node_selector for each in rules.values())
    assert sum(bool(each.pod_anti_affinity) for each in rules.values()) == 3
    assert sum(bool(node.taints) for node in cluster.nodes) == 10
    assert sum(not pod.happy for pod in cluster.pods) == 10


def test_it_fits_with_the_slack_that_was_asked_for(cluster: Problem) -> None:
    room = {node.name: np.array(node.allocatable) for node in cluster.nodes}
    asked = {name: np.zeros(2) for name in room}
    for pod in cluster.pods:
        asked[str(pod.node)] += np.array(pod.request)
    assert all((asked[name] <= room[name]).all() for name in room)
    needed = np.sum([pod.peak for pod in cluster.pods], axis=0)
    offered = np.sum(list(room.values()), axis=0) * (1 - cluster.options.headroom)
    assert needed / offered == pytest.approx([0.8, 0.8])


def test_selectors_taints_and_anti_affinity_hold_at_the_start(cluster: Problem) -> None:
    nodes = {node.name: node for node in cluster.nodes}
    apart: Counter[tuple[str, str]] = Counter()
    for pod in cluster.pods:
        node = nodes[str(pod.node)]
        assert set(pod.rules.node_selector) <= set(node.labels.items())
        assert not node.taints or pod.rules.tolerations
        if pod.rules.pod_anti_affinity:
            apart[pod.workload, node.labels[HOSTNAME]] += 1
    assert set(apart.values()) == {1}


def test_the_same_seed_is_the_same_cluster() -> None:
    assert realistic(Mix(200, 20, seed=3)) == realistic(Mix(200, 20, seed=3))


def test_the_speed_bench_times_every_part() -> None:
    verified = run(Case("balance", "balance", (400, 30), 1.0, repeats=1, verified=True))
    assert min(verified.warm.open, verified.warm.find, verified.warm.tell, verified.warm.certify) > 0
    assert verified.judged == verified.warm.whole
    assert verified.blocking_pairs is not None
    found = run(Case("balance", "balance", (400, 30), 1.0, repeats=1))
    assert found.judged == found.warm.find
    assert found.blocking_pairs is None


KSE = """\
workload,pods,target,rate,dist,metric,algo,mae_mean,mae_std,node_mean,reschedules_mean,req_mean
synthetic,20,40,constant,exponential,cpu,kube-scheduler,651.2,21.03,1166.8,0,28800
synthetic,20,40,constant,exponential,cpu,kse-RefineLB,269.59,35.5,1170,9.7,28800
synthetic,40,20,constant,normal,cpu,kube-scheduler,100.2,12.97,687.3,0,14400
synthetic,40,20,constant,normal,cpu,kse-RefineLB,139.31,35.29,690,12.0,14400
"""


def test_the_rule_acts_on_a_real_difference_and_not_on_noise(tmp_path: Path) -> None:
    """Two of KSE's scenarios: one that RefineLB mended, one where it moved 12 pods for nothing."""
    path = tmp_path / "kse.csv"
    path.write_text(KSE, encoding="utf-8")
    every = scenarios(path)
    found = verdicts(every, window=30.0)
    assert [each.scenario.outcome for each in found] == ["better", "unclear"]
    assert [each.acts for each in found] == [True, False]
    assert all(each.right for each in found)
    assert best_fixed_spread(every) == 2
