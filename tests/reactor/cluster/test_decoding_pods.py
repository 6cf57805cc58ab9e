from __future__ import annotations

from typing import Any

import msgspec
import pytest

from matching.problem import Requirement, Term, Toleration
from reactor.cluster.decoding.decoder import Decoder, MalformedObject
from reactor.cluster.kinds import Kind
from reactor.cluster.records import Owner, Pod, Probe
from tests.reactor.cluster.truth import pod_json

START = 1794790178.0  # 2026-11-16T00:49:38Z


def decode(decoder: Decoder | None = None, /, **sections: Any) -> Pod:
    record = (decoder or Decoder()).decode(Kind.PODS, msgspec.json.encode(pod_json("web-1", **sections)))
    assert isinstance(record, Pod), record
    return record


def refuse(**sections: Any) -> MalformedObject:
    record = Decoder().decode(Kind.PODS, msgspec.json.encode(pod_json("web-1", **sections)))
    assert isinstance(record, MalformedObject)
    return record


def container(name: str = "app", /, **fields: Any) -> dict[str, Any]:
    return {"name": name, **fields}


def requesting(**requests: str) -> dict[str, Any]:
    return container(resources={"requests": requests})


def test_defaults_where_the_api_omits_a_field() -> None:
    pod = decode(spec={"containers": [container(livenessProbe={"httpGet": {"port": 80}})]}, status={"phase": None})
    assert pod.scheduler_name == "default-scheduler"
    assert pod.phase == "Pending"
    assert pod.node is None
    assert pod.containers[0].liveness == Probe(10.0, 3, 0.0)
    assert pod.owner is None
    assert not pod.ready
    assert pod.created == START


def test_identity_labels_and_kept_annotations() -> None:
    pod = decode(
        metadata={
            "labels": {"app": "web", "pod-template-hash": "abc"},
            "annotations": {
                "rematch.io/threshold": "0.7",
                "kubectl.kubernetes.io/last-applied-configuration": "x" * 1000,
                "karpenter.sh/do-not-disrupt": "true",
                "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
                "descheduler.alpha.kubernetes.io/prefer-no-eviction": "",
                "kubernetes.io/config.mirror": "1",
            },
            "ownerReferences": [
                {"kind": "Other", "name": "o", "uid": "1"},
                {"kind": "ReplicaSet", "name": "web", "uid": "2", "controller": True},
            ],
        }
    )
    assert pod.key == "default/web-1"
    assert pod.template_hash == "abc"
    assert pod.owner == Owner("ReplicaSet", "web", "2")
    assert "kubectl.kubernetes.io/last-applied-configuration" not in pod.annotations
    assert len(pod.annotations) == 5
    assert pod.mirror


def test_ready_needs_the_condition_and_no_deletion() -> None:
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-16T00:49:40Z"}
    assert decode(status={"conditions": [ready]}).ready_since == START + 2
    scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-11-16T00:49:39Z"}
    assert decode(status={"conditions": [scheduled, ready]}).scheduled == START + 1
    assert decode(status={"conditions": [{**scheduled, "status": "False"}]}).scheduled is None
    assert decode(status={"conditions": [ready]}).ready
    assert not decode(status={"conditions": [ready | {"status": "False"}]}).ready
    deleting = decode(metadata={"deletionTimestamp": "2026-11-16T00:50:08Z"}, status={"conditions": [ready]})
    assert not deleting.ready
    assert deleting.deleting == START + 30


def test_a_hook_before_the_end_counts_where_every_container_has_one() -> None:
    hook = container("a", lifecycle={"preStop": {"sleep": {"seconds": 5}}})
    started = container("b", lifecycle={"postStart": {"exec": {"command": ["true"]}}, "preStop": None})
    assert decode(spec={"containers": [hook]}).pre_stop
    assert not decode(spec={"containers": [hook, container("b")]}).pre_stop
    assert not decode(spec={"containers": [hook, started]}).pre_stop


