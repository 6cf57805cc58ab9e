"""What is known of a pod's owners: their numbers, their update strategy, and who else writes their replicas."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from matching.problem import Requirement, Rules, Selector
from reactor.cluster.decoding.decoder import Decoder, MalformedObject
from reactor.cluster.kinds import Kind
from reactor.cluster.records import LabelSelector, Workload

META = {"name": "web", "namespace": "shop", "uid": "d", "resourceVersion": "5", "generation": 7}
REPLICAS: dict[str, Any] = {"f:spec": {"f:replicas": {}}}
STATUS_REPLICAS: dict[str, Any] = {"f:status": {"f:replicas": {}}, "f:spec": {"f:template": {}}}


def decode(kind: Kind, spec: object = None, status: object = None, **meta: Any) -> Workload | MalformedObject:
    text = msgspec.json.encode({"metadata": {**META, **meta}, "spec": spec or {}, "status": status or {}})
    found = Decoder().decode(kind, text)
    assert isinstance(found, Workload | MalformedObject)
    return found


def workload(kind: Kind, spec: object = None, status: object = None, **meta: Any) -> Workload:
    found = decode(kind, spec, status, **meta)
    assert isinstance(found, Workload), found
    return found


def test_the_numbers_of_a_deployment() -> None:
    found = workload(
        Kind.DEPLOYMENTS,
        {"replicas": 4, "paused": True, "minReadySeconds": 9, "selector": {"matchLabels": {"app": "web"}}},
        {
            "observedGeneration": 6,
            "replicas": 5,
            "readyReplicas": 3,
            "availableReplicas": 2,
            "updatedReplicas": 1,
            "terminatingReplicas": 1,
        },
    )
    assert (found.generation, found.observed_generation) == (7, 6)
    assert (found.replicas, found.existing, found.ready, found.available, found.updated) == (4, 5, 3, 2, 1)
    assert found.terminating == 1
    assert found.paused
    assert found.min_ready_seconds == 9
    assert found.selector == LabelSelector((Requirement("app", "In", ("web",)),))


TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": {"app": "web", "pod-template-hash": "1a2b"}},
    "spec": {"containers": [{"name": "c"}], "nodeSelector": {"zone": "a"}},
}


@pytest.mark.parametrize("kind", [Kind.REPLICA_SETS, Kind.STATEFUL_SETS])
def test_the_rules_of_the_template_are_decoded_where_there_are_pods(kind: Kind) -> None:
    assert workload(kind, {"replicas": 1, "template": TEMPLATE}).rules == Rules(node_selector=(("zone", "a"),))
    assert workload(kind, {"replicas": 0, "template": TEMPLATE}).rules is None
    assert workload(kind, {"replicas": 1}).rules is None
    assert workload(Kind.DEPLOYMENTS, {"replicas": 1, "template": TEMPLATE}).rules is None


def test_match_label_keys_in_a_template_refer_to_its_labels() -> None:
    spread = {"topologyKey": "zone", "maxSkew": 1, "matchLabelKeys": ["pod-template-hash"], "labelSelector": {}}
    spec = {**TEMPLATE["spec"], "topologySpreadConstraints": [spread]}
    found = workload(Kind.REPLICA_SETS, {"template": {**TEMPLATE, "spec": spec}}).rules
    assert found is not None
    assert found.spread[0].selector == Selector((Requirement("pod-template-hash", "In", ("1a2b",)),))


def test_a_template_that_cannot_be_read_is_named() -> None:
    found = decode(Kind.REPLICA_SETS, {"template": {"spec": {"nodeSelector": 7}}})
    assert isinstance(found, MalformedObject)
    assert found.path == "spec.template.spec.nodeSelector"


def test_an_api_server_that_does_not_count_terminating_replicas() -> None:
    assert workload(Kind.DEPLOYMENTS).terminating is None


@pytest.mark.parametrize(
    ("replicas", "rolling", "surge", "unavailable"),
    [
        (3, {}, 1, 0),
        (4, {"maxSurge": "25%", "maxUnavailable": "25%"}, 1, 1),
        (5, {"maxSurge": "50%", "maxUnavailable": "50%"}, 3, 2),
        (3, {"maxSurge": 0, "maxUnavailable": "10%"}, 0, 1),
        (3, {"maxSurge": 2, "maxUnavailable": 0}, 2, 0),
    ],
)
def test_percentages_are_rounded_as_by_the_controller(
    replicas: int, rolling: dict[str, object], surge: int, unavailable: int
) -> None:
    found = workload(Kind.DEPLOYMENTS, {"replicas": replicas, "strategy": {"rollingUpdate": rolling}})
    assert (found.update_strategy, found.max_surge, found.max_unavailable) == ("RollingUpdate", surge, unavailable)


def test_recreate_never_surges() -> None:
    found = workload(Kind.DEPLOYMENTS, {"replicas": 3, "strategy": {"type": "Recreate"}})
    assert (found.update_strategy, found.max_surge) == ("Recreate", 0)


@pytest.mark.parametrize("share", ["25", "a%", "-5%", "", "1.5%"])
def test_a_share_that_is_none_names_its_field(share: str) -> None:
    found = decode(Kind.DEPLOYMENTS, {"strategy": {"rollingUpdate": {"maxSurge": share}}})
    assert isinstance(found, MalformedObject)
    assert found.path == "spec.strategy.rollingUpdate.maxSurge"


def test_a_stateful_set_has_revisions() -> None:
    status = {"currentRevision": "web-1", "updateRevision": "web-2"}
    found = workload(Kind.STATEFUL_SETS, {"updateStrategy": {"type": "OnDelete"}}, status)
    assert (found.update_strategy, found.current_revision, found.update_revision) == ("OnDelete", "web-1", "web-2")
    assert found.max_unavailable == 1


@pytest.mark.parametrize(
    ("fields", "managers"),
    [
        ([], ()),
        ([("kubectl", REPLICAS), ("kube-controller-manager", STATUS_REPLICAS)], ("kubectl",)),
        ([("rematch", REPLICAS)], ()),
        ([("rematch-controller", REPLICAS), ("argocd-controller", REPLICAS)], ("argocd-controller",)),
        ([("helm-controller", STATUS_REPLICAS)], ()),
    ],
)
def test_who_wrote_the_replicas(fields: list[tuple[str, object]], managers: tuple[str, ...]) -> None:
    entries = [{"manager": name, "operation": "Update", "fieldsV1": written} for name, written in fields]
    assert workload(Kind.DEPLOYMENTS, managedFields=entries).replicas_managers == managers


@pytest.mark.parametrize(
    ("managers", "surge"),
    [
        (["rematch-surge/rematch/m1/0123"], "rematch/m1/0123"),
        (["rematch-surge/rematch/m1/0123", "argocd-controller"], ""),
        (["rematch"], ""),
        (["kubectl"], ""),
    ],
)
def test_a_scale_up_of_ours_is_a_mark_while_nobody_else_sets_the_replicas(managers: list[str], surge: str) -> None:
    entries = [{"manager": name, "operation": "Update", "fieldsV1": REPLICAS} for name in managers]
    assert workload(Kind.DEPLOYMENTS, managedFields=entries).surge == surge


def test_the_deployment_controller_is_no_other_owner_of_its_replica_sets() -> None:
    entries = [{"manager": "kube-controller-manager", "operation": "Update", "fieldsV1": REPLICAS}]
    owner = {"kind": "Deployment", "name": "web", "uid": "d", "controller": True}
    assert workload(Kind.REPLICA_SETS, managedFields=entries, ownerReferences=[owner]).replicas_managers == ()
    assert workload(Kind.REPLICA_SETS, managedFields=entries).replicas_managers == ("kube-controller-manager",)


@pytest.mark.parametrize(
    ("meta", "tracked_by"),
    [
        ({}, ""),
        ({"labels": {"argocd.argoproj.io/instance": "shop"}}, "argocd.argoproj.io/instance"),
        ({"annotations": {"argocd.argoproj.io/tracking-id": "shop:apps"}}, "argocd.argoproj.io/tracking-id"),
        ({"labels": {"kustomize.toolkit.fluxcd.io/name": "shop"}}, "kustomize.toolkit.fluxcd.io/name"),
        ({"labels": {"helm.toolkit.fluxcd.io/name": "shop"}}, "helm.toolkit.fluxcd.io/name"),
        ({"annotations": {"last-applied": '{"argocd.argoproj.io/instance": "was"}'}}, ""),
    ],
)
def test_gitops_tools_track_their_objects(meta: dict[str, object], tracked_by: str) -> None:
    assert workload(Kind.DEPLOYMENTS, **meta).gitops == tracked_by


def test_past_revisions_keep_no_selector() -> None:
    selector = {"matchLabels": {"app": "web"}}
    assert workload(Kind.REPLICA_SETS, {"replicas": 0, "selector": selector}).selector is None
    assert workload(Kind.REPLICA_SETS, {"replicas": 0, "selector": selector}, {"replicas": 1}).selector is not None


def test_a_malformed_workload_names_the_field() -> None:
    found = decode(Kind.DEPLOYMENTS, managedFields=[{"manager": 1, "fieldsV1": REPLICAS}])
    assert isinstance(found, MalformedObject)
    assert found.path == "metadata.managedFields[0].manager"
    found = decode(Kind.DEPLOYMENTS, {"selector": {"matchLabels": 3}})
    assert isinstance(found, MalformedObject)
    assert found.path == "spec.selector.matchLabels"
