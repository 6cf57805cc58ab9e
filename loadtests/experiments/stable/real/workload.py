"""The experiment's apps on the real nodes: Deployments, Services, bindings."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

from loadtests.experiments.stable.apps import NAMESPACE
from loadtests.nodes.apps import PORT, LabApp, deployment
from loadtests.workloads.api import LabApi, has_condition
from loadtests.workloads.placement import Placement
from reactor.errors import ClusterError

Json = dict[str, Any]
KUBE_SCHEDULER, REMATCH = "default-scheduler", "rematch"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
_DEPLOYMENTS = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"
_SERVICES = f"/api/v1/namespaces/{NAMESPACE}/services"
_DEADLINE = 120.0
_POLL = 0.1
_AT_ONCE = {"propagationPolicy": "Background", "gracePeriodSeconds": 0}


@dataclass(frozen=True, slots=True)
class ExperimentWorkload:
    api: LabApi

    async def make_services(self, names: Iterable[str]) -> dict[str, str]:
        """One for each app, for the whole experiment; the URL by app."""
        await self.api.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        urls = {}
        for name in names:
            made = await self.api.create(_SERVICES, _service(name))
            urls[name] = f"http://{made['spec']['clusterIP']}:{PORT}/"
        return urls

    async def deploy(self, apps: Iterable[LabApp], scheduler: str) -> None:
        """One after the other, so that a scheduler sees them in this order."""
        for app in apps:
            await self.api.create(_DEPLOYMENTS, deployment(app, NAMESPACE, scheduler))
            await self._until(partial(_has_pod, app.name), f"{app.name} has a pod")

    async def bind(self, placement: Placement) -> None:
        """In the scheduler's stead, where the experiment wants them."""
        for pod in await self.pods():
            if not pod["spec"].get("nodeName"):
                name = pod["metadata"]["name"]
                target = {"apiVersion": "v1", "kind": "Node", "name": placement[app_of(pod)]}
                body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
                await self.api.create(f"{PODS}/{name}/binding", body)

    async def until_bound(self, number: int) -> Placement:
        await self._until(lambda pods: sum(bool(pod["spec"].get("nodeName")) for pod in pods) == number, "all bound")
        return await self.placement()

    async def until_ready(self, number: int) -> None:
        await self._until(lambda pods: sum(has_condition(pod, "Ready") for pod in pods) == number, "all Ready")

    async def remove(self) -> None:
        for item in (await self.api.get(_DEPLOYMENTS))["items"]:
            await self.api.delete(f"{_DEPLOYMENTS}/{item['metadata']['name']}", _AT_ONCE)
        await self._until(lambda pods: not pods, "all pods are gone", self._hurry)

    async def pods(self) -> list[Json]:
        return list((await self.api.get(PODS)).get("items") or ())

    async def placement(self) -> Placement:
        pods = [pod for pod in await self.pods() if not pod["metadata"].get("deletionTimestamp")]
        return {app_of(pod): pod["spec"]["nodeName"] for pod in pods if pod["spec"].get("nodeName")}

    async def restarts(self) -> dict[str, int]:
        """By pod UID."""
        counts = {}
        for pod in await self.pods():
            statuses = pod["status"].get("containerStatuses") or ()
            counts[pod["metadata"]["uid"]] = sum(each["restartCount"] for each in statuses)
        return counts

    async def without_node(self) -> int:
        return sum(not pod["spec"].get("nodeName") for pod in await self.pods())

    async def _hurry(self, pods: list[Json]) -> None:
        """What still drains need not: the run is over."""
        for pod in pods:
            try:
                await self.api.delete(f"{PODS}/{pod['metadata']['name']}", {"gracePeriodSeconds": 0})
            except ClusterError:
                continue

    async def _until(
        self,
        holds: Callable[[list[Json]], bool],
        what: str,
        otherwise: Callable[[list[Json]], Any] | None = None,
    ) -> None:
        try:
            async with asyncio.timeout(_DEADLINE):
                while not holds(pods := await self.pods()):
                    if otherwise is not None:
                        await otherwise(pods)
                    await asyncio.sleep(_POLL)
        except TimeoutError as error:
            raise ClusterError(f"waited {_DEADLINE:g} s in vain until {what}") from error


def _service(app: str) -> Json:
    spec = {"selector": {"app": app}, "ports": [{"port": PORT, "targetPort": PORT}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": app}, "spec": spec}


def app_of(pod: Json) -> str:
    """By its name: a pod that is moved by release surge loses its labels."""
    return str(pod["metadata"]["name"]).rsplit("-", 2)[0]


def _has_pod(app: str, pods: list[Json]) -> bool:
    return any(app_of(pod) == app for pod in pods)
