"""Eligibility: every check gives its reason, and the bulk form never misses a pod that the single-pod form finds."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matching.problem import PodTerm, Rules, Taint
from reactor.cluster.records import Namespace, PersistentVolume, PersistentVolumeClaim, Pod
from reactor.decision.cooldowns import Backoff, Cooldowns, Lineage
from reactor.decision.eligibility import (
    CHECKS,
    DO_NOT_MOVE,
    PROTECTED,
    Eligibility,
    Ineligible,
    Management,
    Veto,
)
from reactor.decision.wait_reasons import Reason
from reactor.state.snapshot import Needs
from reactor.state.steering import SteeringStatus
from tests.support.clock import NOW
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

NAMESPACES = {name: Namespace(name, f"uid-{name}", "", {}) for name in ("shop", "kube-system")}
MEASURED = {"web-1": (0.2, GIB)}

VETOES: list[tuple[Veto, dict[str, Any], str]] = [
    (Veto.TERMINATING, {"deleting": NOW}, "deleted"),
    (Veto.FINISHED, {"phase": "Succeeded"}, "Succeeded"),
    (Veto.POD_GROUP, {"group": "train"}, "PodGroup train"),
    (
        Veto.EVICTION_IN_PROGRESS,
        {"annotations": {"descheduler.alpha.kubernetes.io/eviction-in-progress": "true"}},
        "in the background",
    ),
    (Veto.FINISHED, {"phase": "Failed"}, "Failed"),
    (Veto.MIRROR, {"mirror": True}, "static"),
    (Veto.MIRROR, {"owner": make_owner("n1", "Node")}, "static"),
    (Veto.KUBE_SYSTEM, {"namespace": "kube-system"}, "kube-system"),
    (Veto.SYSTEM_CRITICAL, {"priority_class": "system-node-critical"}, "system-node-critical"),
    (Veto.SYSTEM_CRITICAL, {"priority_class": "system-cluster-critical"}, "system-cluster-critical"),
    (Veto.SYSTEM_CRITICAL, {"priority": 2_000_000_000}, "2000000000"),
    (Veto.NO_CONTROLLER, {"owner": None}, "create it again"),
    (Veto.DAEMON_SET, {"owner": make_owner("agent", "DaemonSet")}, "agent"),
    (Veto.JOB, {"owner": make_owner("import", "Job")}, "import"),
    (Veto.ANNOTATION, {"annotations": {"rematch.io/do-not-move": "true"}}, "rematch.io/do-not-move"),
    (Veto.ANNOTATION, {"annotations": {"rematch.io/do-not-move": ""}}, "rematch.io/do-not-move"),
    (
        Veto.ANNOTATION,
        {"annotations": {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}},
        "cluster-autoscaler.kubernetes.io/safe-to-evict",
    ),
    (Veto.ANNOTATION, {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}, "karpenter.sh/do-not-disrupt"),
    (
        Veto.ANNOTATION,
        {"annotations": {"descheduler.alpha.kubernetes.io/prefer-no-eviction": ""}},
        "descheduler.alpha.kubernetes.io/prefer-no-eviction",
    ),
    (Veto.LOCAL_DATA, {"local_data": ("emptyDir:cache", "hostPath:logs")}, "emptyDir:cache, hostPath:logs"),
]
ODD_PODS: list[dict[str, Any]] = [
    {"namespace": "kube-system"},
    {"deleting": NOW},
    {"phase": "Succeeded"},
    {"mirror": True},
    {"priority_class": "system-node-critical"},
    {"priority": 2_000_000_000},
    {"owner": None},
    {"owner": make_owner("ds", "DaemonSet")},
    {"owner": make_owner("job", "Job")},
    {"owner": make_owner("n1", "Node")},
    {"annotations": {DO_NOT_MOVE: "true"}},
    {"local_data": ("emptyDir cache",)},
    {"pvcs": ("data",)},
    {"unsupported": ("resourceClaims",)},
    {"scheduler_name": "default-scheduler"},
    {"group": "train"},
    {"annotations": {"descheduler.alpha.kubernetes.io/eviction-in-progress": "true"}},
]
ODD_SETTINGS: list[dict[str, Any]] = [
    {"managed": {"namespaces": ["other"]}},
    {"managed": {"labelSelector": "app=other"}},
    {"managed": {"schedulerName": "other"}},
]
ODD_CLUSTERS: list[dict[str, Any]] = [
    {"usage": {}},
    {"age": 3600.0},
    {"workloads": ()},
    {"pdbs": (make_pdb("none", 0),)},
    {"workloads": (make_workload(make_owner(), replicas=2),)},
    {"workloads": (make_workload(make_owner(), paused=True),)},
    {"cooldowns": Cooldowns(lineage={"uid-web-1": Lineage(NOW - 1, 1)})},
    {"cooldowns": Cooldowns(relieved={"n1": NOW - 1})},
    {"cooldowns": Cooldowns(backoffs={"uid-web-1": Backoff(NOW + 60, Reason.PDB, "refused")})},
]


def eligibility_of(pods: list[Pod], settings: dict[str, Any] | None = None, **cluster: Any) -> Eligibility:
    cooldowns = cluster.pop("cooldowns", None)
    facts: dict[str, Any] = {"namespaces": NAMESPACES, "usage": {pod.name: (0.2, GIB) for pod in pods}}
    snapshot = make_snapshot(pods, [make_node()], **(facts | cluster))
    return make_eligibility(snapshot, make_settings(**(settings or {})), cooldowns)


def why_not(pod: Pod, settings: dict[str, Any] | None = None, **cluster: Any) -> Ineligible | None:
    """By the single-pod form; the bulk form must say the same."""
    eligibility = eligibility_of([pod], settings, **cluster)
    found = eligibility.why_not(pod)
    assert eligibility.why_not_all([pod]) == [found]
    return found


def protected(pod: Pod, settings: dict[str, Any] | None = None, **cluster: Any) -> Ineligible | None:
    return eligibility_of([pod], settings, **cluster).why_not(pod, PROTECTED)


def test_a_pod_like_most_is_eligible() -> None:
    assert why_not(make_pod()) is None
    assert why_not(make_pod(), usage={}, needs=Needs.REQUESTS) is None
    assert why_not(make_pod(), pdbs=(make_pdb("some", 1),)) is None


def test_in_bulk_no_check_suspects_a_pod_like_most() -> None:
    pods = [make_pod(), make_pod("db-1")]
    eligibility = eligibility_of(pods, pdbs=(make_pdb("some", 1),))

    assert [list(check.suspects(pods, eligibility)) for check in CHECKS] == [[]] * len(CHECKS)


@pytest.mark.parametrize("odd", ODD_PODS, ids=str)
def test_an_odd_pod_is_ineligible(odd: dict[str, Any]) -> None:
    assert why_not(make_pod(**odd)) is not None


@pytest.mark.parametrize("odd", ODD_SETTINGS, ids=str)
def test_a_pod_that_the_settings_exclude_is_ineligible(odd: dict[str, Any]) -> None:
    assert "not managed: managed." in str(why_not(make_pod(), odd))


@pytest.mark.parametrize("odd", ODD_CLUSTERS, ids=lambda odd: next(iter(odd)))
def test_other_objects_can_make_a_pod_ineligible(odd: dict[str, Any]) -> None:
    assert why_not(make_pod(), **odd) is not None


def test_an_unread_namespace_makes_every_pod_a_suspect() -> None:
    near = PodTerm("kubernetes.io/hostname", namespace_selector=None)
    pods = [make_pod(rules=Rules(pod_affinity=(near,)))]
    eligibility = eligibility_of(pods, namespaces={})

    assert {position for check in CHECKS for position in check.suspects(pods, eligibility)} == {0}


OTHERS = make_pod(scheduler_name="default-scheduler")
WORKS, FAILS = SteeringStatus(policy_works=True, problem="", tried=True), SteeringStatus(problem="install it: do this")


@pytest.mark.parametrize("names", [["shop"], ["*"], ["other", "shop"]])
def test_a_pod_of_another_scheduler_is_opted_in_by_namespace_where_it_can_be_steered(names: list[str]) -> None:
    opted_in = {"managed": {"anySchedulerNamespaces": names}}
    assert why_not(OTHERS, opted_in, steering=WORKS) is None
    found = why_not(OTHERS, opted_in, steering=FAILS)
    assert found is not None
    assert (found.code, found.text.startswith("install it: do this")) == (Reason.NO_STEERING, True)
    assert why_not(OTHERS, {**opted_in, "placement": {"steering": "none"}}, steering=FAILS) is None


@pytest.mark.parametrize("settings", [{}, {"managed": {"anySchedulerNamespaces": ["other"]}}])
def test_elsewhere_an_upgrade_does_not_widen_what_is_managed(settings: dict[str, Any]) -> None:
    found = why_not(OTHERS, settings, steering=WORKS)
    assert found is not None
    assert found.code is Reason.OTHER_SCHEDULER
    assert "managed.anySchedulerNamespaces" in found.text
    assert why_not(make_pod(), settings, steering=FAILS) is None, "the binder needs no policy"


@pytest.mark.parametrize(("veto", "fields", "evidence"), VETOES)
def test_a_protected_pod_is_named_with_the_evidence(veto: Veto, fields: dict[str, Any], evidence: str) -> None:
    found = protected(make_pod(**fields))

    assert found is not None
    assert (found.code, found.veto) == (Reason.PROTECTED, veto)
    assert evidence in found.evidence
    assert str(found).startswith(f"protected: {veto}: ")


def test_a_pod_whose_controller_is_gone_is_protected() -> None:
    found = protected(make_pod(), workloads=[])

    assert found is not None
    assert found.veto is Veto.CONTROLLER_GONE
    assert "web-1a2b" in found.evidence


def test_data_on_a_local_volume_is_protected() -> None:
    pod = make_pod(pvcs=("data",))
    pvcs = (PersistentVolumeClaim("c", "shop", "data", "1", volume="pv"),)

    found = protected(pod, pvcs=pvcs, pvs={"pv": PersistentVolume("pv", "v", "1", local=True)})

    assert found is not None
    assert found.veto is Veto.LOCAL_DATA
    assert protected(pod, pvcs=pvcs, pvs={"pv": PersistentVolume("pv", "v", "1")}) is None


def test_a_pod_with_an_ephemeral_volume_is_protected_whatever_the_setting() -> None:
    """Its replacement would get a new claim, which the binder cannot have bound."""
    pod = make_pod(pvcs=("web-1-scratch",), ephemeral_pvcs=("web-1-scratch",))
    pvcs = (PersistentVolumeClaim("c", "shop", "web-1-scratch", "1", "pv", bind_completed=True, controller=pod.uid),)
    pvs = {"pv": PersistentVolume("pv", "v", "1")}

    for settings in ({}, {"execution": {"allow_local_data": True}}):
        found = protected(pod, settings, pvcs=pvcs, pvs=pvs)
        assert found is not None
        assert found.veto is Veto.LOCAL_DATA
        assert found.evidence == "ephemeral volume web-1-scratch: the claim of a replacement could not be bound"


def test_the_setting_lifts_local_data() -> None:
    pod = make_pod(local_data=("emptyDir:cache",))

    assert protected(pod, {"execution": {"allow_local_data": True}}) is None


@pytest.mark.parametrize(
    "annotations",
    [
        {"rematch.io/do-not-move": "false"},
        {"cluster-autoscaler.kubernetes.io/safe-to-evict": "true"},
        {"karpenter.sh/do-not-disrupt": "false"},
    ],
)
def test_an_annotation_that_says_no_does_not_protect(annotations: dict[str, str]) -> None:
    assert protected(make_pod(annotations=annotations)) is None


def test_without_limits_every_pod_is_managed_but_those_of_kube_system() -> None:
    management = Management.of(make_settings())

    assert management.covers(make_pod())
    assert management.covers(make_pod(scheduler_name="default-scheduler"))
    assert not management.covers(make_pod(namespace="kube-system"))


def test_kube_system_is_not_managed_even_when_it_is_named() -> None:
    management = Management.of(make_settings(managed={"namespaces": ["kube-system"]}))

    assert "kube-system" in management.why_not(make_pod(namespace="kube-system"))


@pytest.mark.parametrize(
    ("managed", "inside", "outside", "part"),
    [
        ({"namespaces": ["shop"]}, {}, {"namespace": "bank"}, "managed.namespaces"),
        ({"label_selector": "app in (web),!canary"}, {}, {"labels": {"app": "db"}}, "managed.labelSelector"),
        ({"scheduler_name": "rematch"}, {}, {"scheduler_name": "default-scheduler"}, "managed.schedulerName"),
    ],
)
def test_each_part_of_managed_leaves_pods_out_and_says_so(
    managed: dict[str, Any], inside: dict[str, Any], outside: dict[str, Any], part: str
) -> None:
    management = Management.of(make_settings(managed=managed))

    assert not management.why_not(make_pod(**inside))
    assert part in management.why_not(make_pod(**outside))


random_pods = st.lists(
    st.lists(st.sampled_from([{}, *ODD_PODS]), max_size=2).map(
        lambda odd: {key: value for fields in odd for key, value in fields.items()}
    ),
    min_size=1,
    max_size=6,
).map(lambda pods: [make_pod(f"web-{number}", **fields) for number, fields in enumerate(pods, start=1)])
random_clusters = st.lists(st.sampled_from(ODD_CLUSTERS), max_size=2).map(
    lambda odd: {key: value for fields in odd for key, value in fields.items()}
)


@given(random_pods, st.sampled_from([{}, *ODD_SETTINGS]), random_clusters)
def test_the_bulk_form_of_every_check_agrees_with_its_single_pod_form(
    pods: list[Pod], settings: dict[str, Any], cluster: dict[str, Any]
) -> None:
    """A pod that is no suspect in bulk passes the check."""
    eligibility = eligibility_of(pods, settings, **cluster)

    for check in CHECKS:
        ineligible = {at for at, pod in enumerate(pods) if check.reason(pod, eligibility) is not None}
        assert ineligible <= set(check.suspects(pods, eligibility)), check.name
    assert eligibility.why_not_all(pods) == [eligibility.why_not(pod) for pod in pods]


@pytest.mark.parametrize(
    "taint", ["DeletionCandidateOfClusterAutoscaler", "ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted"]
)
def test_pods_on_a_node_that_an_autoscaler_removes_are_left_to_it(taint: str) -> None:
    pods = [make_pod(), make_pod("db-1", node="n2")]
    nodes = [make_node(taints=(Taint(taint, "PreferNoSchedule"),)), make_node("n2")]
    usage = {pod.name: (0.2, GIB) for pod in pods}
    eligibility = make_eligibility(make_snapshot(pods, nodes, namespaces=NAMESPACES, usage=usage))
    found = eligibility.why_not(pods[0])
    assert found is not None
    assert found.veto is Veto.NODE_REMOVED
    assert taint in found.evidence
    assert eligibility.why_not_all(pods) == [found, None]


@pytest.mark.parametrize(
    ("reason", "counts"),
    [(Reason.NO_BETTER_NODE, False), (Reason.OBSERVED, False), (Reason.PDB, True), (Reason.EVICTION_FAILED, True)],
)
def test_what_an_earlier_plan_thought_refuses_no_request(reason: Reason, counts: bool) -> None:
    cooldowns = Cooldowns(backoffs={"uid-web-1": Backoff(NOW + 60, reason, "keeps it where it is")})
    found = why_not(make_pod("web-1"), cooldowns=cooldowns.without_opinions())
    assert (found is not None) == counts
