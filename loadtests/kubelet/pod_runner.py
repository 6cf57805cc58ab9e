"""The life of one pod on a lab node: start, probe, restart, end."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

from loadtests.kubelet.addresses import AddressPool
from loadtests.kubelet.container import Container, RestartBackoff
from loadtests.kubelet.events import EventRecorder, Happening, Subject
from loadtests.kubelet.pod_spec import LabPod
from loadtests.kubelet.pod_status import PodStatus, Running, StatusPublisher, Terminated, Waiting, render
from loadtests.kubelet.probes import ProbeListener, ProbeLoop
from loadtests.kubelet.usage import PodUsage, ProbeCount, ProbeCounter, ProbeKind
from loadtests.workloads.api import LabApi
from loadtests.workloads.live_cpu import LiveCpu
from reactor.clock import Clock
from reactor.errors import ClusterError

Work = Coroutine[Any, Any, object]


async def first_of(*work: Work) -> None:
    """Returns when one of them ends; the others are cancelled."""
    async with together(*work) as tasks:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)


@asynccontextmanager
async def together(*work: Work) -> AsyncIterator[list[asyncio.Task[object]]]:
    """Runs them while the block runs; a failure among them is raised at the end of it."""
    tasks = [asyncio.create_task(item) for item in work]
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        ends = await asyncio.gather(*tasks, return_exceptions=True)
    for end in ends:
        if isinstance(end, Exception):
            raise end


_KILLED = 137
_LEAST_GRACE = 2.0
"""Seconds that a container gets after its preStop hook, whatever is left of the grace."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the pods of one node share."""

    api: LabApi
    cpu: LiveCpu
    addresses: AddressPool
    events: EventRecorder
    clock: Clock
    random: random.Random
    backoff_scale: float
    sandbox_seconds: float


