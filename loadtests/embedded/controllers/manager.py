"""Starts the controllers and stops them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine

from loadtests.embedded.controllers.deployment import DeploymentController
from loadtests.embedded.controllers.disruption import DisruptionController
from loadtests.embedded.controllers.endpoint_slices import EndpointSliceController
from loadtests.embedded.controllers.garbage import GarbageCollector, NamespaceController, PodCollector
from loadtests.embedded.controllers.node_taints import NodeTaintController
from loadtests.embedded.controllers.replicaset import ReplicaSetController
from loadtests.embedded.controllers.shared import OwnerIndex
from loadtests.embedded.object_api import ObjectApi


class Controllers:
    def __init__(self, api: ObjectApi) -> None:
        owners = OwnerIndex(api.store)  # first: the others rely on it being up to date
        self._runs: list[Callable[[], Coroutine[None, None, None]]] = [
            DeploymentController(api, owners).queue.run,
            ReplicaSetController(api, owners).queue.run,
            DisruptionController(api).queue.run,
            EndpointSliceController(api).queue.run,
            GarbageCollector(api, owners).queue.run,
            NamespaceController(api).queue.run,
            PodCollector(api).queue.run,
            NodeTaintController(api).queue.run,
        ]

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            for run in self._runs:
                tasks.create_task(run())
