"""How a pod would be moved, and why in this way."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from matching.problem import Strategy
from reactor.cluster.kinds import Kind
from reactor.cluster.records import (
    HorizontalPodAutoscaler,
    Owner,
    PersistentVolumeClaim,
    Pod,
    PodDisruptionBudget,
    ResourceQuota,
    Service,
    Workload,
)
from reactor.cluster.writes import BACKGROUND_ANNOTATION
from reactor.decision.strategies import Choice, Strategies
from reactor.decision.wait_reasons import Reason
from reactor.settings.model import Execution
from tests.support.cluster import make_node, make_owner, make_pdb, make_pod, make_snapshot, make_workload

DEPLOYMENT = Owner("Deployment", "web", "uid-web")
HPA = HorizontalPodAutoscaler("h", "shop", "web-hpa", "1", "Deployment", "web")
SURGES = {Strategy.SCALE_SURGE, Strategy.RELEASE_SURGE}


def owners(replicas: int = 1, *, replica_set: dict[str, Any] | None = None, **deployment: Any) -> list[Workload]:
    """A Deployment and its ReplicaSet, as they are when nothing is going on."""
    done: dict[str, Any] = {"replicas": replicas, "existing": replicas, "updated": replicas, "ready": replicas}
    limits = {"update_strategy": "RollingUpdate", "max_surge": 1, "max_unavailable": 0}
    made = {"owner": DEPLOYMENT, "replicas": replicas, "existing": replicas, **(replica_set or {})}
    return [make_workload(DEPLOYMENT, **(done | limits | deployment)), make_workload(make_owner(), **made)]


def choose(*pods: Pod, execution: dict[str, Any] | None = None, **cluster: Any) -> Choice:
    """Of the first pod."""
    pods = pods or (make_pod(),)
    cluster.setdefault("workloads", owners(len(pods)))
    snapshot = make_snapshot(pods, [make_node()], **cluster)
    return Strategies(snapshot, Execution.model_validate(execution or {})).of(pods[0])


def test_a_deployment_that_nobody_else_scales_is_scaled() -> None:
    assert choose() == Choice(Strategy.SCALE_SURGE, "scale surge: nobody else sets the replicas of Deployment web")


SERVICE = Service("s", "shop", "web", "1", {"app": "web"})


@pytest.mark.parametrize(
    ("pod", "cluster", "strategy"),
    [
        ({}, {"services": (SERVICE,)}, Strategy.RELEASE_SURGE),
        ({}, {"unread": frozenset({Kind.SERVICES})}, Strategy.RELEASE_SURGE),
        ({"pre_stop": True}, {"services": (SERVICE,)}, Strategy.SCALE_SURGE),
        ({}, {"services": (structs.replace(SERVICE, namespace="bank"),)}, Strategy.SCALE_SURGE),
        ({}, {"services": (structs.replace(SERVICE, selector={"app": "db"}),)}, Strategy.SCALE_SURGE),
        ({}, {"services": (structs.replace(SERVICE, selector={}),)}, Strategy.SCALE_SURGE),
        ({}, {"services": (SERVICE,), "execution": {"strategies": ["scaleSurge", "evict"]}}, Strategy.SCALE_SURGE),
        ({}, {"services": (SERVICE,), "workloads": [make_workload(make_owner())]}, Strategy.SCALE_SURGE),
    ],
)
def test_a_served_pod_without_hook_leaves_its_services_before_it_ends(
    pod: dict[str, Any], cluster: dict[str, Any], strategy: Strategy
) -> None:
    found = choose(make_pod(**pod), **cluster)
    assert found.strategy is strategy
    assert ("no preStop hook" in found.reason) is (strategy is Strategy.RELEASE_SURGE)


def test_a_bare_replica_set_is_scaled() -> None:
    assert choose(workloads=[make_workload(make_owner())]).strategy is Strategy.SCALE_SURGE


@pytest.mark.parametrize(
    ("cluster", "why"),
    [
        ({"hpas": (HPA,)}, "HorizontalPodAutoscaler web-hpa sets the replicas of Deployment web"),
        ({"workloads": owners(gitops="argocd.argoproj.io/instance")}, "GitOps (argocd.argoproj.io/instance)"),
        ({"workloads": owners(replicas_managers=("argocd-controller",))}, "argocd-controller sets the replicas"),
        ({"workloads": owners(replicas_managers=("kubectl", "helm-controller"))}, "helm-controller sets the replicas"),
        ({"workloads": owners(owner=Owner("Shop", "main", "s"))}, "Deployment web belongs to Shop main"),
        ({"unread": frozenset({Kind.HPAS})}, "horizontalpodautoscalers may not be read"),
    ],
)
def test_replicas_that_somebody_else_sets_are_left_alone(cluster: dict[str, Any], why: str) -> None:
    found = choose(**cluster)
    assert found.strategy is Strategy.RELEASE_SURGE
    assert why in found.reason


@pytest.mark.parametrize("manager", ["kubectl", "kubectl-client-side-apply", "helm", "kube-controller-manager"])
def test_people_and_a_past_autoscaler_do_not_put_the_replicas_back(manager: str) -> None:
    assert choose(workloads=owners(replicas_managers=(manager,))).strategy is Strategy.SCALE_SURGE


def test_an_autoscaler_of_another_namespace_or_kind_is_none() -> None:
    others = (
        HorizontalPodAutoscaler("h", "bank", "web", "1", "Deployment", "web"),
        HorizontalPodAutoscaler("i", "shop", "web", "1", "StatefulSet", "web"),
    )
    assert choose(hpas=others).strategy is Strategy.SCALE_SURGE


def claim(**fields: Any) -> tuple[PersistentVolumeClaim, ...]:
    return (PersistentVolumeClaim("c", "shop", "data", "1", "pv", **fields),)


STATEFUL = make_owner("db", "StatefulSet")
NEVER_SURGED: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({}, {"workloads": owners(2, update_strategy="Recreate", max_surge=0)}, "Recreate"),
    ({}, {"workloads": owners(2, max_surge=0)}, "maxSurge 0"),
    ({"pvcs": ("data",)}, {"pvcs": claim()}, "claim data is for one node at a time"),
    ({"pvcs": ("data",)}, {"pvcs": claim(exclusive=True)}, "claim data is for one node at a time"),
    ({"owner": STATEFUL}, {"workloads": [make_workload(STATEFUL, replicas=2)]}, "StatefulSet db cannot have one pod"),
    ({"annotations": {BACKGROUND_ANNOTATION: ""}}, {}, "in the background"),
    ({}, {"workloads": [make_workload(make_owner(), replicas=2, owner=Owner("Rollout", "r", "x"))]}, "Rollout r"),
    (
        {},
        {
            "workloads": [make_workload(make_owner(), replicas=2)],
            "hpas": (HorizontalPodAutoscaler("h", "shop", "a", "1", "ReplicaSet", "web-1a2b"),),
        },
        "a ReplicaSet without Deployment cannot let one pod go",
    ),
]


@pytest.mark.parametrize(("pod", "cluster", "why"), NEVER_SURGED)
def test_where_no_surge_is_possible_the_pod_is_evicted(pod: dict[str, Any], cluster: dict[str, Any], why: str) -> None:
    found = choose(make_pod(**pod), make_pod("web-2", **pod), **cluster)
    assert found.strategy is Strategy.EVICT
    assert found.reason.startswith("eviction: ")
    assert why in found.reason


def test_a_claim_for_many_nodes_does_not_prevent_a_surge() -> None:
    found = choose(make_pod(pvcs=("data",)), pvcs=claim(many_nodes=True))
    assert found.strategy is Strategy.SCALE_SURGE


@pytest.mark.parametrize(
    ("left", "enough"),
    [
        ({"pods": 0.0}, False),
        ({"count/pods": -1.0}, False),
        ({"requests.cpu": 0.4}, False),
        ({"memory": 1.0}, False),
        ({"limits.cpu": 0.0}, False),
        ({"pods": 1.0, "requests.cpu": 0.5, "limits.memory": 1.0, "services": 0.0}, True),
        ({"requests.nvidia.com/gpu": 0.0}, True),
    ],
)
def test_a_surge_needs_a_quota_that_has_room_for_one_pod_more(left: dict[str, float], enough: bool) -> None:
    pods = (make_pod(), make_pod("web-2"))
    quotas = (ResourceQuota("q", "shop", "limits", "1", left), ResourceQuota("r", "bank", "other", "1", {"pods": 0.0}))
    found = choose(*pods, quotas=quotas)
    assert found.strategy is (Strategy.SCALE_SURGE if enough else Strategy.EVICT)
    assert ("ResourceQuota limits" in found.reason) is not enough


WAITS: list[tuple[list[Workload], str]] = [
    (owners(paused=True), "is paused"),
    (owners(generation=3, observed_generation=2), "not carried out yet"),
    (owners(replica_set={"generation": 3, "observed_generation": 2}), "not carried out yet"),
    (owners(updated=0), "a rollout of Deployment web is in progress"),
    (owners(existing=2), "a rollout of Deployment web is in progress"),
    (owners(replicas=1, replica_set={"replicas": 0}), "a rollout of Deployment web is in progress"),
    (owners(replicas=3), "has 1 pods and wants 3"),
    ([make_workload(make_owner(), replicas=0)], "has 1 pods and wants 0"),
]


@pytest.mark.parametrize(("workloads", "why"), WAITS)
@pytest.mark.parametrize("strategies", [["scaleSurge", "evict"], ["evict"]])
def test_an_owner_that_somebody_changes_is_waited_for(
    workloads: list[Workload], why: str, strategies: list[str]
) -> None:
    found = choose(workloads=workloads, execution={"strategies": strategies, "evictSingleReplicas": True})
    assert (found.strategy, found.code) == (None, Reason.OWNER_BUSY)
    assert why in found.reason


def test_pods_that_end_do_not_count_as_replicas() -> None:
    pods = (make_pod(), make_pod("web-2", deleting=1.0), make_pod("web-3", phase="Failed"))
    assert choose(*pods, workloads=owners(1)).strategy is Strategy.SCALE_SURGE


def test_a_stateful_set_between_two_revisions_is_waited_for() -> None:
    pods = (make_pod(owner=STATEFUL), make_pod("web-2", owner=STATEFUL))
    between = make_workload(STATEFUL, replicas=2, current_revision="db-1", update_revision="db-2")
    found = choose(*pods, workloads=[between])
    assert (found.strategy, found.code) == (None, Reason.OWNER_BUSY)
    assert "between two revisions" in found.reason
    settled = make_workload(STATEFUL, replicas=2, current_revision="db-2", update_revision="db-2")
    assert choose(*pods, workloads=[settled]).strategy is Strategy.EVICT


EVICT_ALONE = {"strategies": ["evict"]}


@pytest.mark.parametrize("setting", [False, True])
def test_a_single_replica_is_evicted_only_where_the_setting_allows_it(setting: bool) -> None:
    execution = {**EVICT_ALONE, "evictSingleReplicas": setting}
    found = choose(execution=execution)
    assert found.strategy is (Strategy.EVICT if setting else None)
    assert choose(execution={"evictSingleReplicas": setting}).strategy is Strategy.SCALE_SURGE
    assert setting or (found.code is Reason.LAST_REPLICA and "execution.evictSingleReplicas" in found.reason)


@pytest.mark.parametrize(
    ("replicas", "ready", "unavailable", "evicts"),
    [
        (2, 2, 0, True),
        (2, 1, 0, False),
        (3, 3, 0, True),
        (3, 2, 0, False),
        (4, 3, 2, True),
        (4, 2, 2, False),
        (2, 2, 2, True),
        (2, 1, 2, False),
    ],
)
def test_an_eviction_leaves_enough_ready_replicas(replicas: int, ready: int, unavailable: int, evicts: bool) -> None:
    pods = [make_pod(f"web-{at}", ready=at <= ready) for at in range(1, replicas + 1)]
    found = choose(*pods, workloads=owners(replicas, max_unavailable=unavailable), execution=EVICT_ALONE)
    assert found.strategy is (Strategy.EVICT if evicts else None)
    assert evicts or found.code is Reason.LAST_REPLICA


@given(
    replicas=st.integers(2, 6),
    ready=st.integers(0, 6),
    unavailable=st.integers(0, 6),
    of_ready=st.booleans(),
)
def test_no_eviction_goes_below_the_least_number_of_ready_replicas(
    replicas: int, ready: int, unavailable: int, of_ready: bool
) -> None:
    pods = [make_pod(f"web-{at}", ready=at <= ready) for at in range(1, replicas + 1)]
    pods.sort(key=lambda pod: pod.ready is not of_ready)
    found = choose(*pods, workloads=owners(replicas, max_unavailable=unavailable), execution=EVICT_ALONE)
    before, after = (sum(pod.ready for pod in left) for left in (pods, pods[1:]))
    least = max(1, replicas - max(1, unavailable))
    assert (found.strategy is Strategy.EVICT) == (after >= least or after == before)


def pdb(**fields: Any) -> PodDisruptionBudget:
    found = make_pdb("web-pdb", 0)
    return PodDisruptionBudget(**({name: getattr(found, name) for name in found.__struct_fields__} | fields))


@pytest.mark.parametrize("strategies", [["scaleSurge", "releaseSurge", "evict"], ["evict"]])
def test_a_pdb_that_allows_nothing_in_principle_means_hands_off(strategies: list[str]) -> None:
    found = choose(pdbs=(pdb(never=True),), execution={"strategies": strategies, "evictSingleReplicas": True})
    assert (found.strategy, found.code) == (None, Reason.PDB)
    assert "ever" in found.reason
    both = choose(pdbs=(make_pdb("some", 1), pdb(never=True)))
    assert both.strategy is None


def test_a_pdb_that_is_spent_is_surged_past() -> None:
    pods = (make_pod(), make_pod("web-2"))
    assert choose(*pods, pdbs=(pdb(),)).strategy is Strategy.SCALE_SURGE
    found = choose(*pods, pdbs=(pdb(),), execution=EVICT_ALONE)
    assert (found.strategy, found.code) == (None, Reason.PDB)
    several = (make_pdb("one", 5), make_pdb("two", 5))
    assert choose(*pods, pdbs=several).strategy is Strategy.SCALE_SURGE
    assert choose(*pods, pdbs=several, execution=EVICT_ALONE).code is Reason.PDB


@pytest.mark.parametrize(
    ("fields", "evicts"),
    [
        ({"current_healthy": 1, "desired_healthy": 1}, True),
        ({"current_healthy": 0, "desired_healthy": 1}, False),
        ({"always_allows_unhealthy": True}, True),
        ({}, False),
    ],
)
def test_an_unready_pod_is_evicted_where_the_eviction_api_would(fields: dict[str, Any], evicts: bool) -> None:
    pods = (make_pod(ready=False), make_pod("web-2"))
    assert choose(*pods, pdbs=(pdb(**fields),), execution=EVICT_ALONE).strategy is (Strategy.EVICT if evicts else None)
    ready = (make_pod(), make_pod("web-2"))
    assert choose(*ready, pdbs=(pdb(**fields),), execution=EVICT_ALONE).strategy is None


@pytest.mark.parametrize(
    ("strategies", "cluster", "expected"),
    [
        (["releaseSurge", "scaleSurge", "evict"], {}, Strategy.RELEASE_SURGE),
        (["evict", "scaleSurge"], {}, Strategy.EVICT),
        (["scaleSurge", "evict"], {"hpas": (HPA,)}, Strategy.EVICT),
        (["scaleSurge"], {"hpas": (HPA,)}, None),
        (["scaleSurge", "releaseSurge"], {"workloads": owners(2, max_surge=0)}, None),
        (["releaseSurge"], {"workloads": [make_workload(make_owner(), replicas=2)]}, None),
    ],
)
def test_the_settings_say_what_is_allowed_and_preferred(
    strategies: list[str], cluster: dict[str, Any], expected: Strategy | None
) -> None:
    found = choose(make_pod(), make_pod("web-2"), execution={"strategies": strategies}, **cluster)
    assert found.strategy is expected
    assert expected is not None or found.code is Reason.NO_STRATEGY


def test_whether_a_planned_strategy_is_still_possible() -> None:
    pods = [make_pod(), make_pod("web-2")]
    facts: dict[str, Any] = {"workloads": owners(2), "hpas": (HPA,), "pdbs": (pdb(),)}
    strategies = Strategies(make_snapshot(pods, [make_node()], **facts), Execution())
    assert strategies.of(pods[0], Strategy.RELEASE_SURGE).strategy is Strategy.RELEASE_SURGE
    scaled, evicted = (strategies.of(pods[0], each) for each in (Strategy.SCALE_SURGE, Strategy.EVICT))
    assert (scaled.strategy, scaled.code) == (None, Reason.NO_STRATEGY)
    assert "web-hpa" in scaled.reason
    assert (evicted.strategy, evicted.code) == (None, Reason.PDB)


def test_a_pod_whose_owner_is_gone_is_not_asked_about_here() -> None:
    assert choose(workloads=[]).strategy is Strategy.EVICT
