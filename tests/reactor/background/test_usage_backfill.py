from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import cast

import numpy as np
import pytest

from reactor.background.usage_backfill import UsageBackfill
from reactor.background.usage_recording import UsageRecording
from reactor.cluster.records import NodeUsageSample, PodUsageSample
from reactor.errors import MetricsError
from reactor.history.levels import FIVE_MINUTES, Axis
from reactor.history.usage_series import read_series
from reactor.settings.model import Prometheus
from reactor.signals.prometheus import PrometheusRange, PrometheusRound, PrometheusSource, Span
from storage.limits import Limits
from storage.store import Store
from tests.support.clock import VirtualClock
from tests.support.cluster import make_node, make_pod, make_settings
from tests.support.rig import Rig

NOON = 1_700_006_400.0 + 12 * 3600
OLDEST = NOON - 5 * 3600
"""Prometheus has nothing before this time."""


class FakePrometheus:
    def __init__(self) -> None:
        self.asked: list[Span] = []

    async def read_range(self, _settings: Prometheus, _pods: Mapping[str, int], span: Span) -> PrometheusRange:
        self.asked.append(span)
        if span.begin < OLDEST:
            return PrometheusRange({}, (MetricsError("out of bounds"),))
        times = np.arange(span.begin, span.end + 1, span.step).tolist()
        return PrometheusRange({at: self._round(at) for at in times})

    @staticmethod
    def _round(at: float) -> PrometheusRound:
        pods = [PodUsageSample("shop", "web-1", 2.0, 1e8, at), PodUsageSample("shop", "gone", 9.0, 1e8, at)]
        return PrometheusRound(pods=pods, nodes=[NodeUsageSample("n1", 3.0, 1e9, at)])


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with await Store.open(tmp_path / "rematch.db", Limits(flush_seconds=30.0)) as opened:
        yield opened


def started(rig: Rig, store: Store, prometheus: FakePrometheus) -> UsageBackfill:
    recording = UsageRecording(rig.state, store, lambda: rig.settings, rig.clock)
    source = cast(PrometheusSource, prometheus)
    return UsageBackfill(rig.state, store, source, recording, lambda: rig.settings, rig.clock)


@pytest.fixture
def rig() -> Rig:
    settings = make_settings(metrics={"prometheus": {"url": "http://prometheus:9090"}}, history={"minimum": 3600})
    rig = Rig(settings, VirtualClock(NOON + 600))
    rig.sync(make_pod("web-1", created=0.0), make_node("n1"))
    return rig


async def test_the_first_start_reads_the_past_of_pods_workloads_and_nodes(rig: Rig, store: Store) -> None:
    prometheus = FakePrometheus()
    await started(rig, store, prometheus).run()
    assert [span.begin for span in prometheus.asked] == [NOON - hour * 3600 for hour in range(1, 7)]
    for kind, name, cores in (
        ("pod", "shop/web-1", 2.0),
        ("workload", "shop/ReplicaSet/web", 2.0),
        ("node", "n1", 3.0),
    ):
        found = await read_series(store, kind, name, OLDEST, NOON, FIVE_MINUTES)  # type: ignore[arg-type]
        assert found is not None
        assert found.axes[Axis.CPU].mean == pytest.approx([cores] * 60, rel=0.006)
    assert await store.series_named("pod", "shop/gone") is None
    needs = rig.state.past_needs
    assert needs.hours[needs.pods["shop/web-1"]] == 5


async def test_only_hours_of_which_nothing_is_known_are_read(rig: Rig, store: Store) -> None:
    await started(rig, store, FakePrometheus()).run()
    rig.clock.set(NOON + 2 * 3600 + 60)
    after_a_gap = FakePrometheus()
    await started(rig, store, after_a_gap).run()
    assert [span.begin for span in after_a_gap.asked][:2] == [NOON + 3600, NOON]
    assert after_a_gap.asked[2].begin < OLDEST
