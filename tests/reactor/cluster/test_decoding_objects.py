from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from matching.problem import Requirement, Taint, Term, Volume
from reactor.cluster.decoding.common import WrongField
from reactor.cluster.decoding.decoder import Decoder, MalformedObject, key_of
from reactor.cluster.decoding.metrics import decode_node_metrics, decode_pod_metrics
from reactor.cluster.kinds import Kind
from reactor.cluster.records import (
    ConfigMap,
    CsiNode,
    Event,
    HorizontalPodAutoscaler,
    LabelSelector,
    Namespace,
    Node,
    Owner,
    PersistentVolume,
    PersistentVolumeClaim,
    PodDisruptionBudget,
    Record,
    ResourceQuota,
    VolumeAttachment,
    Workload,
)

META = {"name": "a", "namespace": "ns", "uid": "u", "resourceVersion": "5"}
EXCERPT = Path(__file__).parents[2] / "data" / "kubelet" / "events-watch-excerpt.json"


def decode(kind: Kind, **sections: Any) -> Record:
    record = Decoder().decode(kind, msgspec.json.encode({"metadata": META, **sections}))
    assert not isinstance(record, MalformedObject), record
    return record


def test_node() -> None:
    node = decode(
        Kind.NODES,
        spec={
            "taints": [{"key": "k", "effect": "NoSchedule", "timeAdded": "2026-11-16T00:49:38Z"}],
            "unschedulable": True,
        },
        status={
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}, {"type": "Hostname", "address": "a"}],
            "capacity": {"cpu": "4", "memory": "8Gi", "pods": "110"},
            "allocatable": {"cpu": "3900m", "memory": "7Gi", "pods": "110"},
            "conditions": [
                {"type": "Ready", "status": "True"},
                {"type": "MemoryPressure", "status": "True"},
                {"type": "DiskPressure", "status": "False"},
            ],
        },
    )
    assert isinstance(node, Node)
    assert node.allocatable == {"cpu": 3.9, "memory": 7 * 2**30, "pods": 110}
    assert node.taints == (Taint("k", "NoSchedule", ""),)
    assert node.addresses == ("10.0.0.1", "a")
    assert node.unschedulable
    assert node.ready
    assert node.pressure == ("MemoryPressure",)


def test_a_node_without_allocatable_offers_its_capacity() -> None:
    node = decode(Kind.NODES, status={"capacity": {"cpu": "4"}, "conditions": [{"type": "Ready", "status": "Unknown"}]})
    assert isinstance(node, Node)
    assert node.allocatable == {"cpu": 4}
    assert not node.ready


@pytest.mark.parametrize(
    ("kind", "spec", "status", "replicas"),
    [
        (Kind.DEPLOYMENTS, {"replicas": 3}, {"readyReplicas": 2}, 3),
        (Kind.REPLICA_SETS, {}, {}, 1),
        (Kind.STATEFUL_SETS, {"replicas": 0}, {}, 0),
        (Kind.DAEMON_SETS, {}, {"desiredNumberScheduled": 4, "numberReady": 3}, 4),
        (Kind.JOBS, {"parallelism": 2}, {"ready": 1}, 2),
    ],
)
def test_workloads(kind: Kind, spec: dict[str, int], status: dict[str, int], replicas: int) -> None:
    workload = decode(kind, spec=spec, status=status)
    assert isinstance(workload, Workload)
    assert workload.kind == kind.object_kind
    assert workload.replicas == replicas


def test_a_replica_set_knows_its_deployment() -> None:
    owner = {"kind": "Deployment", "name": "web", "uid": "d", "controller": True}
    workload = decode(Kind.REPLICA_SETS, metadata={**META, "ownerReferences": [owner]})
    assert isinstance(workload, Workload)
    assert workload.owner == Owner("Deployment", "web", "d")


def test_budget_selectors_none_and_empty_are_different() -> None:
    selector = {"matchLabels": {"b": "2", "a": "1"}, "matchExpressions": [{"key": "c", "operator": "Exists"}]}
    budget = decode(Kind.PDBS, spec={"selector": selector}, status={"disruptionsAllowed": 2})
    assert isinstance(budget, PodDisruptionBudget)
    assert budget.disruptions_allowed == 2
    assert budget.selector == LabelSelector(
        (Requirement("a", "In", ("1",)), Requirement("b", "In", ("2",)), Requirement("c", "Exists"))
    )
    none, everything = decode(Kind.PDBS, spec={}), decode(Kind.PDBS, spec={"selector": {}})
    assert isinstance(none, PodDisruptionBudget)
    assert isinstance(everything, PodDisruptionBudget)
    assert none.selector is None
    assert everything.selector == LabelSelector()


