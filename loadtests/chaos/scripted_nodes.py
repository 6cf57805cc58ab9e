"""Nodes without kubelets: pods bound to them become Ready and go as asked, a moment later. They can be down.

Cheaper than lab kubelets: no container is played, so hundreds of moves per minute leave the machine to the controllers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from loadtests.chaos.observer import PodObserver
from loadtests.chaos.patience import insist
from loadtests.workloads.api import LabApi, has_condition
from reactor.clock import Clock, rfc3339
from reactor.errors import ClusterError, Conflict, NotFound

Json = dict[str, Any]
_TICK = 0.1
_START_SECONDS, _STOP_SECONDS = 0.3, 0.2
_NODES = "/api/v1/nodes"
_MEMORY, _PODS = "32Gi", "110"


class ScriptedNodes:
    def __init__(self, api: LabApi, observer: PodObserver, clock: Clock, cores: Mapping[str, float]) -> None:
        self.cores = cores
        self._api, self._observer, self._clock = api, observer, clock
        self._down: set[str] = set()
        self._since: dict[tuple[str, str], float] = {}
        self._busy: set[str] = set()
        self._number = 0
        self._tasks: set[asyncio.Task[None]] = set()

    async def register(self) -> None:
        for name in self.cores:
            await self.create(name)

    async def create(self, name: str) -> None:
        amounts = {"cpu": str(self.cores[name]), "memory": _MEMORY, "pods": _PODS}
        status = {"capacity": amounts, "allocatable": amounts, "conditions": [self._ready("True")]}
        labels = {"kubernetes.io/hostname": name}
        with suppress(Conflict):
            await insist(lambda: self._api.create(_NODES, {"metadata": {"name": name, "labels": labels}}))
        await insist(lambda: self._api.patch(f"{_NODES}/{name}/status", {"status": status}))
        self._down.discard(name)

    async def take_down(self, name: str) -> None:
        """As a killed machine looks once the node controller has noticed."""
        self._down.add(name)
        await self._condition(name, "Unknown")

    async def bring_up(self, name: str) -> None:
        await self._condition(name, "True")
        self._down.discard(name)

    async def delete(self, name: str) -> None:
        self._down.add(name)
        await insist(lambda: self._api.delete(f"{_NODES}/{name}", {}))

    async def run(self) -> None:
        """Until cancelled. Looks at every pod again and again, so nothing has to be remembered across errors."""
        while True:
            await self._clock.sleep(_TICK)
            for uid, pod in list(self._observer.pods.items()):
                node = pod["spec"].get("nodeName")
                if node in self.cores and node not in self._down and uid not in self._busy:
                    self._look_at(uid, pod)
            self._since = {key: at for key, at in self._since.items() if key[0] in self._observer.pods}

    def _look_at(self, uid: str, pod: Json) -> None:
        if "deletionTimestamp" in pod["metadata"]:
            wanted, pause = "gone", _STOP_SECONDS
        elif not has_condition(pod, "Ready"):
            wanted, pause = "ready", _START_SECONDS
        else:
            return
        now = self._clock.monotonic()
        if now - self._since.setdefault((uid, wanted), now) < pause:
            return
        self._busy.add(uid)
        task = asyncio.create_task(self._act(uid, pod, wanted))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _act(self, uid: str, pod: Json, wanted: str) -> None:
        meta = pod["metadata"]
        path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"
        try:
            if wanted == "gone":
                await self._api.delete(path, {"gracePeriodSeconds": 0, "preconditions": {"uid": uid}})
            else:
                await self._api.patch(f"{path}/status", {"metadata": {"uid": uid}, "status": self._running(pod)})
        except (NotFound, Conflict):
            pass
        except ClusterError:
            await self._clock.sleep(_TICK)
        finally:
            self._since.pop((uid, wanted), None)
            self._busy.discard(uid)

    def _running(self, pod: Json) -> Json:
        now = rfc3339(self._clock.now())
        address = pod["status"].get("podIP") or self._address()
        types = ("PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready")
        containers = [
            {
                "name": each["name"],
                "image": each["image"],
                "imageID": "lab.local/none",
                "ready": True,
                "started": True,
                "restartCount": 0,
                "state": {"running": {"startedAt": now}},
            }
            for each in pod["spec"]["containers"]
        ]
        return {
            "phase": "Running",
            "startTime": now,
            "podIP": address,
            "podIPs": [{"ip": address}],
            "conditions": [{"type": each, "status": "True", "lastTransitionTime": now} for each in types],
            "containerStatuses": containers,
        }

    def _address(self) -> str:
        self._number += 1
        return f"10.77.{self._number // 250 % 250}.{self._number % 250 + 1}"

    async def _condition(self, name: str, status: str) -> None:
        body = {"status": {"conditions": [self._ready(status)]}}
        with suppress(NotFound):
            await insist(lambda: self._api.patch(f"{_NODES}/{name}/status", body))

    def _ready(self, status: str) -> Json:
        now = rfc3339(self._clock.now())
        return {"type": "Ready", "status": status, "lastHeartbeatTime": now, "lastTransitionTime": now}
