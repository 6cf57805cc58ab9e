"""Carries the faults of a round out, each at its time, and undoes what does not end by itself."""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from loadtests.chaos.controllers import ControllerProcess
from loadtests.chaos.faults import AT_REQUESTS, Fault, FaultKind
from loadtests.chaos.patience import insist
from loadtests.chaos.requests import HOME, Step
from loadtests.chaos.timing import LEASE_SECONDS
from loadtests.chaos.workloads import NAMESPACE, PDBS, WORKLOADS, Owner, Workload, pdb
from loadtests.chaos.world import World
from loadtests.chaos.write_kinds import WriteKind
from loadtests.controlplane import Component
from reactor.errors import Conflict, NotFound

Json = dict[str, Any]
Carrier = Callable[[random.Random], Awaitable[str]]
MOVES = f"/apis/rematch.io/v1alpha1/namespaces/{HOME}/moves"
_QUOTAS = f"/api/v1/namespaces/{NAMESPACE}/resourcequotas"
_PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
_LEADER_SHARE = 0.8
_OVERTIME = 15.0
"""For faults whose request did not come by: a controller that was killed writes nothing for a while."""
_GONE_SECONDS = 90.0
_BROKEN = ("mode: [act", "mode: everything\n", "execution: {maxMovesInFlight: -1}\n", "decision: {cooldown: never}\n")


@dataclass(frozen=True, slots=True)
class Injected:
    """A fault that happened, from when to when, and to what."""

    fault: Fault
    began: float
    ended: float
    target: str
    step: Step | None = None
    """Of a fault at a request."""
    write: WriteKind | None = None


