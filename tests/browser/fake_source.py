"""A ViewSource with a sample cluster that the tests can change while the page is open."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

from msgspec.structs import replace

from reactor.record.history_reader import HistoryEntry
from reactor.record.usage_reader import UsageAxis, UsageDocument, UsageForecast
from reactor.web.query import FindQuery, OverviewQuery, PodsQuery, TopQuery, UsageQuery
from reactor.web.view import (
    CalibrationView,
    FoundPods,
    Health,
    NodeView,
    Overview,
    PodChip,
    PodPage,
    PodResources,
    PodTotals,
    PodView,
    Series,
    TopPage,
    Totals,
)
from tests.browser.sample_cluster import calibration, overview, series
from tests.browser.sample_decisions import decision, pod_view


class SampleCluster:
    """Cuts a sample as the controller does, but for pages and the order of nodes."""

    def __init__(self, view: Overview) -> None:
        self._view = view

    def overview(self, query: OverviewQuery) -> Overview:
        view, matching = self._view, [node for node in map(partial(_found, query), self._view.nodes) if node.pods]
        chips = [*(pod for node in view.nodes for pod in node.pods), *view.pending]
        known = [pod.happiness for pod in chips if pod.managed and pod.happiness is not None]
        counts = _counted(chips)
        totals = Totals(
            nodes=len(view.nodes),
            matching_nodes=len(matching),
            pods=counts.pods,
            managed=counts.managed,
            unhappy=counts.unhappy,
            pending=len(view.pending),
            lowest_happiness=min(known, default=None),
        )
        shown = [
            node if node.name in query.expand else replace(node, pods=node.pods[: query.chips or 24])
            for node in matching[: query.nodes]
        ]
        return replace(view, nodes=tuple(shown), totals=totals)

    def pods(self, query: PodsQuery) -> PodPage:
        found = [pod for node in self._view.nodes for pod in node.pods if query.search in pod.key]
        return PodPage(self._view.at, tuple(found[: query.limit]), _counted(found))

    def top(self, query: TopQuery) -> TopPage:
        found = self.pods(query)
        return TopPage(found.at, tuple(PodResources(chip, ()) for chip in found.pods), found.totals)


def _found(query: OverviewQuery, node: NodeView) -> NodeView:
    pods = tuple(pod for pod in node.pods if query.search in node.name or query.search in pod.key)
    return replace(node, pods=pods, counts=_counted(pods))


def _counted(pods: Sequence[PodChip]) -> PodTotals:
    managed = [pod for pod in pods if pod.managed]
    return PodTotals(len(pods), len(managed), sum(not pod.happy for pod in managed))


class FakeSource:
    """`revise` shows another overview; `decide` adds a decision; open streams get both."""

    def __init__(self, decisions: int = 90) -> None:
        self.view = overview(0)
        self.columns = series(0)
        self.learned = calibration()
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

    async def cluster(self) -> SampleCluster:
        return SampleCluster(self.view)

    async def series(self) -> Series:
        return self.columns

    async def calibration(self) -> CalibrationView:
        return self.learned

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

    async def usage(self, wanted: UsageQuery) -> UsageDocument | None:
        times = tuple(float(at) for at in range(0, 3600, 60))
        ahead = tuple(times[-1] + seconds for seconds in (300.0, 900.0, 3600.0))
        trust = ("calibrated", "calibrated", "uncalibrated")
        forecast = UsageForecast(times[-1], ahead, (0.6, 0.7, 0.8), (0.9, 1.1, 1.4), trust)
        cpu = UsageAxis("cpu", "cores", (0.5,) * len(times), (0.75,) * len(times), forecast)
        memory = UsageAxis("memory", "bytes", (40 * 2.0**20,) * len(times), (60 * 2.0**20,) * len(times))
        return UsageDocument("pod", wanted.name, 60, times, (cpu, memory), ("n1",) * len(times))

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
