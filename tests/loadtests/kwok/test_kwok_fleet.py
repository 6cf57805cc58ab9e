from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import msgspec
import pytest

from loadtests.kwok import Fleet, PodChange, PodObserver, observed_pods
from loadtests.kwok import observer as observer_module
from reactor.cluster.kinds import Kind
from reactor.cluster.mirror import ClusterMirror
from reactor.cluster.records import Pod
from tests.support.cluster import make_pending, make_pod

FLEET = Fleet(nodes=6, crowded=3, apps=4, replicas=3, scheduler="rematch")


def test_the_crowded_nodes_share_all_pods_evenly_and_no_two_replicas_are_together() -> None:
    pods = [FLEET.pod(app, replica, "u") for app in range(4) for replica in range(3)]

    homes = Counter(pod["spec"]["nodeName"] for pod in pods)

    assert homes == {"node-0000": 4, "node-0001": 4, "node-0002": 4}
    assert len({pod["spec"]["nodeName"] for pod in pods[:3]}) == 3
    assert len({pod["metadata"]["name"] for pod in pods}) == FLEET.pods == 12


def test_a_pod_is_as_its_replica_set_would_have_made_it() -> None:
    owner, pod = FLEET.replica_set(2), FLEET.pod(2, 1, "uid-2")

    template = owner["spec"]["template"]
    assert pod["metadata"]["labels"] == template["metadata"]["labels"] == owner["spec"]["selector"]["matchLabels"]
    assert {**template["spec"], "nodeName": "node-0001"} == pod["spec"]
    assert pod["metadata"]["ownerReferences"][0]["uid"] == "uid-2"


def test_an_eviction_and_a_binding_are_told_once() -> None:
    pod = make_pod("web-1")
    leaving = msgspec.structs.replace(pod, deleting=1.0, resource_version="2")
    waiting = make_pending("web-2")
    placed = msgspec.structs.replace(waiting, node="n1", resource_version="2")

    assert PodChange(0.0, pod, leaving).evicted == leaving
    assert PodChange(0.0, leaving, None).evicted is None
    assert PodChange(0.0, pod, None).evicted == pod
    assert PodChange(0.0, waiting, placed).bound == placed
    assert PodChange(0.0, placed, placed).bound is None


def test_the_observer_counts_pods_that_hold_a_node_and_are_to_stay() -> None:
    observer = PodObserver()
    pod = make_pod("web-1")
    changes: list[Pod | None] = []
    silence = observer.listen(lambda change: changes.append(change.new))

    observer.mirror.upsert(Kind.PODS, pod)
    assert (observer.on_node[pod.node or ""], observer.running) == (1, 1)
    silence()
    observer.mirror.upsert(Kind.PODS, msgspec.structs.replace(pod, deleting=1.0, resource_version="2"))

    assert (observer.on_node[pod.node or ""], observer.running) == (0, 0)
    assert changes == [pod]


class _Connection:
    async def close(self) -> None:
        """Nothing was opened."""


class _Blind:
    """A watcher that lists and then meets a pod which it cannot read."""

    def __init__(self, _kind: Kind, _source: object, mirror: ClusterMirror, *_rest: object) -> None:
        self._mirror = mirror

    async def run(self) -> None:
        self._mirror.replaced(Kind.PODS, ())
        await asyncio.sleep(0)
        raise AssertionError("unreadable")


async def test_waiting_fails_when_the_watch_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    async def connect(_kubeconfig: str) -> _Connection:
        return _Connection()

    monkeypatch.setattr(observer_module, "open_connection", connect)
    monkeypatch.setattr(observer_module, "ClusterReader", lambda connection: connection)
    monkeypatch.setattr(observer_module, "Watcher", _Blind)
    with pytest.raises(ExceptionGroup) as failed:
        async with observed_pods(Path("kubeconfig")) as observer:
            await observer.until(lambda: False, 10.0)
    assert failed.group_contains(AssertionError, match="unreadable")
