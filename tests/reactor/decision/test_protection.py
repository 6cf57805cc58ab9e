from __future__ import annotations

from typing import Any

import pytest

from reactor.decision.managed import Management
from reactor.decision.protection import Veto, protection
from tests.support.clock import NOW
from tests.support.cluster import make_node, make_owner, make_pod, make_settings, make_view

VETOES: list[tuple[Veto, dict[str, Any], str]] = [
    (Veto.TERMINATING, {"deleting": NOW}, "deleted"),
    (Veto.FINISHED, {"phase": "Succeeded"}, "Succeeded"),
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


@pytest.mark.parametrize(("veto", "fields", "evidence"), VETOES)
def test_whoever_may_never_be_moved_is_named_with_the_evidence(
    veto: Veto, fields: dict[str, Any], evidence: str
) -> None:
    pod = make_pod(**fields)

    found = protection(pod, make_view([pod], [make_node()]), make_settings())

    assert found is not None
    assert found.veto is veto
    assert evidence in found.evidence


def test_an_ordinary_pod_is_not_protected() -> None:
    pod = make_pod()

    assert protection(pod, make_view([pod], [make_node()]), make_settings()) is None


def test_a_pod_whose_controller_is_gone_is_protected() -> None:
    pod = make_pod()

    found = protection(pod, make_view([pod], [make_node()], workloads=[]), make_settings())

    assert found is not None
    assert found.veto is Veto.CONTROLLER_GONE
    assert "web-1a2b" in found.evidence


def test_the_setting_lifts_local_data() -> None:
    pod = make_pod(local_data=("emptyDir:cache",))
    settings = make_settings(execution={"allow_local_data": True})

    assert protection(pod, make_view([pod], [make_node()]), settings) is None


@pytest.mark.parametrize(
    "annotations",
    [
        {"rematch.io/do-not-move": "false"},
        {"cluster-autoscaler.kubernetes.io/safe-to-evict": "true"},
        {"karpenter.sh/do-not-disrupt": "false"},
    ],
)
def test_an_annotation_that_says_no_does_not_protect(annotations: dict[str, str]) -> None:
    pod = make_pod(annotations=annotations)

    assert protection(pod, make_view([pod], [make_node()]), make_settings()) is None


def test_without_limits_every_pod_is_managed_but_those_of_kube_system() -> None:
    management = Management.of(make_settings())

    assert management.covers(make_pod())
    assert management.covers(make_pod(scheduler_name="default-scheduler"))
    assert not management.covers(make_pod(namespace="kube-system"))


def test_kube_system_is_not_managed_even_when_it_is_named() -> None:
    management = Management.of(make_settings(managed={"namespaces": ["kube-system"]}))

    assert "kube-system" in (management.why_not(make_pod(namespace="kube-system")) or "")


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

    assert management.why_not(make_pod(**inside)) is None
    assert part in (management.why_not(make_pod(**outside)) or "")
