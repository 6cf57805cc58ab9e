from __future__ import annotations

import json
from typing import Any

import pytest

from reactor.cluster.records import NodeUsageSample, PodUsageSample
from reactor.errors import NotFound, Unreachable
from reactor.signals.metrics_api import MetricsApiSource

POD: dict[str, Any] = {
    "metadata": {"name": "web-1", "namespace": "default", "creationTimestamp": "2026-11-16T00:50:00Z"},
    "timestamp": "2026-11-16T00:49:50Z",
    "window": "15.1s",
    "containers": [
        {"name": "srv", "usage": {"cpu": "250m", "memory": "100Mi"}},
        {"name": "sidecar", "usage": {"cpu": "1m", "memory": "1Ki"}},
    ],
}
NODE = {"metadata": {"name": "node1"}, "timestamp": "2026-11-16T00:49:50Z", "usage": {"cpu": "2", "memory": "4Gi"}}
AT = 1794790190.0


class Clock:
    time = 0.0

    def now(self) -> float:
        return self.time

    def monotonic(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.time += seconds


class Reader:
    def __init__(self, pods: bytes | Exception, nodes: bytes | Exception) -> None:
        self.answers = {"pods": pods, "nodes": nodes}
        self.asked = 0

    async def get_raw(self, path: str, deadline: float) -> bytes:
        self.asked += 1
        answer = self.answers[path.rpartition("/")[2]]
        if isinstance(answer, Exception):
            raise answer
        return answer


async def pass_through() -> None:
    """No cycle is waiting."""


def listed(*items: object) -> bytes:
    return json.dumps({"kind": "List", "items": items}).encode()


async def test_pods_and_nodes() -> None:
    result = await MetricsApiSource(Reader(listed(POD), listed(NODE)), Clock(), pass_through).read(10.0)
    assert result.pods == (PodUsageSample("default", "web-1", 0.251, 100 * 2**20 + 1024, AT),)
    assert result.nodes == (NodeUsageSample("node1", 2.0, 4 * 2**30, AT),)
    assert result.problems == ()


async def test_one_broken_object_is_skipped_and_named() -> None:
    broken = {**POD, "containers": [{"name": "srv", "usage": {"cpu": "many", "memory": "1Mi"}}]}
    result = await MetricsApiSource(Reader(listed(broken, POD), listed(NODE)), Clock(), pass_through).read(10.0)
    assert len(result.pods) == 1
    assert "items[0]" in str(result.problems[0])
    assert "cpu" in str(result.problems[0])


async def test_a_container_that_tells_nothing_makes_the_sum_unknown() -> None:
    silent = {**POD, "containers": [*POD["containers"], {"name": "new", "usage": {}}]}
    result = await MetricsApiSource(
        Reader(listed(silent, {**POD, "containers": []}), listed()), Clock(), pass_through
    ).read(10.0)
    assert [(pod.cpu, pod.memory) for pod in result.pods] == [(None, None), (None, None)]


async def test_an_absent_api_is_reported_once_and_requested_again() -> None:
    clock, reader = Clock(), Reader(NotFound("404"), NotFound("404"))
    source = MetricsApiSource(reader, clock, pass_through)
    first = await source.read(10.0)
    assert first.absent
    assert len(first.problems) == 1
    again = await source.read(10.0)
    assert (again.absent, again.problems, reader.asked) == (True, (), 1)
    clock.time = 301.0
    assert (await source.read(10.0)).problems == ()
    reader.answers = {"pods": listed(POD), "nodes": listed(NODE)}
    clock.time = 700.0
    assert len((await source.read(10.0)).pods) == 1


@pytest.mark.parametrize("answer", [b"<html>", b'{"items": 3}', b"", Unreachable("no answer")])
async def test_what_one_list_does_not_tell_the_other_still_does(answer: bytes | Exception) -> None:
    result = await MetricsApiSource(Reader(answer, listed(NODE)), Clock(), pass_through).read(10.0)
    assert result.pods == ()
    assert len(result.nodes) == 1
    assert "/apis/metrics.k8s.io/v1beta1/pods" in str(result.problems[0])
