"""Samples of the metrics sources reach the state and the store; problems are reported."""

from __future__ import annotations

import asyncio
import json
from typing import cast

import pytest

from reactor.background.metrics_collection import MetricsCollector
from reactor.cluster.reads import ClusterReader
from reactor.errors import NotFound, Unreachable
from reactor.signals.measurements import MetricsSource
from tests.support.clock import NOW
from tests.support.cluster import make_node, make_pod, make_settings
from tests.support.dump import Json, list_of, node_metrics, pod_metrics
from tests.support.rig import Rig


class FakeReader:
    """metrics.k8s.io as it answers now: objects, or an error."""

    def __init__(self) -> None:
        self.pods: list[Json] = [pod_metrics("web-1", "250m")]
        self.nodes: list[Json] = [node_metrics("n1", "2")]
        self.error: Exception | None = None
        self.requests = 0

    async def get_raw(self, path: str, deadline: float = 30.0) -> bytes:
        self.requests += 1
        if self.error is not None:
            raise self.error
        return json.dumps(list_of(*(self.pods if path.endswith("pods") else self.nodes))).encode()


@pytest.fixture
def reader() -> FakeReader:
    return FakeReader()


@pytest.fixture
def rig() -> Rig:
    rig = Rig()
    rig.sync(make_pod(), make_node())
    return rig


@pytest.fixture
def collector(rig: Rig, reader: FakeReader) -> MetricsCollector:
    return MetricsCollector(rig.state, cast(ClusterReader, reader), lambda: rig.settings, rig.clock, rig.instruments)


def up(rig: Rig) -> float | None:
    return rig.instruments.registry.get_sample_value("rematch_metrics_source_up", {"source": "metrics.k8s.io"})


async def test_a_round_reaches_the_state(rig: Rig, collector: MetricsCollector) -> None:
    await collector.once()

    usage = rig.snapshot().usage
    assert usage.usage("uid-web-1").cpu.fresh == 0.25
    assert usage.node_usage("n1").cpu.fresh == 2.0
    assert up(rig) == 1
    assert not collector.problems[MetricsSource.METRICS_API]


async def test_a_source_that_fails_is_reported_and_counted_until_it_works(
    rig: Rig, collector: MetricsCollector, reader: FakeReader
) -> None:
    reader.error = Unreachable("connection reset")
    await collector.once()
    assert up(rig) == 0
    assert "connection reset" in collector.problems[MetricsSource.METRICS_API]

    reader.error = None
    await collector.once()

    assert up(rig) == 1
    assert not collector.problems[MetricsSource.METRICS_API]
    errors = rig.instruments.registry.get_sample_value(
        "rematch_metrics_source_errors_total", {"source": "metrics.k8s.io"}
    )
    assert errors == 2


async def test_a_source_that_is_not_there_does_not_read_as_working(
    rig: Rig, collector: MetricsCollector, reader: FakeReader
) -> None:
    reader.error = NotFound("no such API", status=404)

    for _ in range(3):
        await collector.once()

    assert up(rig) == 0
    assert "metrics-server" in collector.problems[MetricsSource.METRICS_API]


async def test_unknown_nodes_are_reported(rig: Rig, collector: MetricsCollector, reader: FakeReader) -> None:
    """Else nobody would know why no node is ever measured."""
    reader.nodes = [node_metrics("10.1.2.3:9100", "2")]
    await collector.once()
    assert "10.1.2.3:9100" in collector.problems[MetricsSource.METRICS_API]

    reader.nodes = [node_metrics("10.1.2.3:9100", "2"), node_metrics("n1", "2")]
    await collector.once()
    assert not collector.problems[MetricsSource.METRICS_API]


async def test_sources_are_read_at_their_interval_and_not_before_the_first_list(reader: FakeReader) -> None:
    rig = Rig(make_settings(metrics={"metrics_api": {"interval": 5}}))
    collector = MetricsCollector(
        rig.state, cast(ClusterReader, reader), lambda: rig.settings, rig.clock, rig.instruments
    )
    task = asyncio.create_task(collector.run())
    await rig.clock.advance(20)
    assert reader.requests == 0

    rig.sync(make_pod(), make_node())
    await rig.clock.advance(11)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    assert reader.requests in (4, 6)


async def test_a_source_that_is_switched_off_is_not_read_and_has_no_problems(
    rig: Rig, collector: MetricsCollector, reader: FakeReader
) -> None:
    reader.error = Unreachable("connection reset")
    task = asyncio.create_task(collector.run())
    await rig.clock.advance(1)
    assert collector.problems[MetricsSource.METRICS_API]

    rig.settings = make_settings(metrics={"metrics_api": {"enabled": False}})
    await rig.clock.advance(20)
    read = reader.requests
    await rig.clock.advance(60)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await collector.once()

    assert reader.requests == read
    assert not collector.problems.get(MetricsSource.METRICS_API)


async def test_fresh_measurements_wake_the_controller_for_failing_pods(rig: Rig, collector: MetricsCollector) -> None:
    rig.fail(make_pod(), 1)
    waiting = asyncio.create_task(rig.work_queue.next(0.0))
    await rig.clock.advance(0.1)
    await waiting

    await collector.once()
    again = asyncio.create_task(rig.work_queue.next(0.0))
    await rig.clock.advance(0.1)

    assert set(await again) == {"metrics"}
    assert rig.clock.now() > NOW
