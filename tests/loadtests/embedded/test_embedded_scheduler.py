"""The lab's kube-scheduler: filters, scores, and the running one."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadtests.embedded import ClusterOptions, EmbeddedCluster, choose_node
from loadtests.embedded.resources import EVENTS, NODES, PODS
from loadtests.embedded.scheduling.occupancy import NodeState, pod_requests
from loadtests.embedded.scheduling.scores import balanced_allocation, least_allocated

Obj = dict[str, Any]


def _node(name: str, cpu: str = "4", memory: str = "8Gi", **spec: Any) -> Obj:
    amounts = {"cpu": cpu, "memory": memory, "pods": "110"}
    ready = [{"type": "Ready", "status": "True"}]
    labels = {"kubernetes.io/hostname": name, "disk": "ssd" if name == "a" else "hdd"}
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
        "status": {"allocatable": amounts, "conditions": ready},
    }


def _pod(cpu: str = "1", memory: str = "1Gi", node: str = "", owner: str = "", **spec: Any) -> Obj:
    requests = {"cpu": cpu, "memory": memory} if cpu else {}
    metadata: Obj = {"name": "p", "namespace": "ns"}
    if owner:
        reference = {"kind": "ReplicaSet", "apiVersion": "apps/v1", "name": owner, "uid": owner, "controller": True}
        metadata["ownerReferences"] = [reference]
    containers = [{"name": "c", "image": "x", "resources": {"requests": requests}}]
    body: Obj = {"containers": containers, **spec}
    if node:
        body["nodeName"] = node
    return {"metadata": metadata, "spec": body, "status": {}}


def test_requests_count_init_containers_sidecars_and_overhead() -> None:
    pod = _pod("1", "1Gi", overhead={"cpu": "100m"})
    pod["spec"]["initContainers"] = [
        {"name": "side", "restartPolicy": "Always", "resources": {"requests": {"cpu": "500m"}}},
        {"name": "setup", "resources": {"requests": {"cpu": "2"}}},
    ]
    assert pod_requests(pod) == {"cpu": 2.6, "memory": 2**30}


@pytest.mark.parametrize(
    ("cpu", "memory", "fits"),
    [("100m", "1Gi", True), ("100001u", "1Gi", False), ("100m", "1073741825", False), ("0", "1Gi", True)],
)
def test_requests_are_compared_to_the_milli_core_and_the_byte(cpu: str, memory: str, fits: bool) -> None:
    there = [_pod("100m", "1Gi", node="a"), _pod("100m", "1Gi", node="a")]
    assert (choose_node(_pod(cpu, memory), [_node("a", "300m", "3Gi")], there) is not None) is fits


def test_a_node_that_states_no_number_of_pods_takes_none() -> None:
    silent = _node("a")
    del silent["status"]["allocatable"]["pods"]
    assert choose_node(_pod(), [silent], []) is None


def test_least_allocated_and_balance_are_kube_schedulers() -> None:
    state = NodeState(_node("a", "10", "10Gi"))
    state.add(_pod("2", "4Gi"))
    wanted = pod_requests(_pod("2", "0"))
    assert least_allocated(wanted, state) == (60 + 60) // 2
    assert balanced_allocation(wanted, state) == 50 + (50 + 100 - 90) // 2


def test_an_unstated_request_counts_as_a_default_in_scores_only() -> None:
    state = NodeState(_node("a", "1", "1000Mi"))
    pod = _pod("")
    assert pod_requests(pod) == {}
    assert least_allocated(pod_requests(pod, assume_unstated=True), state) == (90 + 80) // 2


def test_the_emptier_node_is_chosen() -> None:
    nodes = [_node("a"), _node("b")]
    assert choose_node(_pod(), nodes, [_pod(node="a")]) == "b"


def test_replicas_are_spread() -> None:
    nodes = [_node("a", "64", "64Gi"), _node("b", "8", "8Gi")]
    assert choose_node(_pod(owner="rs"), nodes, []) == "a"
    assert choose_node(_pod(owner="rs"), nodes, [_pod(node="a", owner="rs")]) == "b"
    assert choose_node(_pod(owner="rs"), nodes, [_pod(node="a", owner="other")]) == "a"


@pytest.mark.parametrize(
    ("pod", "nodes", "expected"),
    [
        (_pod("5"), [_node("a"), _node("b", "8")], "b"),
        (_pod(), [_node("a", unschedulable=True), _node("b")], "b"),
        (_pod(), [_node("a", taints=[{"key": "k", "effect": "NoSchedule"}]), _node("b")], "b"),
        (
            _pod(tolerations=[{"key": "k", "operator": "Exists"}]),
            [_node("a", taints=[{"key": "k", "effect": "NoSchedule"}])],
            "a",
        ),
        (_pod(), [_node("a", taints=[{"key": "k", "effect": "PreferNoSchedule"}]), _node("b", "3", "6Gi")], "b"),
        (_pod(nodeSelector={"disk": "hdd"}), [_node("a"), _node("b")], "b"),
        (_pod("5"), [_node("a")], None),
        (_pod(nodeSelector={"disk": "tape"}), [_node("a")], None),
        (_pod(), [], None),
    ],
)
def test_filters(pod: Obj, nodes: list[Obj], expected: str | None) -> None:
    assert choose_node(pod, nodes, []) == expected


def _affinity(*expressions: Obj) -> Obj:
    required = {"nodeSelectorTerms": [{"matchExpressions": list(expressions)}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ({"key": "disk", "operator": "In", "values": ["hdd"]}, "b"),
        ({"key": "disk", "operator": "NotIn", "values": ["hdd"]}, "a"),
        ({"key": "gpu", "operator": "Exists"}, None),
        ({"key": "gpu", "operator": "DoesNotExist"}, "a"),
    ],
)
def test_required_node_affinity(expression: Obj, expected: str | None) -> None:
    assert choose_node(_pod(affinity=_affinity(expression)), [_node("a"), _node("b")], []) == expected


def test_a_hard_constraint_that_is_not_judged_leaves_the_pod_alone() -> None:
    rule = {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "kubernetes.io/hostname"}]}
    assert choose_node(_pod(affinity={"podAntiAffinity": rule}), [_node("a")], []) is None


def test_a_node_that_is_not_ready_takes_nothing() -> None:
    node = _node("a")
    node["status"]["conditions"] = [{"type": "Ready", "status": "False"}]
    assert choose_node(_pod(), [node], []) is None


def test_ties_go_by_name_or_by_the_given_dice() -> None:
    nodes = [_node("b"), _node("a")]
    assert choose_node(_pod(nodeSelector={}), nodes, []) == "a"
    rng = random.Random(3)
    assert {choose_node(_pod(), nodes, [], rng) for _ in range(30)} == {"a", "b"}


@given(st.lists(st.sampled_from(["100m", "500m", "1", "3"]), max_size=12), st.integers(0, 3))
def test_no_node_is_ever_overfilled(sizes: list[str], seed: int) -> None:
    nodes, placed, rng = [_node("a"), _node("b", "2")], list[Obj](), random.Random(seed)
    for size in sizes:
        pod = _pod(size, "1Mi")
        chosen = choose_node(pod, nodes, placed, rng)
        if chosen is not None:
            placed.append({**pod, "spec": {**pod["spec"], "nodeName": chosen}})
    for node, room in (("a", 4.0), ("b", 2.0)):
        used = sum(pod_requests(pod)["cpu"] for pod in placed if pod["spec"]["nodeName"] == node)
        assert used <= room + 1e-6


async def _until(condition: Any) -> None:
    for _ in range(500):
        if condition():
            return
        await asyncio.sleep(0.002)
    raise TimeoutError("not so after a second")


async def test_the_running_scheduler_binds_its_pods_and_no_others() -> None:
    async with EmbeddedCluster(ClusterOptions(schedule=frozenset({"default-scheduler"}))) as cluster:
        cluster.api.create(NODES, _node("a"))
        cluster.api.create(PODS, {"metadata": {"name": "mine"}, "spec": _pod()["spec"]})
        cluster.api.create(PODS, {"metadata": {"name": "theirs"}, "spec": {**_pod()["spec"], "schedulerName": "x"}})
        await _until(lambda: cluster.api.get(PODS, "default", "mine")["spec"].get("nodeName") == "a")
        assert "nodeName" not in cluster.api.get(PODS, "default", "theirs")["spec"]
        cluster.scheduler.serve({"x"})
        await _until(lambda: cluster.api.get(PODS, "default", "theirs")["spec"].get("nodeName") == "a")
        messages = {stored.obj["message"] for stored in cluster.store.all(EVENTS)}
        assert "Successfully assigned default/mine to a" in messages


async def test_a_pod_without_room_says_why_and_is_placed_when_there_is() -> None:
    async with EmbeddedCluster() as cluster:
        cluster.api.create(NODES, _node("a", "1"))
        cluster.api.create(PODS, {"metadata": {"name": "big"}, "spec": _pod("2")["spec"]})
        await _until(lambda: cluster.api.get(PODS, "default", "big")["status"].get("conditions"))
        (condition,) = cluster.api.get(PODS, "default", "big")["status"]["conditions"]
        assert (condition["reason"], condition["message"]) == (
            "Unschedulable",
            "0/1 nodes are available: 1 Insufficient cpu.",
        )
        cluster.api.create(NODES, _node("b", "4"))
        await _until(lambda: cluster.api.get(PODS, "default", "big")["spec"].get("nodeName") == "b")
        assert len([stored for stored in cluster.store.all(EVENTS) if stored.obj["reason"] == "FailedScheduling"]) == 1
