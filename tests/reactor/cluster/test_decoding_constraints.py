"""What pods say about other pods, host ports and claims, as the API writes it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from matching.problem import HostPort, PodTerm, Preferred, Requirement, Rules, Selector, Spread, Term
from reactor.cluster.decoding.decoder import Decoder, MalformedObject
from reactor.cluster.kinds import Kind
from reactor.cluster.records import PersistentVolume, PersistentVolumeClaim, Pod
from tests.reactor.cluster.truth import pod_json

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
WEB = Selector((Requirement("app", "In", ("web",)),))


def decode(name: str = "web-1", decoder: Decoder | None = None, **sections: Any) -> Pod:
    record = (decoder or Decoder()).decode(Kind.PODS, msgspec.json.encode(pod_json(name, **sections)))
    assert isinstance(record, Pod), record
    return record


def term(**more: Any) -> dict[str, Any]:
    return {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}, **more}


def test_required_and_preferred_affinity() -> None:
    affinity = {
        "podAffinity": {REQUIRED: [term()], PREFERRED: [{"weight": 7, "podAffinityTerm": term()}]},
        "podAntiAffinity": {
            REQUIRED: [{"topologyKey": "kubernetes.io/hostname"}],
            PREFERRED: [{"weight": 9, "podAffinityTerm": term(namespaces=["b", "a"], namespaceSelector={})}],
        },
        "nodeAffinity": {
            PREFERRED: [{"weight": 3, "preference": {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}}]
        },
    }
    assert decode(spec={"affinity": affinity}).rules == Rules(
        pod_affinity=(PodTerm("zone", WEB),),
        pod_anti_affinity=(PodTerm("kubernetes.io/hostname", None),),
        preferred=Preferred(
            nodes=((3, Term((Requirement("disk", "Exists"),))),),
            with_pods=((7, PodTerm("zone", WEB)),),
            apart_from=((9, PodTerm("zone", WEB, ("a", "b"), Selector())),),
        ),
    )


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        ({}, Spread("zone")),
        ({"labelSelector": {}}, Spread("zone", Selector())),
        ({"maxSkew": 3, "minDomains": 2}, Spread("zone", max_skew=3, min_domains=2)),
        ({"nodeAffinityPolicy": "Ignore", "nodeTaintsPolicy": "Honor"}, Spread("zone", None, 1, 1, False, True)),
        ({"nodeAffinityPolicy": "Honor", "nodeTaintsPolicy": "Ignore"}, Spread("zone")),
    ],
)
def test_spread(stated: dict[str, Any], expected: Spread) -> None:
    constraint = {"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", **stated}
    assert decode(spec={"topologySpreadConstraints": [constraint]}).rules == Rules(spread=(expected,))
    soft = constraint | {"whenUnsatisfiable": "ScheduleAnyway"}
    assert decode(spec={"topologySpreadConstraints": [soft]}).rules == Rules(preferred=Preferred(spread=(expected,)))


def test_label_keys_become_part_of_the_selector_unless_the_api_server_did_it() -> None:
    labels = {"labels": {"app": "web", "pod-template-hash": "x1"}}
    affinity = {"podAffinity": {REQUIRED: [term(matchLabelKeys=["pod-template-hash", "none"])]}}
    hashed = Requirement("pod-template-hash", "In", ("x1",))
    expected = PodTerm("zone", Selector((*WEB.requirements, hashed)))
    assert decode(metadata=labels, spec={"affinity": affinity}).rules.pod_affinity == (expected,)
    merged = term(matchLabelKeys=["pod-template-hash"])
    merged["labelSelector"] = {
        "matchLabels": {"app": "web"},
        "matchExpressions": [{"key": "pod-template-hash", "operator": "In", "values": ["x1"]}],
    }
    assert decode(metadata=labels, spec={"affinity": {"podAffinity": {REQUIRED: [merged]}}}).rules.pod_affinity == (
        expected,
    )
    apart = {"podAntiAffinity": {REQUIRED: [term(mismatchLabelKeys=["pod-template-hash"])]}}
    unequal = Requirement("pod-template-hash", "NotIn", ("x1",))
    assert decode(metadata=labels, spec={"affinity": apart}).rules.pod_anti_affinity == (
        PodTerm("zone", Selector((*WEB.requirements, unequal))),
    )
    spread = {"topologyKey": "zone", "matchLabelKeys": ["pod-template-hash"], "labelSelector": {}}
    assert decode(metadata=labels, spec={"topologySpreadConstraints": [spread]}).rules.spread == (
        Spread("zone", Selector((hashed,))),
    )


def test_pods_of_a_template_share_one_rules_value() -> None:
    decoder = Decoder()
    affinity = {"podAffinity": {REQUIRED: [term(matchLabelKeys=["pod-template-hash"])]}}
    pods = [
        decode(
            f"web-{number}",
            decoder,
            metadata={"name": f"web-{number}", "labels": {"pod-template-hash": "x1", "index": str(number)}},
            spec={"affinity": affinity},
        )
        for number in range(3)
    ]
    assert len({id(pod.rules) for pod in pods}) == 1
    other = decode("web-9", decoder, metadata={"labels": {"pod-template-hash": "x2"}}, spec={"affinity": affinity})
    assert other.rules != pods[0].rules


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"ports": [{"containerPort": 80, "hostPort": 8080}]}, (HostPort(8080),)),
        ({"ports": [{"containerPort": 80}]}, ()),
        ({"ports": [{"hostPort": 53, "protocol": "UDP", "hostIP": "10.0.0.1"}]}, (HostPort(53, "UDP", "10.0.0.1"),)),
    ],
)
def test_host_ports(spec: dict[str, Any], expected: tuple[HostPort, ...]) -> None:
    assert decode(spec={"containers": [{"name": "app", **spec}]}).rules.ports == expected


def test_host_ports_of_sidecars_and_of_the_hosts_network() -> None:
    sidecar = {"name": "s", "restartPolicy": "Always", "ports": [{"hostPort": 1}]}
    starter = {"name": "i", "ports": [{"hostPort": 2}]}
    app = {"name": "app", "ports": [{"containerPort": 3}]}
    spec = {"containers": [app], "initContainers": [sidecar, starter], "hostNetwork": True}
    assert decode(spec=spec).rules.ports == (HostPort(3), HostPort(1))


def test_claims_of_volumes_and_of_ephemeral_ones() -> None:
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "c"}}, {"name": "scratch", "ephemeral": {}}]
    assert decode(spec={"volumes": volumes}).pvcs == ("c", "web-1-scratch")


def test_a_term_without_topology_key_is_named() -> None:
    wrong: dict[str, Any] = {"affinity": {"podAffinity": {REQUIRED: [{}]}}}
    found = Decoder().decode(Kind.PODS, msgspec.json.encode(pod_json("web", spec=wrong)))
    assert isinstance(found, MalformedObject)
    assert found.path == f"spec.affinity.podAffinity.{REQUIRED}[0]"


def test_volumes_with_zones_and_claims_with_modes() -> None:
    labels = {
        "topology.kubernetes.io/zone": "a__b",
        "failure-domain.beta.kubernetes.io/region": "eu",
        "topology.kubernetes.io/region": "x__",
    }
    volume = {"metadata": {"name": "v", "uid": "u", "labels": labels}, "spec": {}}
    assert Decoder().decode(Kind.PVS, msgspec.json.encode(volume)) == PersistentVolume(
        "v",
        "u",
        "",
        zones=(("failure-domain.beta.kubernetes.io/region", ("eu",)), ("topology.kubernetes.io/zone", ("a", "b"))),
    )
    claim = {
        "metadata": {"name": "c", "namespace": "n", "uid": "u", "deletionTimestamp": "2026-11-16T00:49:38Z"},
        "spec": {"accessModes": ["ReadWriteOncePod"]},
    }
    assert Decoder().decode(Kind.PVCS, msgspec.json.encode(claim)) == PersistentVolumeClaim(
        "u", "n", "c", "", exclusive=True, deleting=True
    )
