"""From the recorded history to forecasts of pods, workloads and nodes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest

from reactor.forecasts.engine import ClusterNow, ForecastEngine
from reactor.forecasts.forecasts import Trust
from reactor.forecasts.models import Models
from reactor.forecasts.usage_samples import UsageSamples
from reactor.history.levels import Axis
from reactor.history.series import SeriesIndex
from reactor.settings.model import PeakSource
from storage.limits import Limits
from storage.store import Store
from tests.reactor.forecasts.recorded import record

START = 20 * 86400
STEPS = 36
END = START + STEPS * 300
HOUR = 3600.0


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with await Store.open(tmp_path / "rematch.db", Limits(flush_seconds=30.0)) as opened:
        yield opened


def engine_of(store: Store, cores: float = 4.0) -> ForecastEngine:
    samples = UsageSamples(store, lambda: {"n1": cores})
    return ForecastEngine(samples, {Axis.CPU: Models()}, PeakSource.BOOSTED_PEAK)


def level(value: float, steps: int = STEPS) -> np.ndarray:
    return np.full(steps, value)


async def recorded_pods(store: Store, cpu: dict[str, np.ndarray], *, nodes: dict[str, int] | None = None) -> None:
    memory = {name: level(1e8) for name in cpu}
    await record(
        store, SeriesIndex(await store.series()), "pod", START, {Axis.CPU: cpu, Axis.MEMORY: memory}, nodes=nodes
    )


async def test_a_node_is_forecast_from_the_pods_that_are_there_now(store: Store) -> None:
    await recorded_pods(store, {"shop/a": level(1.0), "shop/b": level(0.5), "shop/c": level(2.0)})
    engine = engine_of(store)
    await engine.samples.read_until(END)
    found = await engine.advance(ClusterNow({"shop/a": "n1", "shop/b": "n1", "shop/c": "n2"}), 0.95)
    node = found.nodes.of("n1", Axis.CPU, HOUR)
    assert node is not None
    assert node.value == pytest.approx(1.5, rel=0.02)
    pod = found.pods.of("shop/c", Axis.CPU, HOUR)
    assert pod is not None
    assert pod.peak == pytest.approx(2.0, rel=0.02)
    assert pod.trust is Trust.UNCALIBRATED
    assert found.pods.of("shop/unknown", Axis.CPU, HOUR) is None


async def test_a_workload_is_the_sum_of_its_replicas(store: Store) -> None:
    index = SeriesIndex()
    axes = {Axis.CPU: {"shop/ReplicaSet/web": level(0.5)}, Axis.READY: {"shop/ReplicaSet/web": level(1.0)}}
    await record(store, index, "workload", START, axes, counts={"shop/ReplicaSet/web": 15})
    engine = engine_of(store)
    await engine.samples.read_until(END)
    found = await engine.advance(ClusterNow(), 0.95)
    workload = found.workloads.of("shop/ReplicaSet/web", Axis.CPU, HOUR)
    assert workload is not None
    assert workload.value == pytest.approx(1.5, rel=0.02), "three replicas: 15 samples of readiness in 5 minutes"


@pytest.mark.parametrize(("cores", "trust"), [(4.0, Trust.UNCALIBRATED), (1.0, Trust.LOWER_BOUND)])
async def test_demand_on_a_full_node_is_a_lower_bound(store: Store, cores: float, trust: Trust) -> None:
    index = SeriesIndex()
    await record(store, index, "node", START, {Axis.CPU: {"n1": level(0.95)}})
    await recorded_pods(store, {"shop/a": level(0.9)}, nodes={"shop/a": 1})
    engine = engine_of(store, cores)
    await engine.samples.read_until(END)
    found = (await engine.advance(ClusterNow({"shop/a": "n1"}), 0.95)).pods.of("shop/a", Axis.CPU, HOUR)
    assert found is not None
    assert found.trust is trust


async def test_throttled_demand_is_a_lower_bound(store: Store) -> None:
    axes = {
        Axis.CPU: {"shop/a": level(0.5)},
        Axis.MEMORY: {"shop/a": level(1e8)},
        Axis.THROTTLED: {"shop/a": level(0.4)},
    }
    await record(store, SeriesIndex(), "pod", START, axes)
    engine = engine_of(store)
    await engine.samples.read_until(END)
    found = (await engine.advance(ClusterNow(), 0.95)).pods.of("shop/a", Axis.CPU, HOUR)
    assert found is not None
    assert found.trust is Trust.LOWER_BOUND


async def test_growing_memory_reaches_its_limit(store: Store) -> None:
    memory = {"shop/a": 1e8 + 1e6 * np.arange(STEPS), "shop/b": level(1e8)}
    cpu = {"shop/a": level(0.1), "shop/b": level(0.1)}
    await record(store, SeriesIndex(), "pod", START, {Axis.CPU: cpu, Axis.MEMORY: memory})
    engine = engine_of(store)
    await engine.samples.read_until(END)
    found = await engine.advance(ClusterNow(memory_limits={"shop/a": 1.95e8, "shop/b": 1.95e8}), 0.95)
    assert list(found.growth) == ["shop/a"]
    assert found.growth["shop/a"].seconds_to_limit == pytest.approx(60 * 300, rel=0.15)


async def test_calibration_goes_on_after_a_restart(store: Store) -> None:
    await recorded_pods(store, {"shop/a": level(1.0)})
    first = engine_of(store)
    for at in range(END - 12 * 300, END + 1, 300):
        await first.samples.read_until(at)
        await first.advance(ClusterNow(), 0.95)
    (name,) = [name for name in first._forecasting if name.startswith("pod/cpu")]
    learned = first._forecasting[name].calibration.resolved
    assert learned.max() == 12, "the shortest horizon, once per step"
    second = engine_of(store)
    second.restore(first.saved())
    await second.samples.read_until(END)
    await second.advance(ClusterNow(), 0.95)
    assert np.array_equal(second._forecasting[name].calibration.resolved, learned)
    other = engine_of(store)
    other.restore(dict.fromkeys(first.saved(), b"damaged"))
    await other.samples.read_until(END)
    assert (await other.advance(ClusterNow(), 0.95)).pods.rows == {"shop/a": 0}


async def test_another_coverage_begins_to_be_calibrated_anew(store: Store) -> None:
    await recorded_pods(store, {"shop/a": level(1.0), "shop/b": level(1.0)})
    engine = engine_of(store)
    for at in range(END - 3 * 300, END, 300):
        await engine.samples.read_until(at)
        await engine.advance(ClusterNow(), 0.95)
    await engine.samples.read_until(END)
    await engine.advance(ClusterNow(coverages={"shop/b": 0.8}), 0.95)
    resolved = engine._forecasting["pod/cpu/0"].calibration.resolved[:, 0]
    rows = engine.samples.pods.rows
    assert (resolved[rows["shop/a"]], resolved[rows["shop/b"]]) == (3, 1)


async def test_a_series_without_samples_for_an_hour_is_dropped(store: Store) -> None:
    gone = np.concatenate((level(1.0, STEPS - 13), np.full(13, np.nan)))
    await recorded_pods(store, {"shop/a": level(1.0)})
    index = SeriesIndex(await store.series())
    await record(store, index, "pod", START + 86400, {Axis.CPU: {"shop/b": gone}, Axis.MEMORY: {"shop/b": gone}})
    engine = engine_of(store)
    await engine.samples.read_until(END)
    assert set(engine.samples.pods.rows) == {"shop/a"}
    await engine.samples.read_until(END + 86400)
    await engine.samples.read_until(END + 86400 + 300)
    assert set(engine.samples.pods.rows) == set()
