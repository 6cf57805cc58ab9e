"""All watchers of one cluster, run together."""

from __future__ import annotations

import asyncio

from reactor.cluster.reads import ClusterReader
from reactor.cluster.watcher import Pace, Reporter, Sink, Watcher, WatchState


class ClusterWatch:
    """Keeps the mirror like the cluster for as long as `run` runs."""

    def __init__(self, reader: ClusterReader, sink: Sink, reporter: Reporter, pace: Pace) -> None:
        self._watchers = [Watcher(kind, reader, sink, reporter, pace) for kind in reader.kinds]

    @property
    def states(self) -> tuple[WatchState, ...]:
        return tuple(watcher.state for watcher in self._watchers)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            for watcher in self._watchers:
                tasks.create_task(watcher.run())