class PodRunner:
    """`run` is the pod; cancelling it is pulling the plug."""

    def __init__(self, pod: LabPod, around: Surroundings) -> None:
        self._pod = pod
        self._around = around
        self._clock = around.clock
        self._status = PodStatus(since=self._clock.now())
        self._publisher = StatusPublisher(pod.identity, around.api, self._clock)
        self._probes = ProbeCounter(pod.identity, pod.container.name)
        self._backoff = RestartBackoff(around.backoff_scale)
        self._container: Container | None = None
        self._ending = asyncio.Event()
        self._unhealthy = asyncio.Event()
        self._grace = pod.grace
        self._placed = False

    def end(self, grace: float) -> None:
        """Somebody deleted the pod."""
        self._grace = grace
        self._ending.set()

    def usage(self) -> PodUsage | None:
        """None before the pod has a place on the node."""
        if not self._placed:
            return None
        cpu = self._around.cpu.usage(self._pod.identity.uid)
        memory = self._container.memory_bytes if self._container else 0
        return PodUsage(self._pod.identity, self._pod.container.name, cpu.seconds, cpu.throttled, memory)

    def probe_counts(self) -> Iterator[ProbeCount]:
        return self._probes.series()

    async def run(self) -> None:
        identity, container = self._pod.identity, self._pod.container
        self._around.cpu.add_pod(identity.uid, container.cpu_weight, container.cpu_limit)
        host = self._around.addresses.take(container.port)
        self._placed = True
        publishing = asyncio.create_task(self._publisher.run())
        try:
            await self._live(host)
            await self._leave()
        finally:
            publishing.cancel()
            self._placed = False
            self._around.cpu.remove_pod(identity.uid)
            self._around.addresses.give_back(host)
            self._around.events.forget(identity.uid)

    async def _live(self, host: str) -> None:
        self._show(self._status)
        if await self._ended_within(self._around.sandbox_seconds):
            return
        while True:
            await self._run_container(host)
            if self._ending.is_set() or await self._ended_within(self._pause()):
                return
            self._show(replace(self._status, restarts=self._status.restarts + 1))

    async def _run_container(self, host: str) -> None:
        container = Container(self._pod, host, self._around.cpu, self._clock, self._around.random.getrandbits(32))
        started = self._clock.now()
        self._container = container
        self._unhealthy.clear()
        image = f'Container image "{self._pod.container.image}"'
        self._say("Normal", "Pulled", f"{image} already present on machine and can be accessed by the pod")
        self._say("Normal", "Created", "Container created")
        self._say("Normal", "Started", "Container started")
        self._show(replace(self._status, host=host, state=Running(started)))
        try:
            await self._attend(container, host)
            clean = await container.stop(self._grace_left())
        finally:
            container.kill()
            self._container = None
        stopped = Terminated(started, self._clock.now(), 0 if clean else _KILLED)
        self._show(replace(self._status, state=stopped, last=self._status.last if self._ending.is_set() else stopped))

    async def _attend(self, container: Container, host: str) -> None:
        """Until the pod ends or its liveness verdict is failure."""
        async with together(container.serve(), *self._probe_loops(host)) as tasks:
            if self._pod.container.readiness is None:
                tasks[0].add_done_callback(lambda task: self._set_ready(not task.cancelled()))
            await first_of(self._held_end(), self._unhealthy.wait())
        self._set_ready(False)
        name = self._pod.container.name
        if self._ending.is_set():
            self._say("Normal", "Killing", f"Stopping container {name}")
            self._show(replace(self._status, ending=True))
        else:
            self._say("Normal", "Killing", f"Container {name} failed liveness probe, will be restarted")

    def _grace_left(self) -> float:
        """After the preStop hook, as the kubelet gives it."""
        hook = self._pod.container.pre_stop
        return max(self._grace - hook, _LEAST_GRACE) if hook else self._grace

    async def _held_end(self) -> None:
        """The preStop hook is part of the grace; while it runs the pod is probed and serves as before."""
        await self._ending.wait()
        await self._clock.sleep(min(self._pod.container.pre_stop, self._grace))

    def _probe_loops(self, host: str) -> Iterator[Coroutine[Any, Any, None]]:
        """Readiness is asked as soon as the container runs, liveness somewhere in its first period."""
        listener = ProbeListener(self._on_result, self._on_verdict)
        if (readiness := self._pod.container.readiness) is not None:
            yield ProbeLoop(ProbeKind.READINESS, readiness, host, listener, self._clock).run(0.0)
        if (liveness := self._pod.container.liveness) is not None:
            jitter = self._around.random.random()
            yield ProbeLoop(ProbeKind.LIVENESS, liveness, host, listener, self._clock).run(jitter)

    def _on_result(self, kind: ProbeKind, ok: bool, message: str) -> None:
        self._probes.add(kind, ok)
        if not ok:
            self._say("Warning", "Unhealthy", message)

    def _on_verdict(self, kind: ProbeKind, ok: bool) -> None:
        if kind is ProbeKind.READINESS:
            self._set_ready(ok)
        elif not ok:
            self._unhealthy.set()

    def _pause(self) -> float:
        delay = self._backoff.next_delay(self._clock.monotonic())
        if delay > 0:
            identity, name = self._pod.identity, self._pod.container.name
            message = f"restarting failed container {name} in pod {identity.name}_{identity.namespace}({identity.uid})"
            self._say("Warning", "BackOff", f"Back-off {message}")
            waiting = Waiting("CrashLoopBackOff", f"back-off {delay:g}s {message}")
            self._show(replace(self._status, state=waiting))
        return delay

    async def _ended_within(self, seconds: float) -> bool:
        if seconds > 0:
            await first_of(self._ending.wait(), self._clock.sleep(seconds))
        return self._ending.is_set()

    async def _leave(self) -> None:
        with suppress(ClusterError):
            await self._publisher.flush()
        await self._publisher.delete()

    def _set_ready(self, ready: bool) -> None:
        if ready != self._status.ready:
            self._show(replace(self._status, ready=ready, ready_changed=self._clock.now()))

    def _show(self, status: PodStatus) -> None:
        self._status = status
        self._publisher.publish(render(self._pod, status))

    def _say(self, kind: str, reason: str, message: str) -> None:
        identity = self._pod.identity
        subject = Subject(
            "Pod",
            identity.name,
            identity.namespace,
            identity.uid,
            identity.resource_version,
            f"spec.containers{{{self._pod.container.name}}}",
        )
        self._around.events.record(Happening(subject, kind, reason, message))
