"""Serves the dashboard, the API and the probes of one controller. No other module of `web` knows the controller."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from reactor.app import Controller, LiveController
from reactor.background.metrics_collection import ServiceLevel
from reactor.decision.cooldowns import Cooldowns
from reactor.record.history_reader import HistoryReader
from reactor.signals.probes import ProbeEvidence
from reactor.state.snapshot import Snapshot
from reactor.web.live import LiveView, Readers
from reactor.web.server import build_app, is_loopback, serving


@asynccontextmanager
async def serve(live: LiveController, host: str, port: int) -> AsyncIterator[str]:
    """Yields the URL."""
    view, controller = live_view(live), live.controller
    app = build_app(view, view, controller.instruments.registry, controller.clock, loopback=is_loopback(host))
    async with serving(app, host, port) as url:
        sampling = asyncio.create_task(view.keep_sampling())
        try:
            yield url
        finally:
            sampling.cancel()
            await asyncio.gather(sampling, return_exceptions=True)


def live_view(live: LiveController) -> LiveView:
    controller = live.controller
    readers = Readers(_State(controller), live.settings, HistoryReader(controller.store), _Health(live))
    view = LiveView(readers, controller.clock, live.connection.server.partition("://")[2])
    controller.recorder.listen(view.cycle_recorded)
    return view


@dataclass(frozen=True, slots=True)
class _State:
    controller: Controller

    @property
    def synced(self) -> bool:
        return self.controller.state.synced

    @property
    def version(self) -> int:
        return self.controller.state.version + self.controller.loop.cycles

    @property
    def cycles(self) -> int:
        return self.controller.loop.cycles

    def snapshot(self) -> Snapshot:
        return self.controller.state.freeze(self.controller.executor.active_moves())

    async def snapshot_between_cycles(self) -> Snapshot:
        await self.controller.work_queue.yield_to_cycle()
        return self.snapshot()

    def cooldowns(self) -> Cooldowns:
        return self.controller.memory.cooldowns

    def evidence(self, uid: str, at: float) -> ProbeEvidence | None:
        return self.controller.state.probes.evidence(uid, at)


@dataclass(frozen=True, slots=True)
class _Health:
    live: LiveController

    def problems(self) -> Iterator[str]:
        controller = self.live.controller
        yield from (text for text in self.live.metrics.problems.values() if text)
        for state in self.live.watch.states:
            if state.last_error:
                yield f"{state.kind.value}: {state.last_error}"
        if controller.events.problem:
            yield f"Events are not written: {controller.events.problem}"
        if controller.store.health.error:
            yield f"store: {controller.store.health.error}"

    def unready(self) -> Iterator[str]:
        missing = self.live.controller.state.mirror.missing
        for state in self.live.watch.states:
            if state.kind in missing or state.denied:
                problem = "not listed yet" if state.kind in missing else "not watched"
                yield f"{problem}: {state.kind.value}" + (f" ({state.last_error})" if state.last_error else "")

    def service_level(self) -> ServiceLevel:
        return self.live.metrics.service_level
