"""From a snapshot to a plan: the pods of a starved pair behind a PDB get a node, although the PDB allows nothing."""

from __future__ import annotations

from typing import Any

import pytest

from matching.plan import Plan
from matching.planners.stable.planner import StablePlanner
from matching.problem import Strategy
from reactor.cluster.records import HorizontalPodAutoscaler, Owner, PodDisruptionBudget
from reactor.decision.decide import Wait, decide
from reactor.decision.wait_reasons import Reason
from reactor.planning.problems import rematch_problem
from tests.support.cluster import (
    GIB,
    make_eligibility,
    make_node,
    make_owner,
    make_pdb,
    make_pod,
    make_settings,
    make_snapshot,
    make_workload,
)

DEPLOYMENT = Owner("Deployment", "web", "uid-web")
DEFAULT = {"strategies": ["scaleSurge", "releaseSurge", "evict"]}


def pdb(**fields: Any) -> PodDisruptionBudget:
    known = make_pdb("web-pdb", 0)
    return PodDisruptionBudget(**({name: getattr(known, name) for name in known.__struct_fields__} | fields))


def planned(budget: PodDisruptionBudget, execution: dict[str, Any], **cluster: Any) -> tuple[Plan, tuple[Wait, ...]]:
    """Two replicas that a busy node starves: their probes fail, and at the moment neither is Ready."""
    pods = [make_pod(f"web-{at}", ready=False) for at in (1, 2)]
    noise = make_pod("noise-1")
    status: dict[str, Any] = {
        "replicas": 2,
        "existing": 2,
        "updated": 2,
        "update_strategy": "RollingUpdate",
        "max_surge": 1,
    }
    workloads = [
        make_workload(DEPLOYMENT, **status),
        make_workload(make_owner(), replicas=2, existing=2, owner=DEPLOYMENT),
        make_workload(make_owner("noise-1a2b")),
    ]
    snapshot = make_snapshot(
        [*pods, noise],
        [make_node("n1"), make_node("n2")],
        workloads=workloads,
        pdbs=(budget,),
        failures={"web-1": 20.0, "web-2": 20.0},
        usage={"web-1": (0.9, GIB), "web-2": (0.9, GIB), "noise-1": (2.1, GIB)},
        node_usage={"n1": (3.95, GIB), "n2": (0.1, GIB)},
        **cluster,
    )
    eligibility = make_eligibility(snapshot, make_settings(mode="act", execution=execution))
    decision = decide(eligibility)
    return StablePlanner().plan(rematch_problem(eligibility, decision)), decision.waits


@pytest.mark.parametrize(
    "counts",
    [{"current_healthy": 0, "desired_healthy": 1}, {"current_healthy": 0, "desired_healthy": 2, "expected_pods": 2}],
    ids=["minAvailable 1", "minAvailable 2"],
)
def test_a_starved_pair_behind_a_spent_pdb_is_moved_by_surge(counts: dict[str, int]) -> None:
    plan, waits = planned(pdb(**counts), DEFAULT)
    assert waits == ()
    assert {move.pod for move in plan.moves} & {"shop/web-1", "shop/web-2"}
    for move in plan.moves:
        assert (move.target, move.strategy) == ("n2", Strategy.SCALE_SURGE)
        assert move.reasons[-1] == "scale surge: nobody else sets the replicas of Deployment web"
    assert plan.certificate.feasible


def test_the_same_pair_under_an_autoscaler_is_released() -> None:
    hpa = HorizontalPodAutoscaler("h", "shop", "web", "1", "Deployment", "web")
    plan, _ = planned(pdb(current_healthy=0, desired_healthy=1), DEFAULT, hpas=(hpa,))
    assert {move.strategy for move in plan.moves} == {Strategy.RELEASE_SURGE}


def test_by_eviction_alone_the_pair_waits_for_its_pdb() -> None:
    plan, waits = planned(pdb(current_healthy=0, desired_healthy=1), {"strategies": ["evict"]})
    assert plan.moves == ()
    assert [(wait.pod, wait.reason) for wait in waits] == [("shop/web-1", Reason.PDB), ("shop/web-2", Reason.PDB)]


def test_a_pdb_that_never_allows_anything_keeps_the_pair_where_it_is() -> None:
    plan, waits = planned(pdb(never=True), DEFAULT)
    assert plan.moves == ()
    assert {wait.reason for wait in waits} == {Reason.PDB}
