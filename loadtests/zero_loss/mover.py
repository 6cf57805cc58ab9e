"""Moves every pod of the apps once per round: by requests to the controller, or by plain evictions."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from loadtests.workloads.api import LabApi, has_condition
from loadtests.zero_loss.design import MovedApp, Way
from loadtests.zero_loss.results import Landed
from reactor.clock import Clock
from reactor.cluster.connection import DEFAULT_NAMESPACE
from reactor.cluster.requests import Action, Request, RequestedMove, RequestSpec
from reactor.decision.wait_reasons import Reason
from reactor.errors import ClusterError

Json = dict[str, Any]
_REQUESTS = f"/apis/rematch.io/v1alpha1/namespaces/{DEFAULT_NAMESPACE}/requests"
_MOVES = f"/apis/rematch.io/v1alpha1/namespaces/{DEFAULT_NAMESPACE}/moves"
_POLL = 0.2
_DEADLINE = 180.0
_UNMEASURED = Reason.NO_FRESH_METRICS.value
"""New pods wait until they are measured."""


@dataclass(slots=True)
class Mover:
    api: LabApi
    namespace: str
    nodes: Sequence[str]
    apps: Sequence[MovedApp]
    way: Way
    clock: Clock
    landed: list[Landed] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    """Moves that were refused or failed, in words."""

    async def round(self) -> bool:
        """Every pod once; whether any was moved. Ends when the old pods are gone and all others Ready."""
        known = len(self.landed)
        before = {moved.app.name: await self.pods(moved.app.name) for moved in self.apps}
        if self.way is Way.PLAIN:
            async with asyncio.TaskGroup() as tasks:
                for moved in self.apps:
                    tasks.create_task(self._evict_all(moved.app.name, before[moved.app.name]))
        else:
            await self._request(before)
        await self.until_complete()
        return len(self.landed) > known

    async def until_complete(self) -> None:
        """As many pods as wanted, all Ready, none on its way out."""
        async with asyncio.timeout(_DEADLINE):
            while not all([await self._complete(moved) for moved in self.apps]):
                await asyncio.sleep(_POLL)

    async def pods(self, app: str) -> list[Json]:
        """Also one that a release surge has taken the labels off, by its name."""
        found = (await self.api.get(f"/api/v1/namespaces/{self.namespace}/pods"))["items"]
        mine = [pod for pod in found if pod["metadata"]["name"].startswith(f"{app}-")]
        return sorted(mine, key=lambda pod: str(pod["metadata"]["name"]))

    async def _complete(self, moved: MovedApp) -> bool:
        pods = await self.pods(moved.app.name)
        staying = [pod for pod in pods if not _ending(pod) and has_condition(pod, "Ready")]
        return len(pods) == len(staying) == moved.app.replicas

    def _target(self, node: str) -> str:
        """The next one in turn."""
        return self.nodes[(self.nodes.index(node) + 1) % len(self.nodes)]

    async def _request(self, before: dict[str, list[Json]]) -> None:
        moves = tuple(
            RequestedMove(f"{self.namespace}/{_name(pod)}", self._target(_node(pod)), pod["metadata"]["uid"])
            for pods in before.values()
            for pod in pods
        )
        body = {
            "apiVersion": "rematch.io/v1alpha1",
            "kind": "Request",
            "metadata": {"generateName": "zero-loss-"},
            "spec": msgspec.to_builtins(RequestSpec(Action.APPLY, "zero loss", moves=moves)),
        }
        name = (await self.api.create(_REQUESTS, body))["metadata"]["name"]
        spans: dict[str, tuple[float, float]] = {}
        seen: dict[str, str] = {}
        async with asyncio.timeout(_DEADLINE):
            while True:
                for move in (await self.api.get(_MOVES))["items"]:
                    pod = move["spec"]["pod"]
                    now = self.clock.now()
                    spans[pod] = (spans.get(pod, (now, now))[0], now)
                    seen[pod] = move["spec"]["strategy"]
                request = msgspec.convert(await self.api.get(f"{_REQUESTS}/{name}"), Request)
                if request.ended:
                    break
                await asyncio.sleep(_POLL)
        after = {app: await self.pods(app) for app in before}
        new = {app: _new(before[app], pods) for app, pods in after.items()}
        for result in request.status.moves:
            app, pod = self._find(result.pod, before)
            if result.state != "done" or not new[app]:
                if _UNMEASURED not in result.message:
                    self.problems.append(f"{result.pod}: {result.state} {result.message}")
                continue
            node = _taken(new[app], result.to)
            first, last = spans.get(result.pod, (0.0, 0.0))
            self.landed.append(Landed(app, _node(pod), result.to, node, last - first, seen.get(result.pod, "?")))
        if not request.status.moves:
            self.problems.append(request.status.message)

    def _find(self, key: str, before: dict[str, list[Json]]) -> tuple[str, Json]:
        name = key.rpartition("/")[2]
        return next((app, pod) for app, pods in before.items() for pod in pods if _name(pod) == name)

    async def _evict_all(self, app: str, pods: list[Json]) -> None:
        """One after the other: the next when the replacement is Ready."""
        wanted = len(pods)
        for pod in pods:
            began = self.clock.now()
            known = await self.pods(app)
            body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": _name(pod)}}
            try:
                await self.api.create(f"/api/v1/namespaces/{self.namespace}/pods/{_name(pod)}/eviction", body)
            except ClusterError as error:
                self.problems.append(f"{_name(pod)}: {error}")
                continue
            async with asyncio.timeout(_DEADLINE):
                while True:
                    now = [each for each in await self.pods(app) if not _ending(each)]
                    if len(now) == wanted and all(has_condition(each, "Ready") for each in now):
                        break
                    await asyncio.sleep(_POLL)
            node = _node(_new(known, now)[0])
            self.landed.append(Landed(app, _node(pod), "", node, self.clock.now() - began, "evict"))


def _name(pod: Json) -> str:
    return str(pod["metadata"]["name"])


def _node(pod: Json) -> str:
    return str(pod["spec"].get("nodeName", ""))


def _ending(pod: Json) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def _new(before: list[Json], after: list[Json]) -> list[Json]:
    known = {pod["metadata"]["uid"] for pod in before}
    return [pod for pod in after if pod["metadata"]["uid"] not in known]


def _taken(new: list[Json], target: str) -> str:
    """The node of the replacement that is on the target, else of any other; each counts once."""
    found = next((pod for pod in new if _node(pod) == target), new[0])
    new.remove(found)
    return _node(found)
