"""Whole lives of pods: real HTTP endpoints, real probes, against the smallest API server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from loadtests.kubelet.addresses import AddressPool
from loadtests.kubelet.kubelet import KubeletOptions, LabKubelet
from loadtests.kubelet.usage import ProbeKind
from loadtests.workloads.api import LabApi
from loadtests.workloads.http_client import Ending, http_get
from loadtests.workloads.placement import NodeSpec
from reactor.clock import SystemClock
from reactor.meter.measuring import MeterRequests, measure

FAST = {"lab.rematch.io/startup-ms": "1", "lab.rematch.io/drain-ms": "20", "lab.rematch.io/work-ms": "1"}


@pytest.fixture
async def kubelet(api: LabApi) -> AsyncIterator[LabKubelet]:
    clock = SystemClock()
    options = KubeletOptions(sandbox_seconds=0.01, backoff_scale=0.01, heartbeat=60)
    kubelet = LabKubelet(NodeSpec("node1", 2, 4 * 10**9), api, AddressPool(clock), clock, options)
    await kubelet.start()
    yield kubelet
    await kubelet.stop()


def container(tiny: Any, name: str) -> dict[str, Any]:
    return dict(tiny.pods[name]["status"]["containerStatuses"][0])


async def test_the_node_is_registered_and_ready(tiny: Any, kubelet: LabKubelet, until: Any) -> None:
    await until(lambda: "NodeReady" in tiny.reasons())
    node = tiny.nodes["node1"]
    assert node["metadata"]["labels"]["kubernetes.io/hostname"] == "node1"
    assert node["status"]["allocatable"] == {"cpu": "2", "memory": "3906250Ki", "pods": "110"}
    assert {item["type"]: item["status"] for item in node["status"]["conditions"]} == {
        "MemoryPressure": "False",
        "DiskPressure": "False",
        "PIDPressure": "False",
        "Ready": "True",
    }


async def test_a_bound_pod_becomes_ready_and_answers(
    tiny: Any, kubelet: LabKubelet, until: Any, make_pod: Any, probe: Any
) -> None:
    tiny.bind(make_pod("web", FAST, livenessProbe=probe(), readinessProbe=probe("/readyz")))
    await until(lambda: tiny.ready("web"))
    status = tiny.pods["web"]["status"]
    assert status["phase"] == "Running"
    assert status["podIP"].startswith("127.")
    assert (await http_get(status["podIP"], 8080, "/", 1)).ok
    assert container(tiny, "web")["restartCount"] == 0
    assert set(container(tiny, "web")["state"]) == {"running"}
    assert {"Pulled", "Created", "Started"} <= set(tiny.reasons())
    usage = kubelet.usage()
    assert usage.pods[0].cpu_seconds > 0
    assert usage.memory_bytes >= 64 * 2**20


async def test_a_starved_pod_fails_its_probes_and_is_restarted(
    tiny: Any, kubelet: LabKubelet, until: Any, make_pod: Any, probe: Any
) -> None:
    starved = FAST | {"lab.rematch.io/probe-work-ms": "60000"}
    tiny.bind(make_pod("web", starved, livenessProbe=probe(failureThreshold=2)))
    await until(lambda: "web" in tiny.pods and tiny.pods["web"].get("status"))
    await until(lambda: container(tiny, "web")["restartCount"] >= 2)
    events = list(tiny.events.values())
    unhealthy = [event for event in events if event["reason"] == "Unhealthy"]
    assert any("Liveness probe failed: Get" in event["message"] for event in unhealthy)
    killing = next(event for event in events if event["reason"] == "Killing")
    assert killing["message"] == "Container web failed liveness probe, will be restarted"
    assert killing["type"] == "Normal"
    assert killing["count"] >= 2
    assert set(container(tiny, "web")["lastState"]) == {"terminated"}
    failed = [item for item in kubelet.probe_counts() if item.kind is ProbeKind.LIVENESS and not item.successful]
    assert failed[0].count >= 4


async def test_a_readiness_failure_restarts_nothing(
    tiny: Any, kubelet: LabKubelet, until: Any, make_pod: Any, probe: Any
) -> None:
    starved = FAST | {"lab.rematch.io/probe-work-ms": "60000"}
    tiny.bind(make_pod("web", starved, readinessProbe=probe("/readyz", failureThreshold=1)))
    await until(lambda: any("Readiness probe failed" in event["message"] for event in tiny.events.values()))
    assert not tiny.ready("web")
    assert "Killing" not in tiny.reasons()
    assert container(tiny, "web")["restartCount"] == 0


async def test_a_deleted_pod_is_unready_first_answers_what_it_has_and_is_removed_by_uid(
    tiny: Any, kubelet: LabKubelet, until: Any, make_pod: Any, probe: Any
) -> None:
    slow = FAST | {"lab.rematch.io/work-ms": "150", "lab.rematch.io/work-spread": "0"}
    tiny.bind(make_pod("web", slow, readinessProbe=probe("/readyz")))
    await until(lambda: tiny.ready("web"))
    host = tiny.pods["web"]["status"]["podIP"]
    asked = asyncio.create_task(http_get(host, 8080, "/", 2))
    await asyncio.sleep(0.02)
    tiny.seen.clear()
    tiny.ask_to_end("web", grace=2)
    assert (await asked).ok
    await until(lambda: "web" not in tiny.pods)
    kinds = [kind for kind, _, _ in tiny.seen]
    assert kinds[-1] == "delete"
    first = next(body for kind, _, body in tiny.seen if kind == "status")
    assert {item["status"] for item in first["conditions"] if item["type"] == "Ready"} == {"False"}
    deletion = tiny.seen[-1][2]
    assert deletion["gracePeriodSeconds"] == 0
    assert deletion["preconditions"] == {"uid": "uid-web"}
    assert any(event["message"] == "Stopping container web" for event in tiny.events.values())
    assert (await http_get(host, 8080, "/", 1)).ending is Ending.REFUSED
    await until(lambda: not list(kubelet.probe_counts()))


async def test_while_the_pre_stop_hook_sleeps_the_pod_is_ready_and_serves(
    tiny: Any, kubelet: LabKubelet, until: Any, make_pod: Any, probe: Any
) -> None:
    hook = {"preStop": {"sleep": {"seconds": 1}}}
    tiny.bind(make_pod("web", FAST, readinessProbe=probe("/readyz"), lifecycle=hook))
    await until(lambda: tiny.ready("web"))
    host = tiny.pods["web"]["status"]["podIP"]
    tiny.ask_to_end("web", grace=5)
    await asyncio.sleep(0.3)
    assert (await http_get(host, 8080, "/", 1)).ok
    assert tiny.ready("web")
    await until(lambda: "web" not in tiny.pods)
    assert (await http_get(host, 8080, "/", 1)).ending is Ending.REFUSED


async def test_a_pod_answers_a_latency_meter_as_long_as_it_runs(
    tiny: Any, kubelet: LabKubelet, until: Any, make_pod: Any
) -> None:
    tiny.bind(make_pod("web", FAST | {"lab.rematch.io/echo-port": "9500"}))
    await until(lambda: tiny.pods["web"].get("status") and tiny.ready("web"))
    host = tiny.pods["web"]["status"]["podIP"]
    asked = MeterRequests(9500, number=2, timeout=0.5)
    assert (await measure(host, asked, SystemClock())).loss == 0
    tiny.ask_to_end("web", grace=1)
    await until(lambda: "web" not in tiny.pods)
    assert (await measure(host, asked, SystemClock())).loss == 1


async def test_grace_is_not_waited_out_for_ever(
    tiny: Any, kubelet: LabKubelet, until: Any, make_pod: Any, probe: Any
) -> None:
    endless = FAST | {"lab.rematch.io/work-ms": "60000"}
    tiny.bind(make_pod("web", endless))
    await until(lambda: tiny.pods["web"].get("status") and tiny.ready("web"))
    asked = asyncio.create_task(http_get(tiny.pods["web"]["status"]["podIP"], 8080, "/", 5))
    await asyncio.sleep(0.05)
    tiny.ask_to_end("web", grace=1)
    assert (await asked).ending in (Ending.CLOSED, Ending.RESET)
    await until(lambda: "web" not in tiny.pods)
    last = [body for kind, _, body in tiny.seen if kind == "status"][-1]
    assert last["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 137


async def test_a_pod_the_lab_cannot_run_is_said_in_an_event(
    tiny: Any, kubelet: LabKubelet, until: Any, make_pod: Any
) -> None:
    tiny.bind(make_pod("web", {"lab.rematch.io/work-ms": "fast"}))
    await until(lambda: "Failed" in tiny.reasons())
    event = next(event for event in tiny.events.values() if event["reason"] == "Failed")
    assert event["message"] == "Error: annotation lab.rematch.io/work-ms: 'fast' is not a number of at least 0"
    tiny.ask_to_end("web", grace=2)
    await until(lambda: "web" not in tiny.pods)


async def test_a_stopped_kubelet_leaves_nothing_listening(
    tiny: Any, kubelet: LabKubelet, until: Any, make_pod: Any
) -> None:
    tiny.bind(make_pod("web", FAST))
    await until(lambda: tiny.pods["web"].get("status") and tiny.ready("web"))
    host = tiny.pods["web"]["status"]["podIP"]
    assert (await http_get(host, 8080, "/", 1)).ok
    await kubelet.stop()
    assert (await http_get(host, 8080, "/", 1)).ending is Ending.REFUSED
