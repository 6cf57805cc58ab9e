"""One arm of the comparison: the same cluster and load, with the controller observing or acting."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loadtests.demo.cluster import DemoCluster, demo_cluster
from loadtests.demo.controller import ControllerSpec, RunningController, running_controller
from loadtests.demo.scenario import Scenario
from loadtests.tools.ports import free_port
from loadtests.workloads.k6 import K6, PodSource
from loadtests.workloads.load_generator import LoadGenerator
from loadtests.workloads.samples import LoadSummary, summarise
from reactor.clock import Clock
from reactor.settings.load import dump_settings
from reactor.settings.model import Mode, Settings
from reactor.web.view import Overview, Series


@dataclass(frozen=True, slots=True)
class ArmSpec:
    scenario: Scenario
    mode: Mode
    threshold: float
    state: Path
    port: int = 0
    k6: Path | None = None
    """The program, when it makes the load."""


@dataclass(frozen=True, slots=True)
class ArmResult:
    load: LoadSummary
    rematches: int
    """Carried out: what an observing controller only planned is none."""
    moves: int
    pods_without_node: int
    series: Series
    lateness: float
    """The most that a request of ours started late, in seconds: a measure of how busy this machine was."""


@dataclass(frozen=True, slots=True)
class Arm:
    spec: ArmSpec
    lab: DemoCluster
    controller: RunningController
    kubeconfig: Path
    store: Path


@asynccontextmanager
async def running_arm(spec: ArmSpec, clock: Clock) -> AsyncIterator[Arm]:
    folder = spec.state / spec.mode
    folder.mkdir(parents=True, exist_ok=True)
    async with demo_cluster(spec.scenario, clock) as lab:
        kubeconfig = lab.cluster.kubeconfig(folder / "kubeconfig")
        settings = folder / "settings.yaml"
        settings.write_text(dump_settings(demo_settings(spec, lab.prometheus.url)))
        for old in folder.glob("rematch.db*"):
            old.unlink()
        store = folder / "rematch.db"
        control = ControllerSpec(kubeconfig, settings, store, folder / "controller.log", spec.port or free_port())
        async with running_controller(control) as controller:
            yield Arm(spec, lab, controller, kubeconfig, store)


def demo_settings(spec: ArmSpec, prometheus: str) -> Settings:
    """Shorter intervals than the defaults, because the demo lasts two minutes."""
    queries = {
        "podCpu": "lab_pod_cpu_cores",
        "podMemory": "lab_pod_memory_bytes",
        "nodeCpu": "lab_node_cpu_cores",
        "nodeMemory": "lab_node_memory_bytes",
        "throttled": "",
        "podCpuPressure": "",
        "podNetwork": "",
        "podDisk": "",
        "nodeDisk": "",
        "nodeNetwork": "",
        "nodeBandwidth": "",
        "availability": "lab_availability",
        "latencyP95": "lab_latency_p95_seconds",
    }
    tree: dict[str, Any] = {
        "mode": spec.mode.value,
        "managed": {"namespaces": [spec.scenario.namespace]},
        "happiness": {"threshold": spec.threshold, "halfLife": 20.0, "goodwill": 3.0},
        "triggers": {"evaluationInterval": 2.0},
        "decision": {"cooldown": 20.0, "settle": 10.0},
        "execution": {"readyDeadline": 30.0, "reservation": 30.0},
        "metrics": {
            "prometheus": {"url": prometheus, "interval": 2.0, "timeout": 2.0, "queries": queries},
            "metricsApi": {"interval": 5.0},
            "freshness": 20.0,
            "peakWindow": 20.0,
        },
    }
    return Settings.model_validate(tree)


async def run_arm(spec: ArmSpec, clock: Clock) -> ArmResult:
    async with running_arm(spec, clock) as arm:
        summary, lateness = await drive(arm, clock)
        overview: Overview = await arm.controller.overview()
        series = await arm.controller.series()
        without = await _without_node(arm.lab, clock)
        return ArmResult(summary, overview.rematches, overview.moves, without, series, lateness)


async def drive(arm: Arm, clock: Clock) -> tuple[LoadSummary, float]:
    """The load of the scenario, whole."""
    plan = arm.spec.scenario.load_plan()
    if arm.spec.k6 is not None:
        pods = PodSource(arm.lab.cluster.url, arm.spec.scenario.namespace, arm.lab.pod_port)
        return await K6(arm.spec.k6).follow_pods(plan, pods), 0.0
    generator = LoadGenerator(plan, arm.lab.targets, arm.lab.log, clock)
    await generator.run()
    return summarise(arm.lab.log.samples), generator.lateness


async def _without_node(lab: DemoCluster, clock: Clock) -> int:
    """A new replacement gets three seconds before it counts."""
    for _ in range(30):
        if lab.pods_without_node() == 0:
            break
        await clock.sleep(0.1)
    return lab.pods_without_node()