class Injector:
    def __init__(self, world: World) -> None:
        self.injected: list[Injected] = []
        self._world = world
        self._rebuilding = asyncio.Lock()
        self._owners = defaultdict[str, asyncio.Lock](asyncio.Lock)
        """By workload: two users at once would not know what they asked for."""
        self._carriers: Mapping[FaultKind, Carrier] = {
            FaultKind.PAUSE: self._pause,
            FaultKind.PARTITION: self._partition,
            FaultKind.STORE_FULL: self._store_full,
            FaultKind.API_RESTART: self._api_restart,
            FaultKind.ETCD_RESTART: self._etcd_restart,
            FaultKind.NODE_DOWN: self._node_down,
            FaultKind.NODE_DELETED: self._node_deleted,
            FaultKind.POD_DELETED: self._pod_deleted,
            FaultKind.OWNER_SCALED: self._owner_scaled,
            FaultKind.OWNER_DELETED: self._owner_deleted,
            FaultKind.OWNER_ROLLED_OUT: self._owner_rolled_out,
            FaultKind.PDB_ADDED: self._pdb_added,
            FaultKind.QUOTA: self._quota,
            FaultKind.SETTINGS_BROKEN: self._settings_broken,
            FaultKind.JOURNAL_DELETED: self._journal_deleted,
        }

    async def carry_out(self, faults: tuple[Fault, ...], seconds: float) -> None:
        """All of them; returns when the last one is over and undone."""
        async with asyncio.TaskGroup() as group:
            for fault in faults:
                group.create_task(self._at_its_time(fault))
            await self._world.clock.sleep(seconds)
        with suppress(TimeoutError):
            async with asyncio.timeout(_OVERTIME):
                while self._world.armed.waiting:
                    await self._world.clock.sleep(0.1)
        self._world.armed.disarm()
        self.injected += [
            Injected(hit.fault, hit.at, hit.at, hit.request, hit.step, hit.write) for hit in self._world.armed.hits
        ]
        self._world.armed.hits.clear()

    async def _at_its_time(self, fault: Fault) -> None:
        clock = self._world.clock
        await clock.sleep(fault.at)
        if fault.kind in AT_REQUESTS:
            self._world.armed.arm(fault)
            return
        began = clock.now()
        target = await self._carriers[fault.kind](random.Random(fault.seed))
        if target:
            self.injected.append(Injected(fault, began, clock.now(), target))

    def _controller(self, choice: random.Random) -> ControllerProcess:
        """Mostly the leader: the one that wrote last."""
        by_write = sorted(self._world.controllers, key=lambda each: each.proxy.last_write, reverse=True)
        return by_write[0] if choice.random() < _LEADER_SHARE else by_write[-1]

    async def _pause(self, choice: random.Random) -> str:
        controller = self._controller(choice)
        controller.pause()
        await self._world.clock.sleep(LEASE_SECONDS + choice.uniform(1, 4))
        controller.resume()
        return controller.name

    async def _partition(self, choice: random.Random) -> str:
        controller = self._controller(choice)
        controller.proxy.cut_off()
        await self._world.clock.sleep(LEASE_SECONDS + choice.uniform(1, 5))
        controller.proxy.connect()
        return controller.name

    async def _store_full(self, choice: random.Random) -> str:
        controller = self._controller(choice)
        controller.fill_disk()
        await self._world.clock.sleep(choice.uniform(3, 7))
        controller.free_disk()
        return controller.name

    async def _api_restart(self, _choice: random.Random) -> str:
        return await self._restart(Component.API_SERVER)

    async def _etcd_restart(self, _choice: random.Random) -> str:
        return await self._restart(Component.ETCD)

    async def _restart(self, component: Component) -> str:
        """With its clients of the control plane: left alone they come back half a minute later."""
        async with self._rebuilding:
            for each in (component, Component.CONTROLLER_MANAGER, Component.SCHEDULER):
                await self._world.plane.restart(each)
        return component.value

    async def _node_down(self, choice: random.Random) -> str:
        name = choice.choice(list(self._world.nodes.cores))
        await self._world.nodes.take_down(name)
        await self._world.clock.sleep(choice.uniform(4, 8))
        await self._world.nodes.bring_up(name)
        return name

    async def _node_deleted(self, choice: random.Random) -> str:
        name = choice.choice(list(self._world.nodes.cores))
        with suppress(NotFound):
            await self._world.nodes.delete(name)
        await self._world.clock.sleep(choice.uniform(2, 5))
        await self._world.nodes.create(name)
        return name

    async def _pod_deleted(self, choice: random.Random) -> str:
        names = sorted(str(pod["metadata"]["name"]) for pod in self._world.observer.pods.values())
        if not names:
            return ""
        name = choice.choice(names)
        await self._remove(f"{_PODS}/{name}")
        return name

    async def _owner_scaled(self, choice: random.Random) -> str:
        """Never to the number that is there: nobody could tell the user's wish from a surge of ours."""
        workload = choice.choice([each for each in WORKLOADS if not each.hpa])
        async with self._owners[workload.name]:
            now = (await insist(lambda: self._world.api.get(workload.path)))["spec"]["replicas"]
            replicas = choice.choice([number for number in range(1, 6) if number != now])
            self._world.want(workload, replicas)
            await insist(lambda: self._world.api.patch(workload.path, {"spec": {"replicas": replicas}}))
        return f"{workload.name} to {replicas}"

    async def _owner_deleted(self, choice: random.Random) -> str:
        workload = choice.choice([each for each in WORKLOADS if not each.hpa])
        policy = choice.choice(["Foreground", "Background"])
        async with self._owners[workload.name]:
            await self._remove(workload.path, {"propagationPolicy": policy})
            await self._until_gone(workload)
            await self._world.deploy(workload)
        return f"{workload.name} ({policy})"

    async def _until_gone(self, workload: Workload) -> None:
        async with asyncio.timeout(_GONE_SECONDS):
            while True:
                try:
                    await insist(lambda: self._world.api.get(workload.path))
                except NotFound:
                    return
                await self._world.clock.sleep(0.2)

    async def _owner_rolled_out(self, choice: random.Random) -> str:
        workload = choice.choice([each for each in WORKLOADS if each.owner is not Owner.REPLICA_SET])
        version = {"metadata": {"annotations": {"lab.local/version": str(choice.getrandbits(32))}}}
        async with self._owners[workload.name]:
            await insist(lambda: self._world.api.patch(workload.path, {"spec": {"template": version}}))
        return workload.name

    async def _pdb_added(self, choice: random.Random) -> str:
        workload = choice.choice([each for each in WORKLOADS if each.min_available is None])
        rule = choice.choice([{"maxUnavailable": 0}, {"maxUnavailable": 1}, {"minAvailable": 1}])
        name = f"added-{choice.getrandbits(32):x}"
        with suppress(Conflict):
            await insist(lambda: self._world.api.create(PDBS, pdb(name, workload.name, rule)))
        await self._world.clock.sleep(choice.uniform(3, 8))
        await self._remove(f"{PDBS}/{name}")
        return f"{workload.name} {rule}"

    async def _quota(self, choice: random.Random) -> str:
        """As many pods as there are now: no surge fits, and what is deleted may be made again."""
        name = f"added-{choice.getrandbits(32):x}"
        hard = {"pods": str(len(self._world.observer.pods))}
        with suppress(Conflict):
            await insist(lambda: self._world.api.create(_QUOTAS, {"metadata": {"name": name}, "spec": {"hard": hard}}))
        await self._world.clock.sleep(choice.uniform(3, 7))
        await self._remove(f"{_QUOTAS}/{name}")
        return f"{hard['pods']} pods"

    async def _settings_broken(self, choice: random.Random) -> str:
        text = choice.choice(_BROKEN)
        await self._world.write_settings(text)
        await self._world.clock.sleep(choice.uniform(3, 7))
        await self._world.write_settings()
        return text.strip()

    async def _journal_deleted(self, choice: random.Random) -> str:
        """By somebody who may: an entry of a move in flight, if there is one within a few seconds."""
        for _ in range(50):
            try:
                items = (await insist(lambda: self._world.api.get(MOVES))).get("items") or ()
            except NotFound:
                return ""
            workloads = {str(item["metadata"]["name"]): _workload_of(item) for item in items}
            if workloads:
                name = choice.choice(sorted(workloads))
                await self._remove(f"{MOVES}/{name}")
                return f"{name} of {workloads[name]}"
            await self._world.clock.sleep(0.1)
        return ""

    async def _remove(self, path: str, options: Json | None = None) -> None:
        with suppress(NotFound):
            await insist(lambda: self._world.api.delete(path, options or {}))


def _workload_of(move: Json) -> str:
    """The name of the workload whose pod a Move object is about."""
    return str(((move.get("spec") or {}).get("move") or {}).get("workload", "")).rpartition("/")[2]
