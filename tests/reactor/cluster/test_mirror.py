from __future__ import annotations

import gc
from typing import Any

import pytest
from msgspec.structs import replace

from matching.problem import Preferred, Requirement, Rules, Term
from reactor.cluster import mirror as mirror_module
from reactor.cluster.hints import MOVE_LABEL
from reactor.cluster.kinds import Kind
from reactor.cluster.mirror import ClusterMirror
from reactor.cluster.records import (
    ConfigMap,
    CsiNode,
    Event,
    Namespace,
    Node,
    Owner,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PodDisruptionBudget,
    Record,
    VolumeAttachment,
    Workload,
)


class Heard(list[tuple[Kind, Any, Any]]):
    def __call__(self, kind: Kind, old: Record | None, new: Record | None) -> None:
        self.append((kind, old, new))


def pod(name: str, version: str = "1", uid: str | None = None, **fields: Any) -> Pod:
    return Pod(uid or f"uid-{name}", "ns", name, version, {}, {}, 0.0, **fields)


def event(uid: str, reason: str = "Unhealthy", version: str = "1", count: int = 1) -> Event:
    kind = "Warning" if reason in ("Unhealthy", "BackOff") else "Normal"
    return Event(uid, "ns", uid, version, reason, kind, "m", "ns", "p", "pu", count=count, component="kubelet")


def test_synced_only_when_every_kind_was_listed() -> None:
    mirror = ClusterMirror({Kind.PODS, Kind.NODES}, Heard())
    mirror.replaced(Kind.PODS, [])
    assert mirror.missing == {Kind.NODES}
    mirror.replaced(Kind.NODES, [])
    assert not mirror.missing


async def test_waiting_for_the_sync() -> None:
    mirror = ClusterMirror({Kind.PODS}, Heard())
    mirror.replaced(Kind.PODS, [])
    await mirror.until_synced()
    await ClusterMirror((), Heard()).until_synced()
    assert not mirror.missing


def test_listeners_hear_old_and_new() -> None:
    heard = Heard()
    mirror = ClusterMirror((), heard)
    first, second = pod("a"), pod("a", "2", node="n")
    mirror.upsert(Kind.PODS, first)
    mirror.upsert(Kind.PODS, second)
    mirror.remove(Kind.PODS, "uid-a")
    mirror.remove(Kind.PODS, "uid-a")
    assert heard == [(Kind.PODS, None, first), (Kind.PODS, first, second), (Kind.PODS, second, None)]


def test_the_same_version_again_is_no_news() -> None:
    heard = Heard()
    mirror = ClusterMirror((), heard)
    mirror.upsert(Kind.PODS, pod("a"))
    mirror.replaced(Kind.PODS, [pod("a")])
    assert len(heard) == 1


def test_a_list_removes_what_it_does_not_name_except_the_unreadable() -> None:
    heard = Heard()
    mirror = ClusterMirror((), heard)
    for name in "abc":
        mirror.upsert(Kind.PODS, pod(name))
    mirror.replaced(Kind.PODS, [pod("a", "2")], {"uid-b"})
    assert set(mirror.records(Kind.PODS)) == {"uid-a", "uid-b"}
    assert heard[-1] == (Kind.PODS, pod("c"), None)


def test_a_name_that_comes_again_finds_the_new_pod() -> None:
    mirror = ClusterMirror((), Heard())
    mirror.upsert(Kind.PODS, pod("db-0", uid="old"))
    mirror.replaced(Kind.PODS, [pod("db-0", uid="new")])
    found = mirror.pod_named("ns", "db-0")
    assert found is not None
    assert found.uid == "new"
    assert mirror.pod("old") is None
    mirror.remove(Kind.PODS, "new")
    assert mirror.pod_named("ns", "db-0") is None


def test_warnings_of_the_kubelet_about_pods_are_kept_because_they_share_the_budget_of_the_probes() -> None:
    mirror = ClusterMirror((), Heard())
    for kept in (event("probe"), event("kill", "Killing"), event("backoff", "BackOff")):
        mirror.upsert(Kind.EVENTS, kept)
    for other in ({"component": "default-scheduler"}, {"involved_kind": "Node"}, {"type": "Normal"}):
        mirror.upsert(Kind.EVENTS, replace(event(str(other), "BackOff"), **other))
    assert set(mirror.records(Kind.EVENTS)) == {"probe", "kill", "backoff"}


def test_only_events_about_probes_are_kept_and_never_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mirror_module, "EVENTS_KEPT", 3)
    heard = Heard()
    mirror = ClusterMirror((), heard)
    mirror.upsert(Kind.EVENTS, event("pulled", reason="Pulled"))
    assert not heard
    for number in range(10):
        mirror.upsert(Kind.EVENTS, event(f"e{number}"))
    assert set(mirror.records(Kind.EVENTS)) == {"e7", "e8", "e9"}
    mirror.upsert(Kind.EVENTS, event("e9", version="2", count=5))
    assert heard[-1][1].count == 1
    assert heard[-1][2].count == 5
    assert len(mirror.records(Kind.EVENTS)) == 3


def test_a_frozen_view_does_not_change() -> None:
    mirror = ClusterMirror((), Heard())
    mirror.upsert(Kind.PODS, pod("a", node="n1"))
    mirror.upsert(Kind.NODES, Node("n1", "u1", "1", {}))
    view = mirror.freeze(5.0)
    mirror.upsert(Kind.PODS, pod("b", node="n1"))
    mirror.remove(Kind.NODES, "n1")
    assert view.at == 5.0
    assert list(view.pods) == ["uid-a"]
    assert list(view.nodes) == ["n1"]
    assert [each.name for each in view.pods_on("n1")] == ["a"]
    assert view.pods_on("n2") == ()
    assert view.pod_named("ns", "b") is None


