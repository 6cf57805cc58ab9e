"""A ViewSource with a sample cluster that the tests can change while the page is open."""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from reactor.record.history_reader import HistoryEntry
from reactor.web.query import FindQuery
from reactor.web.view import FoundPods, Health, Overview, PodView, Series
from tests.browser.sample_cluster import overview, series
from tests.browser.sample_decisions import decision, pod_view


class FakeSource:
    """`revise` shows another overview; `decide` adds a decision; open streams get both."""

    def __init__(self, decisions: int = 90) -> None:
        self.view = overview(0)
        self.columns = series(0)
        self.log = [decision(identity) for identity in range(1, decisions + 1)]
        self._version = 0
        self._changed = asyncio.Condition()

    async def revise(self, view: Overview) -> None:
        self.view = view
        await self._notify()

    async def decide(self, made: HistoryEntry) -> None:
        self.log.append(made)
        await self._notify()

    async def step(self, count: int) -> None:
        self.columns = series(count)
        await self.revise(replace(overview(count), mode=self.view.mode, halted=self.view.halted))

    async def overview(self) -> Overview:
        return self.view

    async def series(self) -> Series:
        return self.columns

    async def decisions(self, limit: int, before: int | None, waits: bool) -> tuple[HistoryEntry, ...]:
        shown = (
            made
            for made in reversed(self.log)
            if (before is None or made.id < before) and (waits or made.kind != "wait")
        )
        return tuple(made for made, _ in zip(shown, range(limit), strict=False))

    async def pod(self, namespace: str, name: str) -> PodView | None:
        key = f"{namespace}/{name}"
        placed = [(pod, node.name) for node in self.view.nodes for pod in node.pods]
        for pod, node in [*placed, *((pod, None) for pod in self.view.pending)]:
            if pod.key == key:
                return pod_view(pod, node, tuple(made for made in reversed(self.log) if made.pod == key)[:20])
        return None

    async def find_pods(self, wanted: FindQuery) -> FoundPods:
        raise NotImplementedError(f"the page does not search for {wanted.name}")

    async def wait_for_change(self, after: int) -> int:
        async with self._changed:
            await self._changed.wait_for(lambda: self._version > after)
            return self._version

    async def _notify(self) -> None:
        async with self._changed:
            self._version += 1
            self._changed.notify_all()


class AlwaysHealthy:
    def live(self) -> Health:
        return Health(ok=True)

    def ready(self) -> Health:
        return Health(ok=True)