def test_containers_and_sidecars_with_their_probes_and_restarts() -> None:
    running = {"running": {"startedAt": "2026-11-16T00:49:39Z"}}
    pod = decode(
        spec={
            "containers": [container(livenessProbe={"periodSeconds": 5, "timeoutSeconds": 2, "failureThreshold": 1})],
            "initContainers": [
                container("setup"),
                container("proxy", restartPolicy="Always", livenessProbe={"initialDelaySeconds": 3}),
            ],
        },
        status={
            "containerStatuses": [{"name": "app", "restartCount": 4, "state": running}],
            "initContainerStatuses": [{"name": "proxy", "restartCount": 1, "state": {"waiting": {"reason": "x"}}}],
        },
    )
    assert [each.name for each in pod.containers] == ["app", "proxy"]
    assert pod.containers[0].liveness == Probe(5.0, 1, 0.0)
    assert (pod.containers[0].restarts, pod.containers[0].started) == (4, START + 1)
    assert pod.containers[1].liveness == Probe(10.0, 3, 3.0)
    assert (pod.containers[1].restarts, pod.containers[1].started) == (1, None)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"containers": [requesting(cpu="100m"), requesting(cpu="200m", memory="1Mi")]}, {"cpu": 0.3, "memory": 2**20}),
        (
            {"containers": [requesting(cpu="1")], "initContainers": [requesting(cpu="3", memory="1k")]},
            {"cpu": 3, "memory": 1000},
        ),
        (
            {
                "containers": [requesting(cpu="1")],
                "initContainers": [
                    requesting(cpu="3"),
                    requesting(cpu="2") | {"restartPolicy": "Always"},
                    requesting(cpu="2"),
                ],
            },
            {"cpu": 4},
        ),
        (
            {
                "containers": [requesting(cpu="1")],
                "initContainers": [requesting(cpu="2") | {"restartPolicy": "Always"}],
            },
            {"cpu": 3},
        ),
        ({"containers": [requesting(cpu="1")], "overhead": {"cpu": "250m"}}, {"cpu": 1.25}),
        (
            {"containers": [requesting(cpu="1", memory="1k")], "resources": {"requests": {"cpu": "5"}}},
            {"cpu": 5, "memory": 1000},
        ),
        ({"containers": [container(resources={"limits": {"cpu": "2"}})]}, {"cpu": 2}),
        ({"containers": [container(resources={"limits": {"cpu": "2"}, "requests": {"cpu": 1}})]}, {"cpu": 1}),
        (
            {"containers": [requesting(cpu="1")], "resources": {"limits": {"cpu": "5", "memory": "1k"}}},
            {"cpu": 1, "memory": 1000},
        ),
        (
            {"containers": [requesting(cpu="100500u", memory="0.6"), requesting(cpu="100500u", memory="0.6")]},
            {"cpu": 0.201, "memory": 2},
        ),
        ({"containers": [requesting(cpu="100m")] * 3}, {"cpu": 0.3}),
        ({"containers": [container()]}, {}),
        ({"containers": [container(resources=None)]}, {}),
    ],
)
def test_effective_requests_as_kube_scheduler_counts(spec: dict[str, Any], expected: dict[str, float]) -> None:
    """Containers are added up exactly, and the sum is rounded up."""
    assert decode(spec=spec).requests == expected


def resizing(asks: str, has: str, promised: str, infeasible: bool = False, sidecar: bool = False) -> Pod:
    """A pod whose one resized container has these CPUs in its spec, in its status and allocated."""
    resized = requesting(cpu=asks) | ({"restartPolicy": "Always"} if sidecar else {})
    spec = {"initContainers": [resized], "containers": []} if sidecar else {"containers": [resized]}
    found = {
        "name": resized["name"],
        "resources": {"requests": {"cpu": has}},
        "allocatedResources": {"cpu": promised},
    }
    pending = {"type": "PodResizePending", "status": "True", "reason": "Infeasible" if infeasible else "Deferred"}
    statuses = {"initContainerStatuses" if sidecar else "containerStatuses": [found]}
    return decode(spec=spec, status={**statuses, "conditions": [pending]})


