"""Rolling updates and our own moves while requests come at a constant rate."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from loadtests.experiments.bnip.live.design import (
    CAREFUL,
    CONNECTIONS,
    PLAIN,
    REPLICAS,
    SCALES,
    TIMEOUT,
    UPDATE_SECONDS,
    Change,
    PaperLoad,
)
from loadtests.experiments.bnip.live.records import UpdateRun
from loadtests.nodes import KubeletPace, Lab, LabOptions, real_nodes
from loadtests.nodes.spec import LabError
from loadtests.workloads.load_tools import Load, LoadResult, LoadToolError
from loadtests.workloads.samples import RequestOutcome
from loadtests.workloads.vegeta import Vegeta
from loadtests.zero_loss.bench import NAMESPACE, Bench
from loadtests.zero_loss.design import Way
from loadtests.zero_loss.main import NODES

_CALM = 5.0
"""Seconds of load before the change."""
_TRIAL_SECONDS = 5.0
_LATE_MS = 20.0
_DEADLINE = 120.0
_POLL = 0.2
_DEPLOYMENTS = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"


@dataclass(frozen=True, slots=True)
class UpdateBench:
    bench: Bench
    tool: Vegeta
    seconds: float = UPDATE_SECONDS

    @classmethod
    @asynccontextmanager
    async def open(cls, folder: Path) -> AsyncIterator[UpdateBench]:
        await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
        async with (
            real_nodes(LabOptions(NODES, pace=KubeletPace(housekeeping=2))) as lab,
            cls.on(lab, [node.name for node in NODES], folder) as bench,
        ):
            yield bench

    @classmethod
    @asynccontextmanager
    async def on(
        cls, lab: Lab, nodes: Sequence[str], folder: Path, seconds: float = UPDATE_SECONDS
    ) -> AsyncIterator[UpdateBench]:
        """The controller runs in all cases, so that it costs all the same; it moves only what it is asked to."""
        async with Bench.open(lab, nodes, (PLAIN, CAREFUL), folder) as bench, bench.controller(Way.CHOSEN):
            vegeta = bench.tools["vegeta"]
            assert isinstance(vegeta, Vegeta)
            yield cls(bench, replace(vegeta, connections=CONNECTIONS), seconds)

    async def rate(self, load: PaperLoad) -> float:
        """The largest part of the paper's that is served without a failure while nothing changes."""
        async with self.bench.deployed():
            for scale in SCALES:
                if await self._carries(scale * load.rate, kept=load.kept):
                    return scale * load.rate
        raise LabError(f"these nodes do not carry even {SCALES[-1] * load.rate:g} requests/s: the machine is busy")

    async def _carries(self, rate: float, *, kept: bool) -> bool:
        try:
            result = await self.tool.attack(self._load(PLAIN.app.name, rate, _TRIAL_SECONDS, kept=kept))
        except LoadToolError:
            return False
        good = all(sample.outcome is RequestOutcome.OK for sample in result.samples)
        return good and result.late_ms <= _LATE_MS and result.unsent < 0.001

    async def run(self, change: Change, load: PaperLoad, repeat: int, rate: float) -> UpdateRun:
        async with self.bench.deployed():
            attack = asyncio.ensure_future(self.tool.attack(self._load(change.app, rate, self.seconds, kept=load.kept)))
            try:
                await asyncio.sleep(_CALM)
                began = self.bench.clock.monotonic()
                strategies, problems = await self._change(change, attack)
                seconds, in_time = self.bench.clock.monotonic() - began, not attack.done()
                result = await attack
            finally:
                attack.cancel()
                await asyncio.gather(attack, return_exceptions=True)
        outcomes = (sample.outcome for sample in result.samples)
        failed = Counter(each.value for each in outcomes if each is not RequestOutcome.OK)
        return UpdateRun(
            change.value,
            load.rate,
            load.connections,
            repeat,
            rate,
            len(result.samples),
            dict(failed),
            late_ms=round(result.late_ms, 2),
            unsent=round(result.unsent, 5),
            seconds=round(seconds, 1),
            in_time=in_time,
            strategies=strategies,
            problems=problems,
            at=datetime.now(UTC).isoformat(timespec="seconds"),
        )

    def _load(self, app: str, rate: float, seconds: float, *, kept: bool) -> Load:
        network = self.bench.lab.addresses.everything
        return Load({app: self.bench.urls[app]}, rate, seconds, TIMEOUT, network, keep_alive=kept)

    async def _change(self, change: Change, attack: asyncio.Future[LoadResult]) -> tuple[dict[str, int], list[str]]:
        if change.by_rematch:
            return await self._moved(change.app, attack)
        await self._updated(change.app)
        return {}, []

    async def _moved(self, app: str, attack: asyncio.Future[LoadResult]) -> tuple[dict[str, int], list[str]]:
        """Every pod once; pods that are not measured yet wait."""
        mover = await self.bench.mover(Way.CHOSEN)
        strategies: Counter[str] = Counter()
        while strategies.total() < REPLICAS and not attack.done():
            landed = await mover.round({app: REPLICAS - strategies.total()})
            strategies.update(move.strategy for move in landed)
            if not landed:
                await asyncio.sleep(1.0)
        return dict(strategies), list(mover.problems)

    async def _updated(self, app: str) -> None:
        """As `kubectl rollout restart`, until the last old pod is gone."""
        api = self.bench.lab.api
        stamp = {"metadata": {"annotations": {"lab/restarted": datetime.now(UTC).isoformat()}}}
        made = await api.patch(f"{_DEPLOYMENTS}/{app}", {"spec": {"template": stamp}})
        async with asyncio.timeout(_DEADLINE):
            while True:
                status = (await api.get(f"{_DEPLOYMENTS}/{app}"))["status"]
                seen = status.get("observedGeneration", 0) >= made["metadata"]["generation"]
                if seen and status.get("updatedReplicas") == status.get("replicas") == REPLICAS:
                    break
                await asyncio.sleep(_POLL)
        await self.bench.pods.until_complete()
