from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from reactor.background.usage_recording import UsageRecording
from reactor.cluster.kinds import Kind
from reactor.cluster.records import Owner, PodUsageSample
from reactor.history.levels import HOURS, MINUTES, Axis
from reactor.history.usage_series import UsageSeries, read_series
from reactor.signals.measurements import DiskSample, MetricsSource, NetworkSample, ThrottleSample
from storage.limits import Limits
from storage.rows import SeriesKind
from storage.store import Store
from tests.support.clock import VirtualClock
from tests.support.cluster import make_node, make_pod, make_workload
from tests.support.rig import Rig

MIDNIGHT = 1_700_006_400.0
assert MIDNIGHT % 86400 == 0


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with await Store.open(tmp_path / "rematch.db", Limits(flush_seconds=30.0)) as opened:
        yield opened


@pytest.fixture
def rig() -> Rig:
    rig = Rig(clock=VirtualClock(MIDNIGHT))
    rig.sync(make_pod("web-1"), make_pod("web-2"), make_node("n1"))
    return rig


@pytest.fixture
def recording(rig: Rig, store: Store) -> UsageRecording:
    return UsageRecording(rig.state, store, lambda: rig.settings, rig.clock)


async def read(store: Store, kind: SeriesKind, name: str, until: float = MIDNIGHT + 60) -> UsageSeries:
    await store.flush()
    found = await read_series(store, kind, name, MIDNIGHT, until, MINUTES)
    assert found is not None
    return found


async def test_a_pod_that_went_is_recorded_with_its_failures(rig: Rig, recording: UsageRecording, store: Store) -> None:
    """It went because of them: without them the history says that nothing happened."""
    rig.clock.set(MIDNIGHT + 10)
    rig.measure({"web-1": 0.4, "web-2": 1.0}, {"n1": 2.0})
    rig.fail(make_pod("web-1"), 2)
    rig.clock.set(MIDNIGHT + 30)
    rig.state.mirror.remove(Kind.PODS, make_pod("web-1").uid)
    rig.clock.set(MIDNIGHT + 61)
    await recording.record()

    pod = await read(store, "pod", "shop/web-1")
    assert float(pod.axes[Axis.CPU].mean[0]) == pytest.approx(0.4, rel=0.006)
    failures = (await read(store, "workload", "shop/ReplicaSet/web")).axes[Axis.FAILURES]
    assert float(failures.maximum[0]) == pytest.approx(float(pod.axes[Axis.FAILURES].mean[0]), rel=0.006)
    assert float(failures.maximum[0]) > 0
    assert float(pod.axes[Axis.SUCCESSES].mean[0]) < 3.1, "30 s of 10 s each"


async def test_a_minute_has_all_axes_of_pods_workloads_and_nodes(
    rig: Rig, recording: UsageRecording, store: Store
) -> None:
    for second, cores in ((10, 0.2), (25, 0.4)):
        rig.clock.set(MIDNIGHT + second)
        rig.measure({"web-1": cores, "web-2": 1.0}, {"n1": 2.0})
    now = rig.clock.now()
    rig.state.usage.record_network([NetworkSample("shop", "web-1", 8e6, now)], [], [], now)
    rig.state.usage.record_disk([DiskSample("shop", "web-1", 4096.0, now)], [], now)
    rig.state.usage.record_throttling([ThrottleSample("shop", "web-1", 0.25, now)], now)
    rig.fail(make_pod("web-1"), 2)
    rig.clock.set(MIDNIGHT + 61)
    await recording.record()

    pod = await read(store, "pod", "shop/web-1")
    means = {axis: float(series.mean[0]) for axis, series in pod.axes.items()}
    expected = {Axis.CPU: 0.3, Axis.NETWORK: 8e6, Axis.DISK: 4096.0, Axis.THROTTLED: 0.25, Axis.READY: 1.0}
    assert {axis: means[axis] for axis in expected} == pytest.approx(expected, rel=0.006)
    assert means[Axis.SUCCESSES] + means[Axis.FAILURES] == pytest.approx(6.0, rel=0.01)
    assert means[Axis.FAILURES] > 0
    assert float(pod.axes[Axis.CPU].maximum[0]) == pytest.approx(0.4, rel=0.006)
    assert pod.nodes == ("n1",)

    workload = (await read(store, "workload", "shop/ReplicaSet/web")).axes[Axis.CPU]
    assert float(workload.mean[0]) == pytest.approx(0.65, rel=0.006)
    assert float(workload.maximum[0]) == pytest.approx(1.0, rel=0.006)
    assert workload.samples.tolist() == [4]
    assert float((await read(store, "node", "n1")).axes[Axis.CPU].mean[0]) == pytest.approx(2.0, rel=0.006)