@pytest.mark.parametrize("sidecar", [False, True])
@pytest.mark.parametrize(
    ("asks", "has", "promised", "infeasible", "counted", "replacement"),
    [
        ("1", "2", "1", False, 2, 2),
        ("1", "1", "3", False, 3, 3),
        ("4", "2", "3", False, 4, 4),
        ("4", "2", "3", True, 3, 4),
        ("1", "2", "1", True, 2, 2),
    ],
)
def test_a_resize_in_flight_counts_as_for_kube_scheduler(
    asks: str, has: str, promised: str, infeasible: bool, counted: float, replacement: float, sidecar: bool
) -> None:
    """The largest of spec, actual and allocated; without the spec where the node can never make the resize. The
    replacement may ask for the spec all the same."""
    pod = resizing(asks, has, promised, infeasible, sidecar)
    assert pod.requests == {"cpu": counted}
    assert pod.replacement_requests == {"cpu": replacement}


def test_what_a_container_has_does_not_keep_a_limit_of_the_whole_pod_from_being_its_request() -> None:
    spec = {"containers": [container()], "resources": {"limits": {"cpu": "6"}}}
    status = {"containerStatuses": [{"name": container()["name"], "resources": {"requests": {"cpu": "1m"}}}]}
    assert decode(spec=spec, status=status).requests == {"cpu": 6}


def test_requests_of_containers_become_those_of_a_pod_with_a_limit() -> None:
    """Found by the oracle: so what the containers have while they are resized does not count."""
    pages = {"limits": {"hugepages-2Mi": "4Mi"}}
    spec = {"containers": [requesting(cpu="1"), container(resources=pages)], "resources": {"limits": {"cpu": "6"}}}
    status = {"containerStatuses": [{"name": container()["name"], "resources": {"requests": {"cpu": "5"}}}]}
    assert decode(spec=spec, status=status).requests == {"cpu": 1, "hugepages-2Mi": 4 * 2**20}
    resized = {"resources": {"requests": {"cpu": "3"}}}
    assert decode(spec=spec, status=resized).requests == {"cpu": 3, "hugepages-2Mi": 4 * 2**20}


def test_a_resize_of_the_whole_pod_counts_for_what_the_pod_requests() -> None:
    spec = {"containers": [requesting(cpu="1", memory="1k")], "resources": {"requests": {"cpu": "3"}}}
    status = {"resources": {"requests": {"cpu": "5", "memory": "9k"}}, "allocatedResources": {"cpu": "4"}}
    assert decode(spec=spec, status=status).requests == {"cpu": 5, "memory": 1000}
    plain = {"containers": [requesting(cpu="1")]}
    assert decode(spec=plain, status=status).requests == {"cpu": 1}


def test_an_init_container_is_counted_by_its_spec_alone() -> None:
    spec = {"containers": [], "initContainers": [requesting(cpu="1")]}
    name = spec["initContainers"][0]["name"]
    status = {"initContainerStatuses": [{"name": name, "resources": {"requests": {"cpu": "7"}}}]}
    assert decode(spec=spec, status=status).requests == {"cpu": 1}


def test_pods_of_one_template_share_their_requests_unless_their_sizes_differ() -> None:
    decoder = Decoder()
    spec = {"containers": [requesting(cpu="1")]}
    name = spec["containers"][0]["name"]
    same, bigger = (
        {"containerStatuses": [{"name": name, "resources": {"requests": {"cpu": cpu}}}]} for cpu in ("1", "2")
    )
    one, other, resized = (decode(decoder, spec=spec, status=status) for status in (same, same, bigger))
    assert one.requests is other.requests
    assert (one.requests, resized.requests) == ({"cpu": 1}, {"cpu": 2})


