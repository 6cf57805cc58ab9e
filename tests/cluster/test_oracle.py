"""We allow nothing that kube-scheduler refuses, judged by its own filter plugins on random clusters."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path

import pytest

from loadtests.oracle.comparison import ClusterResult, compare
from loadtests.oracle.judge import OracleFailed, Question, open_oracle
from loadtests.oracle.random_cluster import random_cluster
from loadtests.oracle.run import Run
from loadtests.same_plans.draw import LEFT_OUT, PLANNERS

pytestmark = pytest.mark.cluster
PAIRS = 20_000


@pytest.mark.timeout(1200)
async def test_nothing_that_kube_scheduler_refuses_is_allowed(tmp_path: Path) -> None:
    """At least 20,000 pairs of pod and node, and every move of every planner at its turn."""
    result = ClusterResult()
    async with open_oracle() as oracle:
        for seed in count():
            result.add(await compare(random_cluster(seed), oracle))
            if result.pairs >= PAIRS:
                break
    report = Run(range(result.clusters), tmp_path, result=result).report()
    print(report)
    assert result.clean, report
    assert not result.refused, report
    assert result.fitting > PAIRS / 10, "clusters in which nothing fits prove nothing"
    assert all(result.moves[planner] > 0 for planner in (*PLANNERS, *LEFT_OUT)), report


async def test_the_api_servers_defaults_and_rules_apply() -> None:
    pod = {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": "web", "namespace": "shop", "uid": "u", "creationTimestamp": "2026-11-16T12:00:00Z"},
        "spec": {"containers": [{"name": "main", "image": "app", "resources": {"limits": {"cpu": "1"}}}]},
    }
    wrong = json.loads(json.dumps(pod))
    wrong["spec"]["containers"][0]["resources"]["limits"]["cpu"] = "-1"
    misspelt = json.loads(json.dumps(pod))
    misspelt["spec"]["tolerationz"] = []
    async with open_oracle() as oracle:
        (stored,) = (await oracle.load([pod])).stored
        assert stored["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "1"}
        assert stored["spec"]["restartPolicy"] == "Always"
        assert "must be greater than or equal to 0" in (await oracle.load([wrong])).refused[0]
        assert 'unknown field "spec.tolerationz"' in (await oracle.load([misspelt])).refused[0]


async def test_moves_are_judged_one_after_the_other() -> None:
    """Two pods of one core change places between two nodes of one core: only with a third node can they."""
    meta = {"creationTimestamp": "2026-11-16T12:00:00Z"}
    room = {"cpu": "1", "memory": "1Gi", "pods": "10"}
    items = [
        {
            "kind": "Node",
            "apiVersion": "v1",
            "metadata": {"name": name, "uid": name, **meta},
            "status": {"allocatable": room, "capacity": room},
        }
        for name in ("n1", "n2", "n3")
    ]
    for name, node in (("a", "n1"), ("b", "n2")):
        container = {"name": "main", "image": "app", "resources": {"requests": {"cpu": "1"}}}
        items.append(
            {
                "kind": "Pod",
                "apiVersion": "v1",
                "metadata": {"name": name, "namespace": "shop", "uid": name, **meta},
                "spec": {"nodeName": node, "containers": [container]},
                "status": {"phase": "Running"},
            }
        )
    async with open_oracle() as oracle:
        assert not (await oracle.load(items)).refused
        around = [Question("a", "n3", move=True), Question("b", "n1", move=True), Question("a", "n2", move=True)]
        assert [each.fits for each in await oracle.judge(around)] == [True, True, True]
        (refused,) = await oracle.judge([Question("a", "n2", move=True)])
        assert (refused.plugin, refused.message) == ("NodeResourcesFit", "Insufficient cpu")
        first_b_leaves = [Question.eviction("b"), Question("a", "n2", move=True), Question("b", "n1")]
        assert [each.fits for each in await oracle.judge(first_b_leaves)] == [True, True, True]
        with pytest.raises(OracleFailed, match='no pod with UID "c"'):
            await oracle.judge([Question("c", "n2")])
        with pytest.raises(OracleFailed, match="n9"):
            await oracle.judge([Question("a", "n9")])
