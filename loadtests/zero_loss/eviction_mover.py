"""Moves by the eviction API and nothing else: what every tool does that only evicts."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from loadtests.nodes.spec import LabError
from loadtests.zero_loss.moving import Landed
from loadtests.zero_loss.pods import DEADLINE, POLL, AppPod, AppPods, new_pods
from reactor.clock import Clock
from reactor.errors import ClusterError

_ATTEMPTS = 25
"""A PodDisruptionBudget learns only after a moment that a replacement is Ready."""


@dataclass(slots=True)
class EvictionMover:
    pods: AppPods
    clock: Clock
    problems: list[str] = field(default_factory=list)

    async def round(self, wanted: Mapping[str, int]) -> list[Landed]:
        before = await self.pods.by_app()
        landed: list[Landed] = []
        async with asyncio.TaskGroup() as tasks:
            for app, most in wanted.items():
                tasks.create_task(self._evict_all(before[app][:most], len(before[app]), landed))
        await self.pods.until_complete()
        return landed

    async def _evict_all(self, pods: list[AppPod], replicas: int, landed: list[Landed]) -> None:
        """One after the other: the next when the replacement is Ready."""
        asked = self.clock.now()
        for pod in pods:
            known = (await self.pods.by_app())[pod.app]
            began = self.clock.now()
            if await self._evicted(pod):
                now = await self._until_ready(pod.app, replicas)
                node = new_pods(known, now)[0].node
                landed.append(Landed(pod.app, pod.node, "", node, "evict", asked, began, None, self.clock.now()))

    async def _evicted(self, pod: AppPod) -> bool:
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod.name}}
        refusal = ""
        for _ in range(_ATTEMPTS):
            try:
                await self.pods.api.create(f"/api/v1/namespaces/{self.pods.namespace}/pods/{pod.name}/eviction", body)
            except ClusterError as error:
                refusal = str(error)
                await asyncio.sleep(POLL)
            else:
                return True
        self.problems.append(f"{pod.name}: {refusal}")
        return False

    async def _until_ready(self, app: str, replicas: int) -> list[AppPod]:
        try:
            async with asyncio.timeout(DEADLINE):
                while True:
                    now = [pod for pod in (await self.pods.by_app())[app] if not pod.ending]
                    if len(now) == replicas and all(pod.ready for pod in now):
                        return now
                    await asyncio.sleep(POLL)
        except TimeoutError as error:
            raise LabError(f"{app} did not have {replicas} Ready pods within {DEADLINE:g} s") from error