@pytest.mark.parametrize(("spec", "expected"), [({}, "n7"), ({"nodeName": "n1"}, None)])
def test_only_a_pending_pod_is_nominated(spec: dict[str, Any], expected: str | None) -> None:
    assert decode(spec=spec, status={"nominatedNodeName": "n7"}).nominated_node == expected


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ({"volumes": [{"name": "v", "awsElasticBlockStore": {"volumeID": "d"}}]}, "volumes"),
        ({"volumes": [{"name": "v"}]}, "volumes"),
        ({"resourceClaims": [{"name": "gpu"}]}, "resourceClaims"),
    ],
)
def test_hard_constraints_that_are_not_supported_are_named(spec: dict[str, Any], name: str) -> None:
    assert decode(spec=spec).unsupported == (name,)


@pytest.mark.parametrize(
    "spec",
    [
        {"affinity": {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{}]}}},
        {"topologySpreadConstraints": [{"topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}]},
        {"topologySpreadConstraints": [{"topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}]},
        {"containers": [container(ports=[{"containerPort": 80, "hostPort": 80}])]},
        {"containers": [requesting(**{"nvidia.com/gpu": "1", "hugepages-2Mi": "2Mi"})]},
        {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]},
        {"containers": [container(ports=[{"containerPort": 80}])]},
        {"containers": [requesting(**{"nvidia.com/gpu": "0"})]},
        {"containers": [requesting(cpu="1", memory="1", **{"ephemeral-storage": "1Gi"})]},
        {
            "volumes": [
                {"name": kind, kind: {}}
                for kind in ("configMap", "secret", "projected", "downwardAPI", "image", "nfs", "csi", "ephemeral")
            ]
        },
    ],
)
def test_soft_or_harmless_constraints_are_not(spec: dict[str, Any]) -> None:
    assert decode(spec=spec).unsupported == ()


def test_local_data_names_its_volumes() -> None:
    volumes = [
        {"name": "cache", "emptyDir": {"medium": "Memory"}},
        {"name": "host", "hostPath": {"path": "/var"}},
        {"name": "settings", "configMap": {"name": "c"}},
    ]
    pod = decode(spec={"volumes": volumes})
    assert pod.local_data == ("emptyDir:cache", "hostPath:host")
    assert pod.unsupported == ()


def test_rules_and_gates() -> None:
    terms = [
        {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}]},
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]},
    ]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    pod = decode(
        spec={
            "tolerations": [{"key": "k", "value": "v", "effect": "NoSchedule"}, {"operator": "Exists"}],
            "nodeSelector": {"disk": "ssd", "arch": "arm"},
            "affinity": {"nodeAffinity": required},
            "schedulingGates": [{"name": "wait"}],
        }
    )
    assert pod.rules.tolerations == (Toleration("k", "Equal", "v", "NoSchedule"), Toleration("", "Exists", "", ""))
    assert pod.rules.node_selector == (("arch", "arm"), ("disk", "ssd"))
    assert pod.rules.node_affinity == (
        Term(expressions=(Requirement("zone", "In", ("a", "b")),)),
        Term(fields=(Requirement("metadata.name", "In", ("n1",)),)),
    )
    assert pod.gates == ("wait",)


def test_an_affinity_without_terms_matches_no_node_and_none_matches_all() -> None:
    empty: dict[str, Any] = {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}
    }
    assert decode(spec={"affinity": empty}).rules.node_affinity == ()
    assert decode(spec={"affinity": {}}).rules.node_affinity is None


def test_pods_of_one_template_share_their_values() -> None:
    decoder = Decoder()
    sections: dict[str, Any] = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [requesting(cpu="1")], "tolerations": [{"operator": "Exists"}]},
    }
    one, other = decode(decoder, **sections), decode(decoder, **sections)
    assert one is not other
    assert one.labels is other.labels
    assert one.requests is other.requests
    assert one.rules is other.rules


