"""Each hard constraint from the objects of a dump to the plan that `rematch plan -f` prints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from reactor.cli.main import cli
from reactor.cluster.dump import read_dump
from reactor.planning.problem_builder import fits_now
from reactor.settings.model import Settings
from reactor.state.from_dump import snapshot_from_dump

ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
WEB = {"matchLabels": {"app": "web"}}


def node(name: str, zone: str, **allocatable: str) -> dict[str, Any]:
    room = {"cpu": "4", "memory": "8Gi", "pods": "110", **allocatable}
    return {
        "kind": "Node",
        "apiVersion": "v1",
        "metadata": {"name": name, "labels": {HOST: name, ZONE: zone}},
        "status": {"allocatable": room, "capacity": room, "conditions": [{"type": "Ready", "status": "True"}]},
    }


def pod(name: str, on: str | None = None, labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    container = {
        "name": "app",
        "resources": {"requests": {"cpu": "100m", "memory": "64Mi", **spec.pop("requests", {})}},
    }
    container["ports"] = spec.pop("ports", [])
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": name, "namespace": spec.pop("namespace", "shop"), "uid": name, "labels": labels or {}},
        "spec": {"schedulerName": "rematch", "containers": [container], **({"nodeName": on} if on else {}), **spec},
        "status": {"phase": "Running" if on else "Pending"},
    }


def namespace(name: str, **labels: str) -> dict[str, Any]:
    return {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": name, "labels": labels}}


def claim(name: str, volume: str | None) -> dict[str, Any]:
    spec = {"volumeName": volume} if volume else {}
    return {
        "kind": "PersistentVolumeClaim",
        "apiVersion": "v1",
        "metadata": {
            "name": name,
            "namespace": "shop",
            "annotations": {"pv.kubernetes.io/bind-completed": "yes"} if volume else {},
        },
        "spec": spec,
    }


def volume(name: str, labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    return {
        "kind": "PersistentVolume",
        "apiVersion": "v1",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": spec,
    }


NODES = [node("n1", "a"), node("n2", "a"), node("n3", "b")]


@pytest.fixture
def planned(tmp_path: Path) -> Any:
    def run(*objects: dict[str, Any]) -> dict[str, Any]:
        dump = tmp_path / "dump.json"
        named = {each["metadata"]["name"] for each in objects if each["kind"] == "Node"}
        nodes = [each for each in NODES if each["metadata"]["name"] not in named]
        items = [namespace("shop"), *nodes, *objects]
        dump.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": items}))
        result = CliRunner().invoke(cli, ["plan", "-f", str(dump), "-o", "json"], catch_exceptions=False)
        assert result.exit_code == 0, result.output
        found: dict[str, Any] = json.loads(result.output)
        assert found["certificate"]["feasible"], found["certificate"]
        return found

    return run


def target(found: dict[str, Any], name: str = "shop/new") -> str | None:
    return next((move["to"] for move in found["moves"] if move["pod"] == name), None)


def refusals(found: dict[str, Any], name: str = "shop/new") -> dict[str, str]:
    entry = next(each for each in (*found["moves"], *found["unplaced"]) if each["pod"] == name)
    return {each["node"]: each["reason"] for each in entry["rejected"]}


def left_alone(found: dict[str, Any], name: str = "shop/new") -> str:
    return next(str(each["reason"]) for each in found["unplaced"] if each["pod"] == name)


def anti(key: str) -> dict[str, Any]:
    return {"podAntiAffinity": {REQUIRED: [{"topologyKey": key, "labelSelector": WEB}]}}


def near(key: str, **more: Any) -> dict[str, Any]:
    return {"podAffinity": {REQUIRED: [{"topologyKey": key, "labelSelector": WEB, **more}]}}


def spread(**more: Any) -> list[dict[str, Any]]:
    return [{"topologyKey": ZONE, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": WEB, **more}]


def test_anti_affinity(planned: Any) -> None:
    found = planned(pod("old", "n1", {"app": "web"}), pod("new", affinity=anti(ZONE)))
    assert target(found) == "n3"


def test_anti_affinity_of_a_pod_that_is_there(planned: Any) -> None:
    found = planned(pod("old", "n1", affinity=anti(ZONE)), pod("new", labels={"app": "web"}))
    assert target(found) == "n3"
    nobody = planned(
        pod("old", "n1", affinity=anti(ZONE)),
        pod("older", "n3", affinity=anti(ZONE)),
        pod("new", labels={"app": "web"}),
    )
    assert refusals(nobody) == {
        "n1": "anti-affinity of shop/old on zone a",
        "n2": "anti-affinity of shop/old on zone a",
        "n3": "anti-affinity of shop/older on zone b",
    }


def test_affinity_and_its_first_pod(planned: Any) -> None:
    assert target(planned(pod("old", "n3", {"app": "web"}), pod("new", affinity=near(ZONE)))) == "n3"
    lonely = planned(pod("new", affinity=near(ZONE)))
    assert refusals(lonely)["n1"] == "affinity: no pod with app=web on zone a"
    assert target(planned(pod("new", labels={"app": "web"}, affinity=near(ZONE)))) is not None


def test_affinity_across_namespaces_by_their_labels(planned: Any) -> None:
    other = pod("old", "n3", {"app": "web"}, namespace="bank")
    pending = pod("new", affinity=near(ZONE, namespaceSelector={"matchLabels": {"team": "x"}}))
    assert target(planned(namespace("bank", team="x"), other, pending)) == "n3"
    assert target(planned(namespace("bank", team="y"), other, pending)) is None


def test_a_namespace_that_was_not_read_is_unsupported(planned: Any) -> None:
    other = pod("old", "n3", {"app": "web"}, namespace="bank")
    pending = pod("new", affinity=near(ZONE, namespaceSelector={"matchLabels": {"team": "x"}}))
    found = planned(other, pending)
    assert target(found) is None
    assert left_alone(found) == "left alone: unsupported namespaceSelector (namespace bank was not read)"


def test_topology_spread(planned: Any) -> None:
    two = (pod("w1", "n1", {"app": "web"}), pod("w2", "n2", {"app": "web"}))
    pending = pod("new", labels={"app": "web"}, topologySpreadConstraints=spread())
    assert target(planned(*two, pending)) == "n3"
    busy = pod("big", "n3", requests={"cpu": "4"})
    found = planned(*two, busy, pending)
    assert refusals(found)["n1"] == "would make the skew of app=web over zone 3 (max 1)"


def test_spread_with_too_few_domains(planned: Any) -> None:
    running = (pod("w1", "n1", {"app": "web"}), pod("w3", "n3", {"app": "web"}))
    pending = pod("new", labels={"app": "web"}, topologySpreadConstraints=spread(minDomains=3))
    assert target(planned(*running, pending)) is None


def test_host_ports(planned: Any) -> None:
    port = [{"containerPort": 80, "hostPort": 80}]
    users = [pod(f"old{name}", name, ports=port) for name in ("n1", "n2")]
    assert target(planned(*users, pod("new", ports=port))) == "n3"
    found = planned(*users, pod("oldn3", "n3", ports=port), pod("new", ports=port))
    assert refusals(found)["n1"] == "host port 80/TCP is taken by shop/oldn1"


def test_volume_affinity_and_zone(planned: Any) -> None:
    using = pod("new", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}])
    terms = {
        "required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": HOST, "operator": "In", "values": ["n2"]}]}]}
    }
    assert target(planned(using, claim("data", "pv"), volume("pv", nodeAffinity=terms))) == "n2"
    assert target(planned(using, claim("data", "pv"), volume("pv", {ZONE: "b"}))) == "n3"


@pytest.mark.parametrize(
    ("objects", "why"),
    [
        ([], "it is not there"),
        ([claim("data", None)], "not bound yet; WaitForFirstConsumer is not supported"),
        ([claim("data", "pv")], "its volume pv is not there"),
    ],
)
def test_an_unsupported_claim_keeps_the_pod_waiting(planned: Any, objects: list[dict[str, Any]], why: str) -> None:
    found = planned(pod("new", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]), *objects)
    assert left_alone(found) == f"left alone: unsupported claim shop/data ({why})"


@pytest.mark.parametrize(
    ("spec", "feature"),
    [
        ({"hostNetwork": True, "hostUsers": False}, "UserNamespacesHostNetworkSupport"),
        (
            {"initContainers": [{"name": "i", "restartPolicyRules": [{"action": "RestartAllContainers"}]}]},
            "RestartAllContainersOnContainerExits",
        ),
    ],
)
def test_a_feature_that_the_pod_needs_has_to_be_declared(planned: Any, spec: dict[str, Any], feature: str) -> None:
    able = node("n2", "a")
    able["status"]["declaredFeatures"] = ["Other", feature]
    found = planned(able, pod("new", **spec))
    assert target(found) == "n2"
    assert refusals(found)["n1"] == f"the node does not declare {feature}"
    assert set(refusals(planned(pod("new", **spec))).values()) == {f"the node does not declare {feature}"}


@pytest.mark.parametrize(
    "spec", [{"hostNetwork": True}, {"hostUsers": False}, {"hostNetwork": True, "hostUsers": True}]
)
def test_other_pods_need_no_feature(planned: Any, spec: dict[str, Any]) -> None:
    assert target(planned(pod("new", **spec)))


def test_extended_resources_and_huge_pages_only_reject(planned: Any) -> None:
    gpu = node("n2", "a", **{"nvidia.com/gpu": "1", "hugepages-2Mi": "4Mi"})
    pending = pod("new", requests={"nvidia.com/gpu": "1", "hugepages-2Mi": "2Mi"})
    assert target(planned(gpu, pending)) == "n2"
    taken = pod("old", "n2", requests={"nvidia.com/gpu": "1"})
    found = planned(gpu, taken, pending)
    assert refusals(found)["n2"] == "requests: lacks 1 nvidia.com/gpu"


def test_whether_a_move_may_start_depends_on_the_whole_cluster(tmp_path: Path) -> None:
    """The pod itself is gone by then; a neighbour in the same zone, on another node, is not."""
    moving = pod("moving", "n3", {"app": "web"}, affinity=anti(ZONE))
    dump = tmp_path / "dump.json"
    for others, expected in (([], True), ([pod("other", "n1", {"app": "web"})], False)):
        items = [namespace("shop"), *NODES, moving, *others]
        dump.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": items}))
        snapshot = snapshot_from_dump(read_dump([str(dump)]), Settings()).snapshot
        mover = snapshot.cluster.pods["moving"]
        assert fits_now(mover, "n2", snapshot, ()) is expected
    full = pod("full", "n2", requests={"cpu": "4"})
    dump.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": [*NODES, full, pod("moving", "n3")]}))
    snapshot = snapshot_from_dump(read_dump([str(dump)]), Settings()).snapshot
    assert not fits_now(snapshot.cluster.pods["moving"], "n2", snapshot, ())
    assert fits_now(snapshot.cluster.pods["moving"], "n1", snapshot, ())


@pytest.mark.parametrize(
    "spec", [{"unschedulable": True}, {"taints": [{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]}]
)
def test_no_move_starts_to_a_node_that_was_cordoned_after_the_plan(tmp_path: Path, spec: dict[str, Any]) -> None:
    moving = pod("moving", "n3", tolerations=[{"operator": "Exists"}])
    cordoned = {**node("n2", "a"), "spec": spec}
    dump = tmp_path / "dump.json"
    items = [*(each for each in NODES if each["metadata"]["name"] != "n2"), cordoned, moving]
    dump.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": items}))
    snapshot = snapshot_from_dump(read_dump([str(dump)]), Settings()).snapshot
    mover = snapshot.cluster.pods["moving"]
    assert fits_now(mover, "n1", snapshot, ())
    assert not fits_now(mover, "n2", snapshot, ())


def _node_terms(*expressions: dict[str, Any]) -> dict[str, Any]:
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": list(expressions)}]}}}


def _preferred(expression: dict[str, Any]) -> dict[str, Any]:
    preference = {"weight": 1, "preference": {"matchExpressions": [expression]}}
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [preference]}}


MANY = {"key": "cores", "operator": "Gt", "values": ["many"]}


def test_a_comparison_with_no_number_matches_no_node(planned: Any) -> None:
    """The API server accepts it, and kube-scheduler does not match that term."""
    found = planned(pod("new", affinity=_node_terms(MANY)), pod("other"))
    assert set(refusals(found).values()) == {"node affinity does not match"}
    assert target(found, "shop/other")
    either = {
        "nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [each]} for each in (MANY, IN_B)]}}
    }
    assert target(planned(pod("new", affinity=either))) == "n3"


IN_B = {"key": ZONE, "operator": "In", "values": ["b"]}


def test_a_preference_with_no_number_changes_nothing(planned: Any) -> None:
    found = planned(pod("new", affinity=_preferred(MANY)), pod("other"))
    assert target(found)
    assert target(found, "shop/other")


def test_a_volume_with_no_number_can_be_reached_from_nowhere(planned: Any) -> None:
    affinity = {"required": {"nodeSelectorTerms": [{"matchExpressions": [MANY]}]}}
    data = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
    found = planned(pod("new", volumes=data), claim("data", "pv"), volume("pv", nodeAffinity=affinity), pod("other"))
    assert set(refusals(found).values()) == {"a volume cannot be reached from there"}
    assert target(found, "shop/other")


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"affinity": _node_terms({"key": "k", "operator": "Near", "values": ["a"]})}, "unknown operator 'Near'"),
        ({"affinity": _node_terms({"key": "k", "operator": "In"})}, "In needs at least one value"),
        ({"affinity": _node_terms({"key": "k", "operator": "Gt", "values": ["1", "2"]})}, "exactly one value"),
        ({"affinity": _preferred({"key": "k", "operator": "Near"})}, "unknown operator 'Near'"),
        ({"affinity": near("")}, "pod affinity without a topology key"),
        ({"topologySpreadConstraints": [{"topologyKey": ZONE, "maxSkew": 0}]}, "maxSkew is 0"),
        ({"ports": [{"containerPort": 1, "hostPort": 99999}]}, "host port 99999"),
    ],
)
def test_rules_that_cannot_be_evaluated_concern_their_pod_only(planned: Any, spec: dict[str, Any], why: str) -> None:
    found = planned(pod("new", **spec), pod("other"))
    reason = left_alone(found)
    assert reason.startswith("left alone: unsupported constraints (")
    assert why in reason
    assert target(found, "shop/other")


def csi_volume(name: str, handle: str) -> dict[str, Any]:
    return volume(name, csi={"driver": "disk.csi", "volumeHandle": handle})


def csi_node(name: str, count: int | None) -> dict[str, Any]:
    driver = {"name": "disk.csi", "nodeID": name, **({} if count is None else {"allocatable": {"count": count}})}
    return {
        "kind": "CSINode",
        "apiVersion": "storage.k8s.io/v1",
        "metadata": {"name": name},
        "spec": {"drivers": [driver]},
    }


def attachment(node: str, pv: str) -> dict[str, Any]:
    return {
        "kind": "VolumeAttachment",
        "apiVersion": "storage.k8s.io/v1",
        "metadata": {"name": f"{node}-{pv}"},
        "spec": {"attacher": "disk.csi", "nodeName": node, "source": {"persistentVolumeName": pv}},
    }


def using(name: str, claim: str, on: str | None = None) -> dict[str, Any]:
    return pod(name, on, volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": claim}}])


DISKS = [each for name in "abc" for each in (claim(name, f"pv-{name}"), csi_volume(f"pv-{name}", name))]
FULL = [csi_node("n1", 1), csi_node("n2", 1), csi_node("n3", 0)]


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        ([], {"n1", "n2", "n3"}),  # no limit is known
        ([csi_node(name, None) for name in ("n1", "n2", "n3")], {"n1", "n2", "n3"}),
        (FULL, {"n1", "n2"}),
        ([*FULL, using("other", "b", "n1")], {"n2"}),
        ([*FULL, using("other", "a", "n1")], {"n1", "n2"}),  # the same volume
        ([*FULL, {**using("other", "b", "n1"), "status": {"phase": "Succeeded"}}], {"n1", "n2"}),
        ([*FULL, attachment("n1", "pv-b")], {"n2"}),  # nobody uses it any more
        ([*FULL, attachment("n1", "pv-gone")], {"n1", "n2"}),
        ([*FULL, using("other", "b", "n1"), attachment("n1", "pv-b"), csi_node("n1", 2)], {"n1", "n2"}),
    ],
)
def test_a_node_attaches_no_more_volumes_than_its_csi_driver_can(
    planned: Any, tmp_path: Path, objects: list[dict[str, Any]], expected: set[str]
) -> None:
    assert target(planned(*DISKS, using("new", "a"), *objects)) in expected
    snapshot = snapshot_from_dump(read_dump([str(tmp_path / "dump.json")]), Settings()).snapshot
    pending = snapshot.cluster.pods["new"]
    assert {name for name in snapshot.cluster.nodes if fits_now(pending, name, snapshot, ())} == expected


def test_the_limit_of_volumes_holds_for_all_pods_of_a_plan(planned: Any) -> None:
    found = planned(*DISKS, *FULL, using("p1", "a"), using("p2", "b"), using("p3", "c"), using("p4", "a"))
    assert len(found["unplaced"]) == 1
    assert refusals(found, found["unplaced"][0]["pod"])["n3"] == "volumes of disk.csi: 0 and 1 more, the limit is 0"
