"""The demo's cluster: API server, three lab kubelets, fifteen apps placed by kube-scheduler's default scores."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from loadtests.demo.scenario import Scenario
from loadtests.embedded import ClusterOptions, EmbeddedCluster
from loadtests.embedded.default_scheduler import DEFAULT_NAME
from loadtests.embedded.resources import DEPLOYMENTS, NAMESPACES, PODS
from loadtests.kubelet.addresses import AddressPool, port_for_pods
from loadtests.kubelet.kubelet import KubeletOptions, LabKubelet
from loadtests.metrics.prometheus import LabPrometheus
from loadtests.metrics.rates import LabMetrics, UsageSampler
from loadtests.metrics.series import LabSeries
from loadtests.workloads.api import LabApi, has_condition
from loadtests.workloads.samples import LoadLog
from loadtests.workloads.targets import WatchedTargets
from reactor.clock import Clock
from reactor.errors import ClusterError

SCHEDULER = "rematch"
READY_DEADLINE = 30.0


@dataclass(frozen=True, slots=True)
class DemoCluster:
    scenario: Scenario
    cluster: EmbeddedCluster
    prometheus: LabPrometheus
    targets: WatchedTargets
    log: LoadLog
    pod_port: int

    def pods_without_node(self) -> int:
        return sum(not pod.obj["spec"].get("nodeName") for pod in self.cluster.store.all(PODS))


@asynccontextmanager
async def demo_cluster(scenario: Scenario, clock: Clock, port: int = 0) -> AsyncIterator[DemoCluster]:
    """Up with every app Ready where the default scheduler put it; taken down whatever happens."""
    kubelets: list[LabKubelet] = []
    sampler = UsageSampler(kubelets, clock)
    log = LoadLog(clock)
    options = ClusterOptions(seed=scenario.seed, schedule=frozenset({DEFAULT_NAME, SCHEDULER}))
    cluster = EmbeddedCluster(options, clock=clock, metrics=LabMetrics(sampler))
    prometheus = LabPrometheus(LabSeries(kubelets, sampler, log), clock)
    async with AsyncExitStack() as stack:
        await cluster.start(port)
        stack.push_async_callback(cluster.stop)
        await prometheus.start()
        stack.push_async_callback(prometheus.stop)
        api = LabApi(cluster.url, clock)
        stack.push_async_callback(api.close)
        await _start_kubelets(scenario, api, clock, kubelets, stack)
        targets = WatchedTargets(api, scenario.namespace)
        _keep_running(stack, targets, sampler)
        pod_port = port_for_pods()
        await _deploy(scenario, cluster, clock, pod_port)
        yield DemoCluster(scenario, cluster, prometheus, targets, log, pod_port)


async def _start_kubelets(
    scenario: Scenario, api: LabApi, clock: Clock, kubelets: list[LabKubelet], stack: AsyncExitStack
) -> None:
    pool = AddressPool(clock)
    options = KubeletOptions(seed=scenario.seed, backoff_scale=0.1)
    for node in scenario.nodes:
        kubelet = LabKubelet(node, api, pool, clock, options)
        await kubelet.start()
        stack.push_async_callback(kubelet.stop)
        kubelets.append(kubelet)


def _keep_running(stack: AsyncExitStack, targets: WatchedTargets, sampler: UsageSampler) -> None:
    tasks = [asyncio.create_task(targets.run()), asyncio.create_task(sampler.run())]

    async def end() -> None:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    stack.push_async_callback(end)


async def _deploy(scenario: Scenario, cluster: EmbeddedCluster, clock: Clock, pod_port: int) -> None:
    """One app after the other, so that every run starts from one placement; then the default scheduler steps back."""
    cluster.api.create(NAMESPACES, {"metadata": {"name": scenario.namespace}})
    try:
        async with asyncio.timeout(READY_DEADLINE):
            for number, deployment in enumerate(scenario.deployments(SCHEDULER, pod_port), start=1):
                cluster.api.create(DEPLOYMENTS, deployment)
                while _bound(cluster) < number:
                    await clock.sleep(0.01)
            cluster.scheduler.serve([DEFAULT_NAME])
            while _ready(cluster) < len(scenario.apps):
                await clock.sleep(0.05)
    except TimeoutError as error:
        raise ClusterError(
            f"only {_ready(cluster)} of {len(scenario.apps)} apps Ready in {READY_DEADLINE:g} s"
        ) from error


def _bound(cluster: EmbeddedCluster) -> int:
    return sum(bool(pod.obj["spec"].get("nodeName")) for pod in cluster.store.all(PODS))


def _ready(cluster: EmbeddedCluster) -> int:
    return sum(has_condition(pod.obj, "Ready") for pod in cluster.store.all(PODS))