def test_the_small_kinds() -> None:
    assert decode(Kind.NAMESPACES, metadata={"name": "a", "labels": {"x": "y"}}) == Namespace(
        "a", "a", "", {"x": "y"}, {}
    )
    assert decode(Kind.PVCS, spec={"volumeName": "v"}) == PersistentVolumeClaim("u", "ns", "a", "5", "v")
    assert decode(Kind.CONFIG_MAPS, data={"k": "v"}) == ConfigMap("u", "ns", "a", "5", {"k": "v"})


@pytest.mark.parametrize(
    ("spec", "volume"),
    [
        ({"csi": {"driver": "disk.csi", "volumeHandle": "h"}}, Volume("disk.csi", "h")),
        ({"csi": {"driver": "disk.csi", "volumeHandle": ""}}, None),
        ({"awsElasticBlockStore": {"volumeID": "vol-1"}}, Volume("ebs.csi.aws.com", "vol-1")),
        ({"gcePersistentDisk": {"pdName": "disk-1"}}, Volume("pd.csi.storage.gke.io", "disk-1")),
        ({"azureDisk": {"diskName": "d", "diskURI": "/disks/d"}}, Volume("disk.csi.azure.com", "/disks/d")),
        ({"nfs": {"server": "s", "path": "/"}}, None),
    ],
)
def test_what_a_driver_attaches(spec: dict[str, Any], volume: Volume | None) -> None:
    found = decode(Kind.PVS, spec=spec)
    assert isinstance(found, PersistentVolume)
    assert found.attachable == volume


ZONE, EBS, GKE = "topology.kubernetes.io/zone", "topology.ebs.csi.aws.com/zone", "topology.gke.io/zone"


@pytest.mark.parametrize(
    ("source", "labels", "affinity", "expected"),
    [
        ("awsElasticBlockStore", {ZONE: "a"}, None, [{EBS: ("a",)}]),
        ("gcePersistentDisk", {"failure-domain.beta.kubernetes.io/zone": "a__b"}, None, [{GKE: ("a", "b")}]),
        ("awsElasticBlockStore", {ZONE: "a"}, [{ZONE: ["b"], "disk": ["ssd"]}], [{EBS: ("b",), "disk": ("ssd",)}]),
        ("awsElasticBlockStore", {ZONE: "a"}, [{"disk": ["ssd"]}], [{"disk": ("ssd",), EBS: ("a",)}]),
        ("awsElasticBlockStore", {}, [{"disk": ["ssd"]}], None),
        ("azureDisk", {ZONE: "a"}, None, None),
        ("csi", {ZONE: "a"}, [{ZONE: ["b"]}], None),
    ],
)
def test_a_volume_that_a_csi_driver_took_over_is_in_the_drivers_zone(
    source: str,
    labels: dict[str, str],
    affinity: list[dict[str, list[str]]] | None,
    expected: list[dict[str, tuple[str, ...]]] | None,
) -> None:
    """Found by the oracle: kube-scheduler asks the node for the driver's own label."""
    spec: dict[str, Any] = {source: {}}
    if affinity is not None:
        terms = [
            {"matchExpressions": [{"key": k, "operator": "In", "values": v} for k, v in t.items()]} for t in affinity
        ]
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
    found = decode(Kind.PVS, metadata={"name": "pv", "labels": labels}, spec=spec)
    assert isinstance(found, PersistentVolume)
    wanted = None
    if expected is not None:
        wanted = tuple(Term(tuple(Requirement(k, "In", v) for k, v in term.items())) for term in expected)
    assert found.driver_affinity == wanted


