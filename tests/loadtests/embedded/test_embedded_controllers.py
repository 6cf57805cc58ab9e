"""The controllers, beyond what the contract says of them."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadtests.embedded import EmbeddedCluster, changed
from loadtests.embedded.controllers.replicaset import DELETION_COST, in_deletion_order
from loadtests.embedded.controllers.rollout import Count, Limits, limits_of, scale_down, scale_up, template_hash
from loadtests.embedded.deletion import DeleteOptions, delete
from loadtests.embedded.objects import NAME_ALPHABET, is_deleting, name_of, timestamp
from loadtests.embedded.resources import (
    DEPLOYMENTS,
    EVENTS,
    NAMESPACES,
    NODES,
    PODDISRUPTIONBUDGETS,
    PODS,
    REPLICASETS,
    Resource,
)

NOW = 1_800_000_000.0
Obj = dict[str, Any]


async def _until(condition: Callable[[], object]) -> None:
    for _ in range(1000):
        if condition():
            return
        await asyncio.sleep(0.002)
    raise TimeoutError("not so after two seconds")


def _deployment(replicas: int, **spec: Any) -> Obj:
    containers = [{"name": "c", "image": "i:1"}]
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": containers, "schedulerName": "none"}}
    body = {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template, **spec}
    return {"metadata": {"name": "web", "namespace": "default"}, "spec": body}


def _all(cluster: EmbeddedCluster, resource: Resource) -> list[Obj]:
    return [stored.obj for stored in cluster.store.all(resource, "default")]


def _has_pods(cluster: EmbeddedCluster, count: int) -> bool:
    return len(_all(cluster, PODS)) == count


def _make_ready(cluster: EmbeddedCluster, pod: Obj) -> None:
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": timestamp(cluster.api.clock.now())}
    cluster.api.update_status(PODS, changed(pod, status={**pod["status"], "phase": "Running", "conditions": [ready]}))


def _pod(name: str, **parts: Any) -> Obj:
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    metadata = {"name": name, "uid": name, "creationTimestamp": timestamp(NOW - 100)}
    pod: Obj = {"metadata": metadata, "spec": {"nodeName": "n"}, "status": status}
    for part, value in parts.items():
        pod[part] = {**pod[part], **value}
    return pod


def _cost(value: str) -> Obj:
    return {"annotations": {DELETION_COST: value}}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (_pod("z", spec={"nodeName": ""}), _pod("a", metadata=_cost("-9"))),
        (_pod("z", status={"phase": "Pending"}), _pod("a", metadata=_cost("-9"))),
        (_pod("z", status={"conditions": []}), _pod("a", metadata=_cost("-9"))),
        (_pod("z", metadata=_cost("-1")), _pod("a")),
        (_pod("z", metadata=_cost("nonsense")), _pod("a", metadata=_cost("1"))),
        (_pod("z", status={"containerStatuses": [{"restartCount": 3}]}), _pod("a")),
        (_pod("z", metadata={"creationTimestamp": timestamp(NOW - 1)}), _pod("a")),
    ],
)
def test_which_of_two_pods_goes_first(first: Obj, second: Obj) -> None:
    assert [name_of(pod) for pod in in_deletion_order([second, first], [], NOW)] == ["z", "a"]


def test_the_pod_on_the_fuller_node_goes_first() -> None:
    lone, doubled = _pod("a", spec={"nodeName": "m"}), _pod("z")
    assert in_deletion_order([lone, doubled], [lone, doubled, _pod("y")], NOW)[0] is doubled


@given(st.integers(0, 20), st.integers(0, 20), st.integers(0, 20), st.integers(0, 5), st.integers(0, 5))
def test_a_rolling_update_stays_within_its_limits(
    replicas: int, new: int, old: int, surge: int, unavailable: int
) -> None:
    limits = Limits(surge, unavailable)
    newest, oldest = Count("new", min(new, replicas), min(new, replicas)), [Count("old", old, old)]
    grown = scale_up(newest, oldest, replicas, limits)
    assert newest.wanted <= grown <= replicas
    assert grown == newest.wanted or grown + old <= replicas + surge
    left = scale_down(newest, oldest, replicas, limits)["old"]
    assert 0 <= left <= old
    assert left == old or left + newest.available >= replicas - unavailable


def test_limits_round_as_kubernetes_does() -> None:
    stated = {"maxSurge": "25%", "maxUnavailable": "25%"}
    assert limits_of({"replicas": 3, "strategy": {"rollingUpdate": stated}}) == Limits(1, 0)
    assert limits_of({"replicas": 3, "strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}}) == Limits(
        0, 1
    )


def test_template_hashes_look_real_and_differ() -> None:
    hashes = {template_hash({"spec": {"n": number}}) for number in range(100)}
    assert len(hashes) == 100
    assert all(set(known) <= set(NAME_ALPHABET) and 1 <= len(known) <= 10 for known in hashes)


async def test_a_rolling_update_goes_through(cluster: EmbeddedCluster) -> None:
    cluster.api.create(DEPLOYMENTS, _deployment(3))
    await _until(lambda: len(_all(cluster, PODS)) == 3)
    for pod in _all(cluster, PODS):
        _make_ready(cluster, pod)
    current = cluster.api.get(DEPLOYMENTS, "default", "web")
    template = current["spec"]["template"]
    newer = {**template, "spec": {**template["spec"], "containers": [{"name": "c", "image": "i:2"}]}}
    cluster.api.update(DEPLOYMENTS, changed(current, spec={**current["spec"], "template": newer}))

    def rolled() -> bool:
        pods = _all(cluster, PODS)
        for pod in pods:
            if not pod["status"].get("conditions") and not is_deleting(pod):
                _make_ready(cluster, pod)
        images = [pod["spec"]["containers"][0]["image"] for pod in pods]
        return images == ["i:2"] * 3

    await _until(rolled)
    await _until(lambda: cluster.api.get(DEPLOYMENTS, "default", "web")["status"].get("updatedReplicas") == 3)
    counts = sorted(known["spec"]["replicas"] for known in _all(cluster, REPLICASETS))
    assert counts == [0, 3]


async def test_recreate_waits_for_the_old_pods_to_be_gone(cluster: EmbeddedCluster) -> None:
    cluster.api.create(NODES, {"metadata": {"name": "n"}})
    cluster.api.create(DEPLOYMENTS, _deployment(1, strategy={"type": "Recreate"}))
    await _until(lambda: len(_all(cluster, PODS)) == 1)
    (old,) = _all(cluster, PODS)
    cluster.store.replace(PODS, changed(old, spec={**old["spec"], "nodeName": "n"}))
    current = cluster.api.get(DEPLOYMENTS, "default", "web")
    template = {**current["spec"]["template"], "metadata": {"labels": {"app": "web", "v": "2"}}}
    cluster.api.update(DEPLOYMENTS, changed(current, spec={**current["spec"], "template": template}))
    await _until(lambda: is_deleting(_all(cluster, PODS)[0]))
    assert [name_of(pod) for pod in _all(cluster, PODS)] == [name_of(old)]
    delete(cluster.api, PODS, "default", name_of(old), DeleteOptions(grace_seconds=0))
    await _until(lambda: [pod["metadata"]["labels"].get("v") for pod in _all(cluster, PODS)] == ["2"])
    assert len(_all(cluster, REPLICASETS)) == 2


async def test_available_means_ready_for_min_ready_seconds(cluster: EmbeddedCluster) -> None:
    cluster.api.create(DEPLOYMENTS, _deployment(1, minReadySeconds=1))
    await _until(lambda: len(_all(cluster, PODS)) == 1)
    _make_ready(cluster, _all(cluster, PODS)[0])
    await _until(lambda: _all(cluster, REPLICASETS)[0]["status"].get("readyReplicas") == 1)
    await _until(lambda: _all(cluster, REPLICASETS)[0]["status"].get("availableReplicas") == 1)
    assert _all(cluster, REPLICASETS)[0]["status"]["readyReplicas"] == 1


async def test_an_orphan_that_matches_is_adopted(cluster: EmbeddedCluster) -> None:
    orphan = {
        "metadata": {"name": "o", "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    cluster.api.create(PODS, orphan)
    spec = _deployment(1)["spec"]
    cluster.api.create(REPLICASETS, {"metadata": {"name": "rs", "namespace": "default"}, "spec": spec})
    await _until(lambda: "ownerReferences" in cluster.api.get(PODS, "default", "o")["metadata"])
    assert [name_of(pod) for pod in _all(cluster, PODS)] == ["o"]


async def test_a_foreground_deletion_waits_for_the_dependents(cluster: EmbeddedCluster) -> None:
    cluster.api.create(NODES, {"metadata": {"name": "n"}})
    cluster.api.create(DEPLOYMENTS, _deployment(1))
    await _until(lambda: len(_all(cluster, PODS)) == 1)
    (pod,) = _all(cluster, PODS)
    cluster.store.replace(PODS, changed(pod, spec={**pod["spec"], "nodeName": "n"}))
    (replica_set,) = _all(cluster, REPLICASETS)
    delete(cluster.api, REPLICASETS, "default", name_of(replica_set), DeleteOptions(propagation="Foreground"))
    await _until(lambda: is_deleting(_all(cluster, PODS)[0]))
    assert cluster.api.get(REPLICASETS, "default", name_of(replica_set))["metadata"]["finalizers"]
    delete(cluster.api, PODS, "default", name_of(pod), DeleteOptions(grace_seconds=0))
    uid = replica_set["metadata"]["uid"]
    await _until(lambda: uid not in {known["metadata"]["uid"] for known in _all(cluster, REPLICASETS)})
    assert pod["metadata"]["uid"] not in {known["metadata"]["uid"] for known in _all(cluster, PODS)}


async def test_an_object_whose_owner_never_was_is_collected(cluster: EmbeddedCluster) -> None:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "ghost", "uid": "ghost", "controller": True}
    metadata = {"name": "p", "ownerReferences": [owner]}
    cluster.api.create(PODS, {"metadata": metadata, "spec": {"containers": [{"name": "c", "image": "i"}]}})
    await _until(lambda: not _all(cluster, PODS))
    assert cluster.store.find(PODS, "default", "p") is None


async def test_pods_go_with_their_node(cluster: EmbeddedCluster) -> None:
    cluster.api.create(NODES, {"metadata": {"name": "n"}})
    spec = {"containers": [{"name": "c", "image": "i"}], "nodeName": "n"}
    for name in ("a", "b"):
        cluster.api.create(PODS, {"metadata": {"name": name}, "spec": spec})
    delete(cluster.api, PODS, "default", "a")
    await asyncio.sleep(0.02)
    assert is_deleting(cluster.api.get(PODS, "default", "a"))
    delete(cluster.api, NODES, "", "n")
    await _until(lambda: not _all(cluster, PODS))
    cluster.api.create(PODS, {"metadata": {"name": "late"}, "spec": spec})
    delete(cluster.api, PODS, "default", "late")
    await _until(lambda: not _all(cluster, PODS))
    assert cluster.store.all(NODES) == []


async def test_a_terminating_namespace_takes_nothing_new(cluster: EmbeddedCluster) -> None:
    cluster.api.create(NAMESPACES, {"metadata": {"name": "team"}})
    cluster.api.create(NODES, {"metadata": {"name": "n"}})
    spec = {"containers": [{"name": "c", "image": "i"}], "nodeName": "n"}
    cluster.api.create(PODS, {"metadata": {"name": "p"}, "spec": spec}, namespace="team")
    delete(cluster.api, NAMESPACES, "", "team")
    await _until(lambda: is_deleting(cluster.api.get(PODS, "team", "p")))
    with pytest.raises(Exception, match="because it is being terminated"):
        cluster.api.create(PODS, {"metadata": {"name": "q"}, "spec": spec}, namespace="team")
    delete(cluster.api, PODS, "team", "p", DeleteOptions(grace_seconds=0))
    await _until(lambda: cluster.store.find(NAMESPACES, "", "team") is None)


async def test_taints_follow_the_node(cluster: EmbeddedCluster) -> None:
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    cluster.api.create(NODES, {"metadata": {"name": "n"}, "spec": {"unschedulable": True}, "status": ready})

    def taints() -> list[str]:
        found = cluster.api.get(NODES, "", "n").get("spec") or {}
        return [taint["key"] for taint in found.get("taints") or ()]

    await _until(lambda: taints() == ["node.kubernetes.io/unschedulable"])
    cluster.api.update(NODES, changed(cluster.api.get(NODES, "", "n"), spec={}))
    down = {"conditions": [{"type": "Ready", "status": "False"}]}
    cluster.api.update_status(NODES, changed(cluster.api.get(NODES, "", "n"), status=down))
    await _until(lambda: taints() == ["node.kubernetes.io/not-ready"])
    cluster.api.update_status(NODES, changed(cluster.api.get(NODES, "", "n"), status=ready))
    await _until(lambda: taints() == [])


async def test_budgets_follow_labels_and_selectors(cluster: EmbeddedCluster) -> None:
    spec = {"containers": [{"name": "c", "image": "i"}]}
    cluster.api.create(PODS, {"metadata": {"name": "p", "labels": {"app": "a"}}, "spec": spec})
    selector = {"matchLabels": {"app": "a"}}
    body = {"metadata": {"name": "b", "namespace": "default"}, "spec": {"minAvailable": 1, "selector": selector}}
    cluster.api.create(PODDISRUPTIONBUDGETS, body)

    def expected() -> int:
        return int(cluster.api.get(PODDISRUPTIONBUDGETS, "default", "b")["status"]["expectedPods"])

    await _until(lambda: expected() == 1)
    pod = cluster.api.get(PODS, "default", "p")
    cluster.api.update(PODS, {**pod, "metadata": {**pod["metadata"], "labels": {"app": "z"}}})
    await _until(lambda: expected() == 0)
    budget = cluster.api.get(PODDISRUPTIONBUDGETS, "default", "b")
    newer = {"minAvailable": 1, "selector": {"matchLabels": {"app": "z"}}}
    cluster.api.update(PODDISRUPTIONBUDGETS, changed(budget, spec=newer))
    await _until(lambda: expected() == 1)
    delete(cluster.api, PODS, "default", "p")
    await _until(lambda: expected() == 0)


async def test_an_equal_event_raises_the_count(cluster: EmbeddedCluster) -> None:
    cluster.api.create(DEPLOYMENTS, _deployment(1))
    await _until(lambda: len(_all(cluster, PODS)) == 1)
    for replicas in (0, 1, 0, 1):
        current = cluster.api.get(DEPLOYMENTS, "default", "web")
        cluster.api.update(DEPLOYMENTS, changed(current, spec={**current["spec"], "replicas": replicas}))
        await _until(functools.partial(_has_pods, cluster, replicas))
    counts = {
        stored["message"].split(" ", 2)[1]: stored["count"]
        for stored in _all(cluster, EVENTS)
        if stored["reason"] == "ScalingReplicaSet"
    }
    assert counts == {"up": 3, "down": 2}
