"""A small live cluster: the embedded API server, two nodes, two Deployments, and kubelets that only report."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

from loadtests.embedded import Change, ClusterOptions, EmbeddedCluster, NodeMetrics, PodMetrics, changed
from loadtests.embedded.binding import bind
from loadtests.embedded.deletion import DeleteOptions, delete
from loadtests.embedded.resources import DEPLOYMENTS, EVENTS, NODES, PODS, Json
from reactor.clock import SystemClock
from tests.support.clock import eventually
from tests.support.dump import stamp

CORES = {"web": 0.9, "db": 2.9}
_GIB = 2.0**30


class Shop:
    """web and db crowd n1, n2 is idle."""

    def __init__(self) -> None:
        self.clock = SystemClock()
        self.cluster = EmbeddedCluster(ClusterOptions(seed=3), metrics=self)
        self.cluster.store.observe(self._report)

    def pods(self, app: str) -> list[Json]:
        found = [stored.obj for stored in self.cluster.store.all(PODS)]
        return [pod for pod in found if pod["metadata"]["labels"]["app"] == app]

    def where(self, app: str) -> list[str]:
        return [pod["spec"].get("nodeName", "") for pod in self.pods(app)]

    def said(self) -> list[str]:
        """Our own Events."""
        events = [stored.obj for stored in self.cluster.store.all(EVENTS)]
        return [event["reason"] for event in events if event["source"]["component"] == "rematch"]

    async def open(self, app: str, node: str) -> None:
        self.cluster.api.create(DEPLOYMENTS, _deployment(app))
        await eventually(lambda: self.pods(app))
        name = self.pods(app)[0]["metadata"]["name"]
        target = {"metadata": {"name": name}, "target": {"kind": "Node", "name": node}}
        bind(self.cluster.api, "default", name, target)
        await eventually(lambda: self.pods(app)[0]["status"].get("phase") == "Running")
        self._age(app)

    def _age(self, app: str) -> None:
        """As if the pod were ten minutes old: in less time its probe could not have failed so often."""
        pod = self.pods(app)[0]
        created = {"creationTimestamp": stamp(self.clock.now() - 600)}
        self.cluster.store.replace(PODS, changed(pod, metadata={**pod["metadata"], **created}))

    def cordon(self, node: str) -> None:
        found = self.cluster.store.get(NODES, "", node).obj
        self.cluster.store.replace(NODES, changed(found, spec={"unschedulable": True}))

    def fail(self, app: str, count: int = 20) -> None:
        """As the kubelet tells of failed liveness probes."""
        meta = self.pods(app)[0]["metadata"]
        now = stamp(self.clock.now())
        involved = {"kind": "Pod", "namespace": "default", "name": meta["name"], "uid": meta["uid"]}
        event = {
            "metadata": {"name": f"{meta['name']}.1", "namespace": "default"},
            "involvedObject": involved | {"fieldPath": "spec.containers{srv}"},
            "reason": "Unhealthy",
            "type": "Warning",
            "message": "Liveness probe failed: HTTP probe failed with statuscode: 500",
            "count": count,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "source": {"component": "kubelet"},
        }
        self.cluster.api.create(EVENTS, event)

    def node_usage(self) -> Iterable[NodeMetrics]:
        for node in ("n1", "n2"):
            cores = sum(CORES[app] for app in CORES for place in self.where(app) if place == node)
            yield NodeMetrics(node, cores + 0.1, _GIB, self.clock.now())

    def pod_usage(self) -> Iterable[PodMetrics]:
        for app, cores in CORES.items():
            for pod in self.pods(app):
                if pod["spec"].get("nodeName"):
                    name = pod["metadata"]["name"]
                    yield PodMetrics("default", name, (("srv", cores, 0.2 * _GIB),), self.clock.now())

    def _report(self, change: Change) -> None:
        if change.resource is PODS:
            asyncio.get_running_loop().call_soon(self._tend, change.new.key)

    def _tend(self, key: tuple[str, str]) -> None:
        """What the pod's kubelet does: run it when it is bound, remove it when it is deleted."""
        stored = self.cluster.store.find(PODS, *key)
        if stored is None or not stored.obj["spec"].get("nodeName"):
            return
        pod = stored.obj
        if pod["metadata"].get("deletionTimestamp"):
            delete(self.cluster.api, PODS, *key, DeleteOptions(grace_seconds=0))
        elif pod["status"].get("phase") != "Running":
            ready = {"type": "Ready", "status": "True", "lastTransitionTime": stamp(self.clock.now())}
            running = {"name": "srv", "state": {"running": {"startedAt": stamp(self.clock.now())}}, "restartCount": 0}
            status = {"phase": "Running", "conditions": [ready], "containerStatuses": [running]}
            self.cluster.api.update_status(PODS, changed(pod, status={**pod["status"], **status}))


@asynccontextmanager
async def open_shop() -> AsyncIterator[Shop]:
    shop = Shop()
    async with shop.cluster:
        for name in ("n1", "n2"):
            amounts = {"cpu": "4", "memory": "8Gi", "pods": "110"}
            status = {"allocatable": amounts, "capacity": amounts, "conditions": [{"type": "Ready", "status": "True"}]}
            shop.cluster.api.create(NODES, {"metadata": {"name": name}, "status": status})
        await shop.open("web", "n1")
        await shop.open("db", "n1")
        yield shop


def _deployment(app: str) -> Json:
    container = {
        "name": "srv",
        "image": "shop/srv",
        "resources": {"requests": {"cpu": "500m", "memory": "256Mi"}},
        "livenessProbe": {"httpGet": {"path": "/", "port": 80}},
    }
    template = {
        "metadata": {"labels": {"app": app}},
        "spec": {"schedulerName": "rematch", "containers": [container]},
    }
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": app}}, "template": template}
    return {"metadata": {"name": app, "namespace": "default"}, "spec": spec}