def test_limits_of_volumes_and_attachments() -> None:
    drivers = [
        {"name": "disk.csi", "nodeID": "n", "allocatable": {"count": 25}},
        {"name": "none.csi", "nodeID": "n", "allocatable": {"count": 0}},
        {"name": "file.csi", "nodeID": "n"},
        {"name": "odd.csi", "nodeID": "n", "allocatable": {}},
    ]
    limits = {"disk.csi": 25, "none.csi": 0}
    assert decode(Kind.CSI_NODES, spec={"drivers": drivers}) == CsiNode("a", "u", "5", limits)
    assert decode(Kind.CSI_NODES, spec={"drivers": None}) == CsiNode("a", "u", "5")
    spec = {"attacher": "disk.csi", "nodeName": "n1", "source": {"persistentVolumeName": "pv"}}
    assert decode(Kind.VOLUME_ATTACHMENTS, spec=spec) == VolumeAttachment("a", "u", "5", "n1", "disk.csi", "pv")
    inline = {"attacher": "disk.csi", "nodeName": "n1", "source": {"inlineVolumeSpec": {}}}
    assert decode(Kind.VOLUME_ATTACHMENTS, spec=inline) == VolumeAttachment("a", "u", "5", "n1", "disk.csi")


def test_how_far_a_claim_is_bound_and_whose_it_is() -> None:
    meta = {
        **META,
        "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
        "ownerReferences": [{"kind": "Pod", "name": "db", "uid": "p", "controller": True}],
    }
    bound = decode(Kind.PVCS, metadata=meta, spec={"volumeName": "v"}, status={"phase": "Bound"})
    assert bound == PersistentVolumeClaim("u", "ns", "a", "5", "v", bind_completed=True, controller="p")
    lost = decode(Kind.PVCS, spec={"volumeName": "v"}, status={"phase": "Lost"})
    assert lost == PersistentVolumeClaim("u", "ns", "a", "5", "v", lost=True)


def test_volumes_with_affinity_and_local_ones() -> None:
    terms = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "h", "operator": "In", "values": ["n"]}]}]}
    volume = decode(Kind.PVS, spec={"local": {"path": "/d"}, "nodeAffinity": {"required": terms}})
    assert volume == PersistentVolume("a", "u", "5", (Term((Requirement("h", "In", ("n",)),)),), local=True)
    assert decode(Kind.PVS, spec={"csi": {}}) == PersistentVolume("a", "u", "5", None, local=False)