@pytest.mark.parametrize(
    ("sections", "path", "problem"),
    [
        (
            {"spec": {"containers": [requesting(cpu="much")]}},
            "spec.containers[0].resources.requests.cpu",
            "'much' is not a",
        ),
        ({"spec": {"containers": [requesting(cpu="-1")]}}, "spec.containers[0].resources.requests.cpu", "negative"),
        ({"spec": {"overhead": {"cpu": "x"}}}, "spec.overhead.cpu", "'x' is not a"),
        ({"spec": {"nodeName": 7}}, "spec.nodeName", "Expected `str"),
        ({"spec": {"tolerations": [{"key": 7}]}}, "spec.tolerations[0].key", "Expected `str"),
        ({"metadata": {"labels": {"a": 1}}}, "metadata.labels[...]", "Expected `str"),
        ({"metadata": {"creationTimestamp": "soon"}}, "metadata.creationTimestamp", "Invalid RFC3339"),
        ({"status": {"conditions": "none"}}, "status.conditions", "Expected `array"),
    ],
)
def test_a_wrong_field_is_named_with_its_object(sections: dict[str, Any], path: str, problem: str) -> None:
    malformed = refuse(**sections)
    assert malformed.path == path
    assert problem in malformed.problem
    assert malformed.name == "default/web-1"
    assert malformed.key == "uid-web-1"
    assert str(malformed).startswith(f"Pod default/web-1: {path}: ")


def test_an_illegible_object_is_still_reported() -> None:
    for text in (b"[]", b'{"metadata":', b'{"metadata": 7}', b'{"metadata":{"name":"a\xff"},"spec":{}}'):
        record = Decoder().decode(Kind.PODS, text)
        assert isinstance(record, MalformedObject)
        assert record.key == ""


@pytest.mark.parametrize(
    ("sections", "group"),
    [
        ({}, ""),
        ({"spec": {"schedulingGroup": {"podGroupName": "train-0"}}}, "train-0"),
        ({"spec": {"workloadRef": {"name": "train", "podGroup": "workers"}}}, "train/workers"),
        ({"metadata": {"labels": {"scheduling.x-k8s.io/pod-group": "train"}}}, "train"),
        ({"metadata": {"annotations": {"scheduling.k8s.io/group-name": "train"}}}, "train"),
    ],
)
def test_the_group_that_a_pod_is_scheduled_with(sections: dict[str, Any], group: str) -> None:
    assert decode(Decoder(), **sections).group == group


def ended(reason: str) -> dict[str, Any]:
    return {"terminated": {"exitCode": 137, "reason": reason, "finishedAt": "2026-11-16T00:49:39Z"}}


@pytest.mark.parametrize(
    ("status", "at"),
    [
        ({"lastState": ended("Error")}, START + 1),
        ({"lastState": ended("Completed")}, START + 1),
        ({"lastState": {}, "state": ended("Error")}, START + 1),
        ({"lastState": ended("OOMKilled")}, None),
        ({"lastState": ended("StartError")}, None),
        ({}, None),
    ],
)
def test_when_a_container_ended_as_by_a_failed_liveness_probe(status: dict[str, Any], at: float | None) -> None:
    spec = {"containers": [container(livenessProbe={"periodSeconds": 5})]}
    pod = decode(spec=spec, status={"containerStatuses": [{"name": "app", "restartCount": 1, **status}]})
    assert pod.containers[0].terminated == at


HTTP = {"httpGet": {"path": "/healthz", "port": 80}}


@pytest.mark.parametrize(
    ("readiness", "ready", "fails"),
    [
        ({**HTTP, "periodSeconds": 1}, False, True),
        (HTTP, True, False),
        ({"httpGet": {"path": "/readyz", "port": 80}}, False, False),
        ({"tcpSocket": {"port": 80}}, False, False),
        (None, False, False),
    ],
)
def test_a_readiness_probe_that_asks_the_same_tells_of_liveness(readiness: Any, ready: bool, fails: bool) -> None:
    spec = {"containers": [container(livenessProbe={**HTTP, "periodSeconds": 5}, readinessProbe=readiness)]}
    running = {"name": "app", "ready": ready, "state": {"running": {"startedAt": "2026-11-16T00:49:39Z"}}}
    assert decode(spec=spec, status={"containerStatuses": [running]}).containers[0].fails_readiness is fails
