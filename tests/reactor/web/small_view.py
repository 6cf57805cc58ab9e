"""A small view and a clock that tests advance by hand."""

from __future__ import annotations

import asyncio
import threading
from typing import ClassVar

from aiohttp import web
from aiohttp.test_utils import TestClient

from reactor.record.calibration_summary import CalibrationSummary
from reactor.record.history_reader import HistoryEntry, HistoryKind
from reactor.record.usage_reader import UsageAxis, UsageDocument, UsageEvent
from reactor.web.query import FindQuery, OverviewQuery, PodsQuery, TopQuery, UsageQuery
from reactor.web.view import (
    AxisView,
    CalibrationView,
    CurveLine,
    FoundPod,
    FoundPods,
    Gauge,
    Health,
    LoadBin,
    NodeView,
    Overview,
    PodChip,
    PodPage,
    PodResources,
    PodTotals,
    PodView,
    Series,
    SettingsView,
    TopPage,
    Totals,
)

Client = TestClient[web.Request, web.Application]


class HandClock:
    """Sleepers wake when a test moves the time to them."""

    def __init__(self) -> None:
        self._now = 1000.0
        self._sleepers: list[tuple[float, asyncio.Event]] = []

    def now(self) -> float:
        return self._now

    def monotonic(self) -> float:
        return self._now

    async def sleep(self, seconds: float) -> None:
        woken = asyncio.Event()
        self._sleepers.append((self._now + seconds, woken))
        await woken.wait()

    async def settle(self) -> None:
        for _ in range(50):
            await asyncio.sleep(0)

    async def advance(self, seconds: float) -> None:
        await self.settle()
        self._now += seconds
        for due, woken in self._sleepers:
            if due <= self._now:
                woken.set()
        self._sleepers = [(due, woken) for due, woken in self._sleepers if due > self._now]
        await self.settle()


class SmallCluster:
    threads: ClassVar[list[int]] = []
    """In which overviews were made."""

    def overview(self, query: OverviewQuery) -> Overview:
        self.threads.append(threading.get_ident())
        pod = PodChip(uid="u1", key="shop/<b>web</b>", happiness=0.5, threshold=0.8, happy=False)
        gauge = Gauge(used=2.0, capacity=4.0, unit="cores")
        return Overview(
            title="small",
            mode="observe",
            synced=True,
            halted=None,
            planner="stable",
            threshold=0.8,
            at=1000.0,
            cycles=1,
            rematches=0,
            moves=0,
            settings=SettingsView(digest="d1", source="file"),
            problems=(),
            nodes=(NodeView("n1", True, False, gauge, None, (pod,), PodTotals(1, 1, 1)),)[: query.nodes],
            pending=(),
            totals=Totals(1, 1, 1, 1, 1, 0, 0.5),
        )

    def pods(self, query: PodsQuery) -> PodPage:
        return PodPage(1000.0, self.overview(OverviewQuery()).nodes[0].pods[: query.limit], PodTotals(1, 1, 1))

    def top(self, query: TopQuery) -> TopPage:
        found = self.pods(query)
        axes = (AxisView("cpu", "cores", 0.25, 0.1, 0.5), AxisView("memory", "bytes", None, 2.0**26, None))
        return TopPage(found.at, tuple(PodResources(chip, axes) for chip in found.pods), found.totals)


class SmallSource:
    def __init__(self) -> None:
        self.version = 1
        self.changed = asyncio.Event()
        self.queries: list[tuple[int, int | None, bool]] = []
        self.searches: list[FindQuery] = []
        self.failure: Exception | None = None

    def change(self) -> None:
        self.version += 1
        self.changed.set()
        self.changed = asyncio.Event()

    async def cluster(self) -> SmallCluster:
        if self.failure:
            raise self.failure
        return SmallCluster()

    async def series(self) -> Series:
        return Series((1.0,), (None,), (float("nan"),), (0.5,), (0.5,), (), node_count=0)

    async def calibration(self) -> CalibrationView:
        curve = CurveLine(0.001, 0.5, 1.0, 0.05, (0.001, 0.5))
        bins = (LoadBin(0.95, 1.0, 0.98, 120.0, 0.25, 0.2),)
        return CalibrationView(CalibrationSummary(120.0, 0.2, 0.25), "curve", bins, (0.0, 1.5), curve, curve)

    async def decisions(self, limit: int, before: int | None, waits: bool) -> tuple[HistoryEntry, ...]:
        self.queries.append((limit, before, waits))
        return (HistoryEntry(7, 999.0, "c1", HistoryKind.WAIT, "shop/web", "cooldown", "waits a little"),)

    async def pod(self, namespace: str, name: str) -> PodView | None:
        if (namespace, name) != ("shop", "web"):
            return None
        return PodView(
            uid="u1",
            namespace=namespace,
            name=name,
            node="n1",
            phase="Running",
            ready=True,
            restarts=0,
            created=1.0,
            workload="Deployment web",
            scheduler="rematch",
            managed=True,
            fixed="",
            happiness=None,
            resources=(),
            decision=None,
            placement=None,
            history=(),
        )

    async def find_pods(self, wanted: FindQuery) -> FoundPods:
        self.searches.append(wanted)
        if wanted.name != "web":
            return FoundPods((), 0, ("shop/web",))
        found = FoundPod("u1", "shop", "web", "n1", "Running", True, "Deployment web", 0.5, False, "")
        return FoundPods((found,), 1, ())

    async def usage(self, wanted: UsageQuery) -> UsageDocument | None:
        if wanted.name == "shop/nobody":
            return None
        cpu = UsageAxis("cpu", "cores", (0.5, None), (0.75, None))
        return UsageDocument("pod", "shop/web", 60, (0.0, 60.0), (cpu,), ("n1", ""), (UsageEvent(30.0, "scaled"),))

    async def wait_for_change(self, after: int) -> int:
        while self.version <= after:
            await self.changed.wait()
        return self.version


class SmallHealth:
    def __init__(self) -> None:
        self.readiness = Health(ok=True)

    def live(self) -> Health:
        return Health(ok=True)

    def ready(self) -> Health:
        return self.readiness
