"""Nodes in trouble: killed, short of memory, with a kubelet that starts again."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from loadtests.nodes.apps import LabApp, ProbeTimes
from loadtests.workloads.api import has_condition
from tests.nodes.namespace import LabNamespace, hog

pytestmark = [pytest.mark.nodes, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(300)]

STARVED = LabApp("starved", cpu="5m", environment={"PROBE_ITERATIONS": "10000000"}, probe=ProbeTimes(failures=100))
GONE_SOON = tuple(
    {"key": f"node.kubernetes.io/{state}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1}
    for state in ("unreachable", "not-ready")
)


async def test_pods_of_a_killed_node_run_elsewhere(ns: LabNamespace) -> None:
    lab = ns.lab
    await ns.deploy(LabApp("left-behind", replicas=2, tolerations=GONE_SOON), "node2", "node2")
    async with ns.controller():
        lab.nodes["node2"].kill()
        try:
            await ns.until(lambda: _all_elsewhere(ns, "left-behind", 2), "both pods are Ready elsewhere")
            assert not await _has_condition(ns, "node2", "Ready", "True")
        finally:
            await lab.start_node("node2")
            await lab.until_ready("node2")


async def test_a_node_under_memory_pressure_gets_no_pods_and_its_evicted_one_runs_again(ns: LabNamespace) -> None:
    await ns.deploy(LabApp("eater", memory="40Mi"), "node2")
    evicted = await ns.pod("eater")
    async with ns.controller():
        # Pods of this node may use 768 MiB, and the kubelet acts when less than 200 of them are free.
        await ns.control("eater", "hold?mib=640")
        await ns.until(lambda: _has_condition(ns, "node2", "MemoryPressure", "True"), "node2 says so")
        await ns.deploy(LabApp("loyal", only_on="node2"))
        await ns.deploy(LabApp("free"))
        await ns.until(lambda: ns.moved("free", "node2"), "a pod that may go elsewhere is Ready there")
        assert await ns.node_of("loyal") == ""
        await ns.until(lambda: ns.is_ready("loyal"), "who may run only on node2 does when the pressure is over")
        assert await _has_condition(ns, "node2", "MemoryPressure", "False")
        # Its replacement may have been bound before the kubelet reported the pressure that its end removed.
        await ns.until(lambda: _is_replaced(ns, "eater", evicted), "the replacement of the evicted pod is Ready")
    known = await ns.events("Evicted", uid=evicted["metadata"]["uid"])
    assert any("memory" in event["message"] for event in known)


async def test_counters_that_start_again_with_the_kubelet_are_understood(ns: LabNamespace) -> None:
    await ns.deploy(hog("150m"), "node2")
    await ns.deploy(STARVED, "node2")
    name = (await ns.pod("starved"))["metadata"]["name"]
    async with ns.controller(mode="observe") as controller:
        await ns.control("hog", "burn?threads=4&seconds=150")
        await ns.until(lambda: _counted(ns, name, 5), "five failures are counted")
        before = await ns.liveness_failures(name)
        ns.lab.nodes["node2"].restart_kubelet()
        await ns.until(lambda: _counted_anew(ns, name, before), "the counter started again")
        after = await ns.liveness_failures(name)
        known = sum((await ns.failures_by(controller.url, name)).values())
        await asyncio.sleep(4.0)
        most = before + await ns.liveness_failures(name) + 3
        assert before * 0.5 <= known <= most, f"{known} failures known; {before} before and {after} after the restart"
        ns.write_settings(mode="act")
        await ns.until(lambda: ns.moved("starved", "node2"), "the starved pod is Ready elsewhere")


async def _is_replaced(ns: LabNamespace, app: str, old: dict[str, Any]) -> bool:
    return (await ns.pod(app))["metadata"]["uid"] != old["metadata"]["uid"] and await ns.is_ready(app)


async def _counted(ns: LabNamespace, pod: str, failures: int) -> bool:
    return await ns.liveness_failures(pod) >= failures


async def _counted_anew(ns: LabNamespace, pod: str, before: int) -> bool:
    return 1 <= await ns.liveness_failures(pod) < before


async def _all_elsewhere(ns: LabNamespace, app: str, replicas: int) -> bool:
    pods = await ns.pods(app)
    nodes = [pod["spec"].get("nodeName", "") for pod in pods]
    return len(pods) == replicas and "node2" not in nodes and await ns.is_ready(app)


async def _has_condition(ns: LabNamespace, node: str, kind: str, status: str) -> bool:
    return has_condition(await ns.lab.api.get(f"/api/v1/nodes/{node}"), kind, status)
