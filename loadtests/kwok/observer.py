"""Watches the pods for the benchmarks, independently of the controller under test."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from reactor.clock import SystemClock
from reactor.cluster.connection import open_connection
from reactor.cluster.decoding.decoder import MalformedObject
from reactor.cluster.kinds import Kind
from reactor.cluster.mirror import ClusterMirror
from reactor.cluster.reads import ClusterReader
from reactor.cluster.records import Pod, Record
from reactor.cluster.watch import Pace, Watcher
from reactor.errors import ClusterError

_SYNC_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class PodChange:
    """`at` is of the monotonic clock."""

    at: float
    old: Pod | None
    new: Pod | None

    @property
    def evicted(self) -> Pod | None:
        """Asked to go with this change."""
        if self.new is None:
            return self.old if self.old is not None and self.old.deleting is None else None
        return self.new if self.new.deleting is not None and (self.old is None or self.old.deleting is None) else None

    @property
    def bound(self) -> Pod | None:
        """Got its node with this change."""
        before = self.old.node if self.old is not None else None
        return self.new if self.new is not None and self.new.node is not None and before is None else None


Listener = Callable[[PodChange], None]


class PodObserver:
    def __init__(self) -> None:
        self.mirror = ClusterMirror([Kind.PODS], self._changed)
        self.on_node: Counter[str] = Counter()
        """Pods that hold a node and were not asked to go."""
        self.running = 0
        self._listeners: list[Listener] = []
        self._news = asyncio.Event()

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Called with every change; what is returned ends that."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    async def until(self, holds: Callable[[], bool], deadline: float) -> None:
        async with asyncio.timeout(deadline):
            while not holds():
                self._news.clear()
                await self._news.wait()

    def pods(self) -> list[Pod]:
        return [cast(Pod, record) for record in self.mirror.records(Kind.PODS).values()]

    def malformed(self, malformed: MalformedObject) -> None:
        """Ends the watcher: counts that miss a pod would be wrong."""
        raise AssertionError(str(malformed))

    def trouble(self, kind: Kind, error: ClusterError, delay: float) -> None:
        """A broken watch resumes by itself; nothing is lost by it but time."""

    def _changed(self, _kind: Kind, old: Record | None, new: Record | None) -> None:
        change = PodChange(time.monotonic(), cast("Pod | None", old), cast("Pod | None", new))
        for pod, sign in ((change.old, -1), (change.new, 1)):
            if pod is not None and pod.node is not None and pod.deleting is None:
                self.on_node[pod.node] += sign
                self.running += sign * pod.ready
        for listener in tuple(self._listeners):
            listener(change)
        self._news.set()


@asynccontextmanager
async def observed_pods(kubeconfig: Path) -> AsyncIterator[PodObserver]:
    """Within the block; if watching fails the block is cancelled, and the failure raised at its end."""
    observer = PodObserver()
    connection = await open_connection(str(kubeconfig))
    try:
        watcher = Watcher(Kind.PODS, ClusterReader(connection), observer.mirror, observer, Pace(SystemClock()))
        async with asyncio.TaskGroup() as tasks:
            watching = tasks.create_task(watcher.run())
            async with asyncio.timeout(_SYNC_SECONDS):
                await observer.mirror.until_synced()
            yield observer
            watching.cancel()
    finally:
        await connection.close()
