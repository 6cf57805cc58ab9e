"""The lab kubelet: runs every pod bound to its node as a real HTTP endpoint with real probes.

What a pod runs is said by its annotations (`loadtests.workloads.app_spec`); everything else is read from the pod's
spec and written to its status and Events in the shape a real kubelet writes.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass
from typing import Any

from loadtests.kubelet.addresses import AddressPool
from loadtests.kubelet.events import EventRecorder, Happening, Subject
from loadtests.kubelet.node_status import NodeStatus
from loadtests.kubelet.pod_runner import PodRunner, Surroundings
from loadtests.kubelet.pod_spec import PodIdentity, deletion_grace, identify, parse_pod
from loadtests.kubelet.pod_status import delete_pod
from loadtests.kubelet.usage import NodeUsage, ProbeCount
from loadtests.workloads.api import Changed, LabApi, Listed
from loadtests.workloads.live_cpu import LiveCpu
from loadtests.workloads.placement import NodeSpec
from reactor.clock import Clock
from reactor.errors import InputError

_log = logging.getLogger(__name__)
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class KubeletOptions:
    register: bool = True
    """Create the Node; otherwise it must exist."""
    heartbeat: float = 10.0
    backoff_scale: float = 1.0
    """Factor on the pauses before restarts; a two-minute demo wants them shorter."""
    sandbox_seconds: float = 0.3
    """From the binding to the start of the container."""
    seed: int = 0
    """Of the variation of work and of the probes' first moment."""


@dataclass(frozen=True, slots=True)
class _Running:
    runner: PodRunner
    task: asyncio.Task[None]


class LabKubelet:
    def __init__(
        self, node: NodeSpec, api: LabApi, addresses: AddressPool, clock: Clock, options: KubeletOptions | None = None
    ) -> None:
        self._options = options or KubeletOptions()
        self._node = node
        self._api = api
        self._clock = clock
        self._addresses = addresses
        self._events = EventRecorder(node.name, api, clock)
        self._status = NodeStatus(node, api, clock)
        self._pods: dict[str, _Running] = {}
        self._refused: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._around: Surroundings | None = None

    async def start(self) -> None:
        """Registers the node; from then on pods bound to it are run."""
        if self._options.register:
            await self._status.register()
        self._around = Surroundings(
            api=self._api,
            cpu=LiveCpu(self._node.cores),
            addresses=self._addresses,
            events=self._events,
            clock=self._clock,
            random=random.Random(f"{self._options.seed}/{self._node.name}"),
            backoff_scale=self._options.backoff_scale,
            sandbox_seconds=self._options.sandbox_seconds,
        )
        ready = f"Node {self._node.name} status is now: NodeReady"
        self._events.record(Happening(Subject("Node", self._node.name), "Normal", "NodeReady", ready))
        self._spawn(self._follow(self._around))
        self._spawn(self._events.run())
        self._spawn(self._status.keep_fresh(self._options.heartbeat))

    async def stop(self) -> None:
        """As if the machine were switched off: pods stop at once, the API server hears nothing."""
        tasks = [*self._tasks, *(pod.task for pod in self._pods.values())]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._around is not None:
            self._around.cpu.close()

    def usage(self) -> NodeUsage:
        pods = (pod.runner.usage() for pod in self._pods.values())
        used = self._around.cpu.used() if self._around is not None else 0.0
        return NodeUsage(self._node.name, self._node.all_labels(), tuple(pod for pod in pods if pod is not None), used)

    def probe_counts(self) -> Iterator[ProbeCount]:
        for pod in self._pods.values():
            yield from pod.runner.probe_counts()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("kubelet %s: a task ended by a bug of the lab", self._node.name, exc_info=error)

    async def _follow(self, around: Surroundings) -> None:
        selector = {"fieldSelector": f"spec.nodeName={self._node.name}"}
        await self._api.follow("/api/v1/pods", selector, lambda change: self._heard(change, around))

    def _heard(self, change: Listed | Changed, around: Surroundings) -> None:
        match change:
            case Listed(items):
                present = {item["metadata"]["uid"] for item in items}
                for uid in self._pods.keys() - present:
                    self._pods[uid].task.cancel()
                for item in items:
                    self._see(item, around)
            case Changed("DELETED", item):
                self._gone(identify(item))
            case Changed(_, item):
                self._see(item, around)

    def _see(self, item: Json, around: Surroundings) -> None:
        identity, grace = identify(item), deletion_grace(item)
        running = self._pods.get(identity.uid)
        if running is not None:
            if grace is not None:
                running.runner.end(grace)
        elif grace is not None:
            self._spawn(delete_pod(identity, self._api, self._clock))
        elif identity.uid not in self._refused and item.get("status", {}).get("phase") not in ("Succeeded", "Failed"):
            self._begin(item, identity, around)

    def _begin(self, item: Json, identity: PodIdentity, around: Surroundings) -> None:
        try:
            runner = PodRunner(parse_pod(item), around)
        except InputError as error:
            self._refused.add(identity.uid)
            subject = Subject("Pod", identity.name, identity.namespace, identity.uid, identity.resource_version)
            self._events.record(Happening(subject, "Warning", "Failed", f"Error: {error}"))
            return
        task = asyncio.create_task(runner.run(), name=f"pod {identity.name}")
        self._pods[identity.uid] = _Running(runner, task)
        task.add_done_callback(lambda done: self._ended(identity, done))

    def _gone(self, identity: PodIdentity) -> None:
        self._refused.discard(identity.uid)
        if (running := self._pods.get(identity.uid)) is not None:
            running.task.cancel()

    def _ended(self, identity: PodIdentity, task: asyncio.Task[None]) -> None:
        del self._pods[identity.uid]
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("pod %s ended by a bug of the lab", identity.name, exc_info=error)