async def test_bad_data_is_said_and_does_not_enter(rig: Rig, recording: UsageRecording, store: Store) -> None:
    now = MIDNIGHT + 30
    rig.clock.set(now)
    source, ten_years = MetricsSource.METRICS_API, 10 * 365 * 86400.0
    for cpu, memory, at in (
        (0.5, 1e8, now - 10),
        (0.9, 1e8, now - 10),  # a duplicate
        (0.9, 1e8, now - 20),  # time goes back
        (-1.0, 1e8, now - 5),  # a negative step of a counter
        (float("nan"), 1e8, now - 4),
        (0.9, 1e8, now + ten_years),
        (0.9, 1e8, now - 3600),  # stale
    ):
        rig.state.usage.record_pods([PodUsageSample("shop", "web-1", cpu, memory, at)], source, now)
    rig.state.usage.record_pods([PodUsageSample("shop", "web-2", 250.0, 1e8, now)], source, now)  # millicores
    rig.clock.set(MIDNIGHT + 60)
    with capture_logs() as logs:
        await recording.record()
    cpu_of = (await read(store, "pod", "shop/web-1")).axes[Axis.CPU]
    assert cpu_of.mean.tolist() == pytest.approx([0.5], rel=0.006)
    assert cpu_of.samples.tolist() == [1]
    assert Axis.CPU not in (await read(store, "pod", "shop/web-2")).axes
    (warning,) = logs
    assert warning["values"] == 5, "two axes of the far future, a negative and a NaN CPU, and millicores"
    assert warning["one"] == "shop/web-2: cpu 250 on a node with 4"


async def test_what_is_not_measured_is_no_zero(rig: Rig, recording: UsageRecording, store: Store) -> None:
    rig.clock.set(MIDNIGHT + 60)
    await recording.record()
    assert Axis.CPU not in (await read(store, "pod", "shop/web-1")).axes


async def test_a_clock_that_goes_back_records_nothing_twice(rig: Rig, recording: UsageRecording, store: Store) -> None:
    rig.clock.set(MIDNIGHT + 119)
    rig.measure({"web-1": 1.0, "web-2": 1.0}, {})
    rig.clock.set(MIDNIGHT + 120)
    await recording.record()
    rig.clock.set(MIDNIGHT + 50)
    rig.measure({"web-1": 2.0, "web-2": 2.0}, {})
    rig.clock.set(MIDNIGHT + 60)
    with capture_logs() as logs:
        await recording.record()
    assert "did the clock go back" in logs[0]["event"]
    assert len(await store.chunks(60, 0, 2 * MIDNIGHT)) == 0
    await store.flush()
    assert {row.start for row in await store.chunks(60, 0, 2 * MIDNIGHT)} == {MIDNIGHT + 60}


async def test_rollouts_scalings_and_changes_of_nodes_are_events(
    rig: Rig, recording: UsageRecording, store: Store
) -> None:
    web = make_workload(Owner("Deployment", "web", "uid-of-web"), generation=1, replicas=2)
    rig.put(web)
    rig.put(replace(web, generation=2, replicas=5))
    rig.clock.set(MIDNIGHT + 5)
    rig.put(replace(web, generation=3, replicas=5))
    rig.put(make_node("n1", ready=False))
    rig.put(make_node("n2"))
    rig.clock.set(MIDNIGHT + 60)
    await recording.record()
    await store.flush()
    workload = await store.usage_events("workload", "shop/ReplicaSet/web", 0, 2 * MIDNIGHT)
    assert [event.text for event in workload] == ["scaled from 2 to 5 replicas", "rolled out a new spec"]
    assert [event.text for event in await store.usage_events("node", "n1", 0, 2 * MIDNIGHT)] == ["not Ready"]
    assert [event.text for event in await store.usage_events("node", "n2", 0, 2 * MIDNIGHT)] == ["added"]


async def test_needs_are_read_again_after_every_hour(rig: Rig, recording: UsageRecording, store: Store) -> None:
    await recording.restore(store)
    assert not rig.state.past_needs
    task = asyncio.create_task(recording.run())
    for _ in range(62):
        rig.measure({"web-1": 0.5, "web-2": 1.5}, {"n1": 2.0})
        await rig.clock.advance(60)
        for _ in range(50):
            await asyncio.sleep(0.001)
            if rig.clock._sleepers:
                break
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    needs = rig.state.past_needs
    assert needs.until == MIDNIGHT + 3600
    assert needs.means[needs.pods["shop/web-2"], 0] == pytest.approx(1.5, rel=0.006)
    assert len(await store.chunks(HOURS.step, 0, 2 * MIDNIGHT)) == 3, "of pods, workloads and nodes"
    assert rig.state.mirror.records(Kind.PODS)
