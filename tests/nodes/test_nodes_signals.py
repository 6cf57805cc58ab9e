"""Signals that fail one at a time: the other ones carry on."""

from __future__ import annotations

import asyncio
import time
from datetime import datetime

import pytest

from loadtests.demo.controller import RunningController
from loadtests.nodes.apps import App, ProbeTimes
from tests.nodes.stage import Stage, hog

pytestmark = [pytest.mark.nodes, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(300)]

PATIENT = ProbeTimes(failures=100)
STARVED = App("starved", cpu="5m", environment={"PROBE_ITERATIONS": "10000000"}, probe=PATIENT)
BURN = "burn?threads=4&seconds=150"


async def test_without_prometheus_events_are_enough(stage: Stage) -> None:
    await stage.deploy(hog("150m"), "node2")
    await stage.deploy(STARVED, "node2")
    stage.lab.prometheus.stop()
    try:
        async with stage.controller() as controller:
            await stage.control("hog", BURN)
            await stage.until(lambda: stage.moved("starved", "node2"), "the starved pod is Ready elsewhere")
            assert any("prometheus" in problem.lower() for problem in (await controller.overview()).problems)
    finally:
        await stage.lab.prometheus.start()


async def test_without_events_the_probe_counters_are_enough(stage: Stage) -> None:
    """The kubelet's spam filter has had enough of this pod, and what it let through before is gone."""
    await stage.deploy(hog("150m"), "node2")
    await stage.deploy(STARVED, "node2")
    pod = (await stage.pod("starved"))["metadata"]
    await stage.control("hog", BURN)
    await stage.until(lambda: _is_silenced(stage, pod["uid"]), "the kubelet tells no more")
    await stage.lab.api.delete(f"/api/v1/namespaces/{stage.namespace}/events", {})
    async with stage.controller(mode="observe") as controller:
        await stage.until(lambda: _counters_told(stage, controller, pod["name"]), "the counters tell")
        told = await stage.failures_by(controller.url, pod["name"])
        assert told["counters"] > told["events"]
        stage.write_settings(mode="act")
        await stage.until(lambda: stage.moved("starved", "node2"), "the starved pod is Ready elsewhere")


@pytest.mark.parametrize(
    ("node", "cpu", "off"), [("node3", "300m", 300), ("node1", "450m", -300)], ids=["ahead", "behind"]
)
async def test_a_clock_minutes_off_is_understood(stage: Stage, node: str, cpu: str, off: int) -> None:
    await stage.deploy(hog(cpu), node)
    await stage.deploy(STARVED, node)
    pod = (await stage.pod("starved"))["metadata"]
    async with stage.controller(mode="observe") as controller:
        await stage.control("hog", BURN)
        await stage.until(lambda: _is_unhappy(stage, controller, pod["name"]), "its happiness has fallen")
        await stage.until(lambda: _is_warned_of(stage, pod["uid"]), "an event tells of it")
    told = await stage.events("Unhealthy", uid=pod["uid"])
    newest = max(datetime.fromisoformat(event["lastTimestamp"]).timestamp() for event in told)
    assert newest - time.time() == pytest.approx(off, abs=100)
    # A new process finds those events in its first list: history that lies in the future, or seems long past.
    async with stage.controller():
        await stage.until(lambda: stage.moved("starved", node), "the starved pod is Ready elsewhere")
        await stage.until(lambda: stage.is_at_peace("starved"), "its probes are answered there")


async def _warnings(stage: Stage, uid: str) -> int:
    return sum(event.get("count") or 1 for event in await stage.events("Unhealthy", uid=uid))


async def _is_warned_of(stage: Stage, uid: str) -> bool:
    return await _warnings(stage, uid) > 0


async def _is_silenced(stage: Stage, uid: str) -> bool:
    """About 25 got through, and nothing new for a while although the probes go on failing."""
    before = await _warnings(stage, uid)
    if before < 15:
        return False
    await asyncio.sleep(4.0)
    return await _warnings(stage, uid) == before


async def _counters_told(stage: Stage, controller: RunningController, pod: str) -> bool:
    return (await stage.failures_by(controller.url, pod)).get("counters", 0) >= 3


async def _is_unhappy(stage: Stage, controller: RunningController, pod: str) -> bool:
    happiness = (await stage.view(controller.url, pod)).happiness
    return happiness is not None and not happiness.happy
