"""The lab as the demo uses it: embedded API server, two lab kubelets, load, metrics."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest

from loadtests.embedded import ClusterOptions, EmbeddedCluster
from loadtests.kubelet.addresses import AddressPool
from loadtests.kubelet.kubelet import KubeletOptions, LabKubelet
from loadtests.kubelet.usage import ProbeKind
from loadtests.metrics.rates import LabMetrics, UsageSampler
from loadtests.workloads.api import LabApi
from loadtests.workloads.app_spec import AppSpec
from loadtests.workloads.load_generator import AppLoad, LoadGenerator, LoadPlan, RateStep
from loadtests.workloads.placement import NodeSpec
from loadtests.workloads.samples import LoadLog, summarise_by_app
from loadtests.workloads.targets import WatchedTargets
from reactor.clock import SystemClock

APP = AppSpec(work_ms=20, workers=4, backlog=500, startup_ms=1, drain_ms=20)
"""The backlog is so long that a test machine which stands still for a moment refuses nobody."""
CLOCK = SystemClock()


@dataclass
class Lab:
    api: LabApi
    kubelets: list[LabKubelet]
    sampler: UsageSampler
    targets: WatchedTargets


@pytest.fixture
async def lab() -> AsyncIterator[Lab]:
    kubelets: list[LabKubelet] = []
    sampler = UsageSampler(kubelets, CLOCK, step=0.2)
    async with EmbeddedCluster(ClusterOptions(seed=1), metrics=LabMetrics(sampler)) as cluster:
        api = LabApi(cluster.url, CLOCK)
        pool, options = AddressPool(CLOCK), KubeletOptions(sandbox_seconds=0.01, backoff_scale=0.01)
        for node in (NodeSpec("weak", 0.3, 10**9), NodeSpec("strong", 4, 10**9)):
            kubelets.append(LabKubelet(node, api, pool, CLOCK, options))
            await kubelets[-1].start()
        targets = WatchedTargets(api, "default")
        tasks = [asyncio.create_task(targets.run()), asyncio.create_task(sampler.run())]
        yield Lab(api, kubelets, sampler, targets)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for kubelet in kubelets:
            await kubelet.stop()
        await api.close()


def deployment(name: str, node: str) -> dict[str, Any]:
    def probe(path: str, **values: int) -> dict[str, Any]:
        return {"httpGet": {"path": path, "port": 8080}, "periodSeconds": 1, "timeoutSeconds": 1, **values}

    container = {
        "name": "web",
        "image": "lab.local/web:1",
        "ports": [{"containerPort": 8080}],
        "resources": {"requests": {"cpu": "100m"}},
        "livenessProbe": probe("/healthz", failureThreshold=2, initialDelaySeconds=1),
        "readinessProbe": probe("/readyz", failureThreshold=10),
    }
    pod = {
        "nodeSelector": {"kubernetes.io/hostname": node},
        "terminationGracePeriodSeconds": 1,
        "containers": [container],
    }
    return {
        "metadata": {"name": name},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}, "annotations": APP.annotations()}, "spec": pod},
        },
    }


async def deploy(lab: Lab, until: Any, **apps: str) -> None:
    for name, node in apps.items():
        await lab.api.create("/apis/apps/v1/namespaces/default/deployments", deployment(name, node))
    await until(lambda: all(lab.targets.pick(app) for app in apps))


async def items(lab: Lab, path: str) -> list[dict[str, Any]]:
    return list((await lab.api.get(path))["items"])


def failed_liveness(kubelet: LabKubelet) -> int:
    counts = kubelet.probe_counts()
    return sum(found.count for found in counts if found.kind is ProbeKind.LIVENESS and not found.successful)


async def test_the_overrun_node_fails_its_probes_and_the_other_does_not(lab: Lab, until: Any) -> None:
    await deploy(lab, until, slow="weak", fast="strong")
    log = LoadLog(CLOCK)
    plan = LoadPlan(tuple(AppLoad(app, (RateStep(0, 30),)) for app in ("slow", "fast")), seed=1, duration=20)
    loading = asyncio.create_task(LoadGenerator(plan, lab.targets, log, CLOCK).run())
    weak, strong = lab.kubelets
    await until(lambda: failed_liveness(weak) >= 2)
    loading.cancel()
    await asyncio.gather(loading, return_exceptions=True)
    by_app = summarise_by_app(log.samples)
    assert by_app["fast"].failures == 0
    assert (by_app["slow"].p95_ms or 0) > 1000 > (by_app["fast"].p50_ms or 0)
    assert failed_liveness(strong) == 0
    events = await items(lab, "/api/v1/namespaces/default/events")
    unhealthy = [event for event in events if event["reason"] == "Unhealthy" and "Liveness" in event["message"]]
    assert unhealthy
    assert all(event["involvedObject"]["name"].startswith("slow-") for event in unhealthy)
    assert all(event["source"] == {"component": "kubelet", "host": "weak"} for event in unhealthy)


async def test_metrics_of_pods_and_nodes_are_served(lab: Lab, until: Any) -> None:
    await deploy(lab, until, fast="strong")
    lab.sampler.sample()
    await asyncio.sleep(0.01)
    lab.sampler.sample()
    pods = await items(lab, "/apis/metrics.k8s.io/v1beta1/pods")
    nodes = await items(lab, "/apis/metrics.k8s.io/v1beta1/nodes")
    assert [pod["metadata"]["labels"]["app"] for pod in pods] == ["fast"]
    assert pods[0]["containers"][0]["usage"]["memory"] == f"{64 * 1024}Ki"
    assert {node["metadata"]["name"] for node in nodes} == {"weak", "strong"}


async def test_an_evicted_pod_ends_and_its_replacement_serves(lab: Lab, until: Any) -> None:
    await deploy(lab, until, fast="strong")
    before = lab.targets.pick("fast")
    (pod,) = await items(lab, "/api/v1/namespaces/default/pods")
    meta = pod["metadata"]
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": meta["name"], "namespace": "default"},
        "deleteOptions": {"preconditions": {"uid": meta["uid"]}},
    }
    await lab.api.create(f"/api/v1/namespaces/default/pods/{meta['name']}/eviction", eviction)
    await until(lambda: lab.targets.pick("fast") not in (None, before))
    for _ in range(100):
        left = await items(lab, "/api/v1/namespaces/default/pods")
        if meta["uid"] not in {other["metadata"]["uid"] for other in left}:
            break
        await asyncio.sleep(0.05)
    assert [other["metadata"]["uid"] != meta["uid"] for other in left] == [True]