def test_every_kind_comes_into_the_view() -> None:
    mirror = ClusterMirror((), Heard())
    mirror.upsert(Kind.PDBS, PodDisruptionBudget("b", "ns", "b", "1", None))
    mirror.upsert(Kind.NAMESPACES, Namespace("ns", "n", "1"))
    mirror.upsert(Kind.PVCS, PersistentVolumeClaim("c", "ns", "c", "1"))
    mirror.upsert(Kind.PVS, PersistentVolume("v", "v", "1"))
    mirror.upsert(Kind.CSI_NODES, CsiNode("n1", "k", "1"))
    mirror.upsert(Kind.VOLUME_ATTACHMENTS, VolumeAttachment("x", "x", "1", "n1", "disk.csi", "v"))
    mirror.upsert(Kind.CONFIG_MAPS, ConfigMap("cm", "ns", "settings", "1", {"a": "b"}))
    view = mirror.freeze(0.0)
    assert [budget.name for budget in view.pdbs] == ["b"]
    assert list(view.namespaces) == ["ns"]
    assert [claim.name for claim in view.pvcs] == ["c"]
    assert list(view.pvs) == ["v"]
    assert list(view.csi_nodes) == ["n1"]
    assert [each.pv for each in view.attachments_to("n1")] == ["v"]
    assert view.attachments_to("n2") == ()
    (ours,) = mirror.records(Kind.CONFIG_MAPS).values()
    assert isinstance(ours, ConfigMap)
    assert ours.data == {"a": "b"}


def test_the_workload_of_a_pod() -> None:
    mirror = ClusterMirror((), Heard())
    deployment = Workload("Deployment", "d", "ns", "web", "1")
    replica_set = Workload("ReplicaSet", "r", "ns", "web-1", "1", Owner("Deployment", "web", "d"))
    orphaned = Workload("ReplicaSet", "o", "ns", "old-1", "1", Owner("Deployment", "old", "gone"))
    stateful = Workload("StatefulSet", "s", "ns", "db", "1")
    mirror.upsert(Kind.DEPLOYMENTS, deployment)
    mirror.upsert(Kind.REPLICA_SETS, replica_set)
    mirror.upsert(Kind.REPLICA_SETS, orphaned)
    mirror.upsert(Kind.STATEFUL_SETS, stateful)
    view = mirror.freeze(0.0)
    assert view.workload_of(pod("a", owner=Owner("ReplicaSet", "web-1", "r"))) == deployment
    assert view.workload_of(pod("a", owner=Owner("ReplicaSet", "old-1", "o"))) == orphaned
    assert view.workload_of(pod("a", owner=Owner("StatefulSet", "db", "s"))) == stateful
    assert view.workload_of(pod("a", owner=Owner("StatefulSet", "db", "gone"))) is None
    assert view.workload_of(pod("a")) is None


HOST = Term((Requirement("kubernetes.io/hostname", "In", ("n2",)),))
SSD = Term((Requirement("disk", "In", ("ssd",)),))


def test_a_stamped_pod_has_the_rules_of_its_template_whichever_comes_first() -> None:
    """Else a pod that was moved by a hint could never be moved again: A -> B -> C."""
    owner = Owner("ReplicaSet", "web", "rs")
    own = Rules(node_selector=(("zone", "a"),), preferred=Preferred(nodes=((50, SSD),)))
    hinted = Rules(
        node_selector=(("added", "by-admission"), ("kubernetes.io/hostname", "n2"), ("zone", "a")),
        preferred=Preferred(nodes=((50, SSD), (100, HOST), (100, HOST))),
    )
    workload = Workload("ReplicaSet", "rs", "ns", "web", "1", rules=own)
    stamped = [replace(pod(name, owner=owner, rules=hinted), labels={MOVE_LABEL: "m"}) for name in ("a", "b")]
    mirror = ClusterMirror((), Heard())
    mirror.upsert(Kind.PODS, stamped[0])
    assert mirror.freeze(0.0).pods["uid-a"].rules == hinted, "nothing is known of its owner yet"
    mirror.upsert(Kind.REPLICA_SETS, workload)
    mirror.upsert(Kind.PODS, stamped[1])
    mirror.upsert(Kind.PODS, pod("plain", owner=owner, rules=hinted))
    pods = mirror.freeze(0.0).pods
    expected = Rules(node_selector=(("added", "by-admission"), ("zone", "a")), preferred=Preferred(nodes=((50, SSD),)))
    assert pods["uid-a"].rules == expected
    assert pods["uid-a"].rules is pods["uid-b"].rules
    assert pods["uid-plain"].rules == hinted
    mirror.remove(Kind.PODS, "uid-a")
    assert "uid-a" not in mirror.freeze(0.0).pods


def test_what_the_template_itself_says_about_host_names_stays() -> None:
    own = Rules(node_selector=(("kubernetes.io/hostname", "n2"),), preferred=Preferred(nodes=((100, HOST),)))
    mirror = ClusterMirror((), Heard())
    mirror.upsert(Kind.STATEFUL_SETS, Workload("StatefulSet", "db", "ns", "db", "1", rules=own))
    mirror.upsert(
        Kind.PODS, replace(pod("db-0", owner=Owner("StatefulSet", "db", "db"), rules=own), labels={MOVE_LABEL: "m"})
    )
    assert mirror.freeze(0.0).pods["uid-db-0"].rules == own


def test_records_do_not_burden_the_garbage_collector() -> None:
    assert not gc.is_tracked(pod("a"))
