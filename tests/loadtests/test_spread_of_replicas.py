"""The binder on the embedded cluster: replicas end on different nodes and zones, however well one node fits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from loadtests.embedded import ClusterOptions, EmbeddedCluster
from loadtests.embedded.objects import timestamp, uid_of
from loadtests.embedded.resources import DEPLOYMENTS, NODES, PODS, STATEFULSETS, Json
from reactor.app import Options, open_controller
from reactor.clock import SystemClock

CLOCK = SystemClock()
SIZES = {"small": 2, "medium": 4, "large": 8}


def _node(name: str, cores: int, zone: str) -> Json:
    resources = {"cpu": str(cores), "memory": f"{2 * cores}Gi", "pods": "110"}
    now = timestamp(CLOCK.now())
    ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": now, "lastTransitionTime": now}
    labels = {"kubernetes.io/hostname": name} | ({"topology.kubernetes.io/zone": zone} if zone else {})
    return {
        "metadata": {"name": name, "labels": labels},
        "status": {"capacity": resources, "allocatable": resources, "conditions": [ready]},
    }


def _spec() -> Json:
    container = {"name": "web", "image": "web", "resources": {"requests": {"cpu": "200m", "memory": "256Mi"}}}
    return {"schedulerName": "rematch", "containers": [container]}


def _deploy(cluster: EmbeddedCluster, app: str, replicas: int) -> None:
    template = {"metadata": {"labels": {"app": app}}, "spec": _spec()}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": app}}, "template": template}
    cluster.api.create(DEPLOYMENTS, {"metadata": {"name": app}, "spec": spec}, namespace="default")


def _stateful(cluster: EmbeddedCluster, app: str, replicas: int) -> None:
    """With its pods: the embedded cluster has no controller for StatefulSets."""
    template = {"metadata": {"labels": {"app": app}}, "spec": _spec()}
    spec = {"serviceName": app, "replicas": replicas, "selector": {"matchLabels": {"app": app}}, "template": template}
    owner = cluster.api.create(STATEFULSETS, {"metadata": {"name": app}, "spec": spec}, namespace="default")
    reference = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": app, "uid": uid_of(owner), "controller": True}
    for number in range(replicas):
        meta = {"name": f"{app}-{number}", "labels": {"app": app}, "ownerReferences": [reference]}
        cluster.api.create(PODS, {"metadata": meta, "spec": _spec()}, namespace="default")


@asynccontextmanager
async def _cluster(zones: dict[str, str]) -> AsyncIterator[EmbeddedCluster]:
    cluster = EmbeddedCluster(ClusterOptions(schedule=frozenset()), clock=CLOCK)
    for name, cores in SIZES.items():
        cluster.api.create(NODES, _node(name, cores, zones.get(name, "")))
    async with cluster:
        yield cluster


async def _bound(cluster: EmbeddedCluster, pods: int, folder: Path) -> dict[str, list[str]]:
    """The nodes of each app once the controller has bound all pods."""
    (folder / "settings.yaml").write_text("mode: act\n")
    kubeconfig = cluster.kubeconfig(folder / "kubeconfig")
    options = Options(store=folder / "rematch.db", kubeconfig=str(kubeconfig), settings_file=folder / "settings.yaml")
    async with open_controller(options) as live:
        job = asyncio.create_task(live.run())
        try:
            async with asyncio.timeout(20.0):
                while sum(map(len, _where(cluster).values())) < pods:
                    await asyncio.sleep(0.02)
        finally:
            job.cancel()
            await asyncio.gather(job, return_exceptions=True)
    return _where(cluster)


def _where(cluster: EmbeddedCluster) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for stored in cluster.store.all(PODS):
        if node := stored.obj["spec"].get("nodeName"):
            found.setdefault(stored.obj["metadata"]["labels"]["app"], []).append(node)
    return {app: sorted(nodes) for app, nodes in found.items()}


async def test_replicas_do_not_share_the_node_that_fits_best(tmp_path: Path) -> None:
    async with _cluster({}) as cluster:
        _deploy(cluster, "web", 2)
        _stateful(cluster, "db", 3)
        where = await _bound(cluster, 5, tmp_path)
    assert where == {"web": ["medium", "small"], "db": ["large", "medium", "small"]}


async def test_replicas_do_not_share_a_zone_either(tmp_path: Path) -> None:
    async with _cluster({"small": "a", "medium": "a", "large": "b"}) as cluster:
        _deploy(cluster, "web", 2)
        _stateful(cluster, "db", 2)
        where = await _bound(cluster, 4, tmp_path)
    assert where == {"web": ["large", "small"], "db": ["large", "small"]}