@pytest.mark.parametrize(
    ("kind", "spec", "path"),
    [
        (Kind.PDBS, {"selector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}}, "spec.selector"),
        (Kind.PDBS, {"selector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}, "spec.selector"),
        (
            Kind.PVS,
            {
                "nodeAffinity": {
                    "required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "?"}]}]}
                }
            },
            "spec.nodeAffinity",
        ),
    ],
)
def test_a_selector_that_cannot_be_evaluated_is_reported_with_its_object(
    kind: Kind, spec: dict[str, Any], path: str
) -> None:
    """Before, it stopped every cycle: eligibility and planners evaluate the selectors of all objects."""
    found = Decoder().decode(kind, msgspec.json.encode({"metadata": META, "spec": spec}))
    assert isinstance(found, MalformedObject)
    assert (found.key, found.path) == ("u" if kind.namespaced else "a", path)


def test_keys_are_uids_where_names_come_again() -> None:
    assert key_of(Kind.PVCS, decode(Kind.PVCS)) == "u"
    assert key_of(Kind.NODES, decode(Kind.NODES)) == "a"


def test_recorded_kubelet_events() -> None:
    decoder = Decoder()
    events = []
    for line in EXCERPT.read_text().splitlines():
        record = decoder.decode(Kind.EVENTS, msgspec.json.encode(msgspec.json.decode(line)["object"]))
        assert isinstance(record, Event)
        events.append(record)
    unhealthy = [event for event in events if event.reason == "Unhealthy"]
    repeated = [event for event in unhealthy if event.count > 1]
    assert unhealthy
    assert repeated
    assert all(event.component == "kubelet" and event.type == "Warning" for event in unhealthy)
    assert all(event.field_path.startswith("spec.containers{") for event in unhealthy)
    assert all(event.last >= event.first > 1.7e9 for event in events)
    assert all(event.last > event.first for event in repeated)
    assert all("failed liveness probe" in event.message for event in events if event.reason == "Killing")
    [scheduled] = [event for event in events if event.reason == "Scheduled"]
    assert scheduled.first % 1 > 0, "eventTime has microseconds"
    assert scheduled.component == "default-scheduler"


def test_events_of_the_newer_api() -> None:
    event = decode(
        Kind.EVENTS,
        regarding={"kind": "Pod", "name": "p", "namespace": "ns", "uid": "pu"},
        note="text",
        reason="Unhealthy",
        eventTime="2026-11-16T00:49:38.5Z",
        series={"count": 9, "lastObservedTime": "2026-11-16T00:50:38.5Z"},
        reportingController="kubelet",
    )
    assert isinstance(event, Event)
    assert (event.count, event.message, event.involved_uid, event.component) == (9, "text", "pu", "kubelet")
    assert event.last - event.first == 60


def test_an_event_takes_little_memory_whatever_its_author_wrote() -> None:
    long = "x" * 1_000_000
    involved = {"kind": long, "name": long, "uid": long, "fieldPath": long}
    for reason in ("Unhealthy", long):
        event = decode(
            Kind.EVENTS, involvedObject=involved, reason=reason, type=long, message=long, source={"component": long}
        )
        assert len(msgspec.json.encode(event)) < 3000


def test_metrics_sum_the_containers() -> None:
    pod = {
        "metadata": {"name": "p", "namespace": "ns"},
        "timestamp": "2026-11-16T00:49:38Z",
        "containers": [{"usage": {"cpu": "250m", "memory": "1Mi"}}, {"usage": {"cpu": "1500000n"}}],
    }
    sample = decode_pod_metrics(msgspec.json.encode(pod))
    assert sample.cpu == pytest.approx(0.2515)
    assert sample.memory is None, "one container has no value"
    node = {"metadata": {"name": "n"}, "timestamp": "2026-11-16T00:49:38Z", "usage": {"cpu": "1", "memory": "1Gi"}}
    assert decode_node_metrics(msgspec.json.encode(node)).memory == 2**30
    with pytest.raises(WrongField, match=r"usage\.cpu: 'x' is not a quantity"):
        decode_node_metrics(msgspec.json.encode(node | {"usage": {"cpu": "x"}}))


@pytest.mark.parametrize(
    ("spec", "never"),
    [
        ({"maxUnavailable": 0}, True),
        ({"maxUnavailable": "0%"}, True),
        ({"minAvailable": "100%"}, True),
        ({"minAvailable": 1}, False),
        ({"minAvailable": 100}, False),
        ({"minAvailable": 0}, False),
        ({"minAvailable": "50%"}, False),
        ({"maxUnavailable": 1}, False),
        ({"maxUnavailable": "100%"}, False),
        ({}, False),
    ],
)
def test_a_pdb_that_allows_nothing_in_principle(spec: dict[str, object], never: bool) -> None:
    found = decode(Kind.PDBS, spec=spec)
    assert isinstance(found, PodDisruptionBudget)
    assert found.never is never


def test_what_a_pdb_counts() -> None:
    status = {"disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 2, "expectedPods": 3}
    found = decode(Kind.PDBS, spec={"unhealthyPodEvictionPolicy": "AlwaysAllow"}, status=status)
    assert isinstance(found, PodDisruptionBudget)
    assert (found.current_healthy, found.desired_healthy, found.expected_pods) == (1, 2, 3)
    assert found.always_allows_unhealthy


def test_an_autoscaler_names_its_target() -> None:
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    found = decode(Kind.HPAS, spec={"scaleTargetRef": reference, "maxReplicas": 9})
    assert found == HorizontalPodAutoscaler("u", "ns", "a", "5", "Deployment", "web")


def test_what_a_quota_leaves() -> None:
    status = {
        "hard": {"pods": "3", "requests.cpu": "2", "requests.memory": "1Gi"},
        "used": {"pods": "3", "requests.cpu": "500m", "requests.memory": "2Gi"},
    }
    found = decode(Kind.RESOURCE_QUOTAS, spec={"hard": {"pods": "9"}}, status=status)
    assert isinstance(found, ResourceQuota)
    assert found.left == {"pods": 0.0, "requests.cpu": 1.5, "requests.memory": -float(2**30)}
    scoped = decode(Kind.RESOURCE_QUOTAS, spec={"scopes": ["BestEffort"]}, status=status)
    assert isinstance(scoped, ResourceQuota)
    assert scoped.left == {}


@pytest.mark.parametrize(
    ("modes", "many"),
    [(["ReadWriteOnce"], False), (["ReadWriteOncePod"], False), (["ReadWriteMany"], True), ([], False)],
)
def test_which_claims_pods_on_several_nodes_may_use(modes: list[str], many: bool) -> None:
    found = decode(Kind.PVCS, spec={"accessModes": modes})
    assert isinstance(found, PersistentVolumeClaim)
    assert found.many_nodes is many
