"""Signals that fail one at a time: the other ones carry on."""

from __future__ import annotations

import asyncio
import time
from datetime import datetime

import pytest

from loadtests.demo.controller import RunningController
from loadtests.nodes.apps import LabApp, ProbeTimes
from tests.nodes.namespace import LabNamespace, hog

pytestmark = [pytest.mark.nodes, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(300)]

PATIENT = ProbeTimes(failures=100)
STARVED = LabApp("starved", cpu="5m", environment={"PROBE_ITERATIONS": "10000000"}, probe=PATIENT)
BURN = "burn?threads=4&seconds=150"


async def test_without_prometheus_events_are_enough(ns: LabNamespace) -> None:
    await ns.deploy(hog("150m"), "node2")
    await ns.deploy(STARVED, "node2")
    ns.lab.prometheus.stop()
    try:
        async with ns.controller() as controller:
            await ns.control("hog", BURN)
            await ns.until(lambda: ns.moved("starved", "node2"), "the starved pod is Ready elsewhere")
            assert any("prometheus" in problem.lower() for problem in (await controller.overview()).problems)
    finally:
        await ns.lab.prometheus.start()


async def test_without_events_the_probe_counters_are_enough(ns: LabNamespace) -> None:
    """The kubelet's spam filter has had enough of this pod, and what it let through before is gone."""
    await ns.deploy(hog("150m"), "node2")
    await ns.deploy(STARVED, "node2")
    pod = (await ns.pod("starved"))["metadata"]
    await ns.control("hog", BURN)
    await ns.until(lambda: _is_silenced(ns, pod["uid"]), "the kubelet tells no more")
    await ns.lab.api.delete(f"/api/v1/namespaces/{ns.name}/events", {})
    async with ns.controller(mode="observe") as controller:
        await ns.until(lambda: _counters_known(ns, controller, pod["name"]), "the counters tell")
        found = await ns.failures_by(controller.url, pod["name"])
        assert found["counters"] > found["events"]
        ns.write_settings(mode="act")
        await ns.until(lambda: ns.moved("starved", "node2"), "the starved pod is Ready elsewhere")


@pytest.mark.parametrize(
    ("node", "cpu", "off"), [("node3", "300m", 300), ("node1", "450m", -300)], ids=["ahead", "behind"]
)
async def test_a_clock_minutes_off_is_understood(ns: LabNamespace, node: str, cpu: str, off: int) -> None:
    await ns.deploy(hog(cpu), node)
    await ns.deploy(STARVED, node)
    pod = (await ns.pod("starved"))["metadata"]
    async with ns.controller(mode="observe") as controller:
        await ns.control("hog", BURN)
        await ns.until(lambda: _is_unhappy(ns, controller, pod["name"]), "its happiness has fallen")
        await ns.until(lambda: _is_warned_of(ns, pod["uid"]), "an event tells of it")
    found = await ns.events("Unhealthy", uid=pod["uid"])
    newest = max(datetime.fromisoformat(event["lastTimestamp"]).timestamp() for event in found)
    assert newest - time.time() == pytest.approx(off, abs=100)
    # A new process finds those events in its first list: history that lies in the future, or seems long past.
    async with ns.controller():
        await ns.until(lambda: ns.moved("starved", node), "the starved pod is Ready elsewhere")
        await ns.until(lambda: ns.is_at_peace("starved"), "its probes are answered there")


async def _warnings(ns: LabNamespace, uid: str) -> int:
    return sum(event.get("count") or 1 for event in await ns.events("Unhealthy", uid=uid))


async def _is_warned_of(ns: LabNamespace, uid: str) -> bool:
    return await _warnings(ns, uid) > 0


async def _is_silenced(ns: LabNamespace, uid: str) -> bool:
    """About 25 got through, and nothing new for a while although the probes go on failing."""
    before = await _warnings(ns, uid)
    if before < 15:
        return False
    await asyncio.sleep(4.0)
    return await _warnings(ns, uid) == before


async def _counters_known(ns: LabNamespace, controller: RunningController, pod: str) -> bool:
    return (await ns.failures_by(controller.url, pod)).get("counters", 0) >= 3


async def _is_unhappy(ns: LabNamespace, controller: RunningController, pod: str) -> bool:
    happiness = (await ns.view(controller.url, pod)).happiness
    return happiness is not None and not happiness.happy
