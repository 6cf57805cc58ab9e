"""What the dashboard may read of a running controller. No other module of `web` knows the parts of the controller."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from reactor.app import Controller, LiveController
from reactor.background.active_settings import ActiveSettings
from reactor.background.metrics_collection import ServiceLevel
from reactor.clock import SystemClock
from reactor.decision.cooldowns import Cooldowns
from reactor.forecasts.forecasts import Forecasts
from reactor.record.calibration_summary import CalibrationSummary, summarize
from reactor.record.failures import problems as failure_texts
from reactor.record.history_reader import HistoryReader
from reactor.record.landings import Landing
from reactor.settings.model import Mode
from reactor.signals.probes import ProbeEvidence
from reactor.state.calibration import Calibration
from reactor.state.snapshot import Snapshot
from reactor.work_queue import MAX_YIELD

CLOCK_STEP = 60.0
"""Seconds; smaller steps are caught up within minutes."""
SILENT_FOR = 180.0
"""Seconds without a response after which a watch is stale. The API server ends a watch after at most two minutes."""
FAILING_SILENT_FOR = 60.0
"""The same for a watch that fails."""


class StateReader:
    def __init__(self, controller: Controller) -> None:
        self._controller = controller

    @property
    def synced(self) -> bool:
        return self._controller.state.synced

    @property
    def version(self) -> int:
        """Grows with every change of the cluster and every cycle."""
        return self._controller.state.version + self._controller.loop.cycles

    @property
    def cycles(self) -> int:
        return self._controller.loop.cycles

    async def snapshot_between_cycles(self, seconds: float = MAX_YIELD) -> Snapshot:
        """A cycle that is due goes first, if it takes no longer than so many seconds."""
        await self._controller.work_queue.yield_to_cycle(seconds)
        return self._controller.state.freeze(self._controller.executor.active_moves())

    @property
    def forecasts(self) -> Forecasts:
        return self._controller.state.forecasts

    @property
    def landings(self) -> Counter[Landing]:
        return self._controller.recorder.landings.counts

    @property
    def calibration(self) -> Calibration:
        return self._controller.state.calibration

    def calibration_summary(self) -> CalibrationSummary:
        return summarize(self.calibration.predicted_failures(), self._controller.recorder.move_checks.summary())

    def cooldowns(self) -> Cooldowns:
        return self._controller.memory.cooldowns

    def evidence(self, uid: str, at: float) -> ProbeEvidence | None:
        return self._controller.state.probes.evidence(uid, at)


class HealthReader:
    def __init__(self, live: LiveController) -> None:
        self._live = live

    def problems(self) -> Iterator[str]:
        """What does not work now."""
        controller = self._live.controller
        yield from (text for text in self._live.metrics.problems.values() if text)
        if latency := self._live.latency.problem:
            yield latency
        for state in self._live.watch.states:
            if state.last_error:
                yield f"{state.kind.value}: {state.last_error}"
        if controller.events.problem:
            yield f"Events are not written: {controller.events.problem}"
        if controller.store.health.error:
            yield f"nothing is evicted: the store does not take records: {controller.store.health.error}"
        yield from failure_texts(controller.failures.current)
        yield from self._acting_problems()

    def hindrance(self) -> str:
        """Why nothing is evicted although the settings say so."""
        acting = self._live.controller.acting
        acts = self._live.settings.get().mode is Mode.ACT
        return acting.hindrance if acts or acting.paused is not None else ""

    def _acting_problems(self) -> Iterator[str]:
        acting, leading = self._live.controller.acting, self._live.leading
        if acting.leadership.may_bind and not acting.leadership.leads:
            yield acting.leadership.problem
        if acting.leadership.leads and acting.journal_problem:
            yield f"journal: {acting.journal_problem}"
        for move in self._live.controller.executor.active_moves().refused:
            yield f"the move of {move.pod.key} cannot go on: {move.refused}; see `rematch doctor`"
        if leading.documents.problem:
            yield f"state not saved: {leading.documents.problem}"
        if self._live.settings.restored:
            yield "the settings of the last run are in force, because those of the ConfigMap are refused"
        clock = self._live.controller.clock
        if isinstance(clock, SystemClock) and abs(clock.behind_wall) > CLOCK_STEP:
            yield f"the clock of this machine was set by {clock.behind_wall:+.0f} s; a restart follows it at once"

    def stalled(self) -> Iterator[str]:
        """Loops that do not run any more."""
        controller = self._live.controller
        yield from filter(None, (controller.loop.stalled, controller.binding_loop.stalled))

    def unready(self) -> Iterator[str]:
        """Kinds that are not listed, not watched or not heard of for long, and pods that should be bound by now."""
        missing = self._live.controller.state.mirror.missing
        for state in self._live.watch.states:
            if state.kind in missing or state.denied:
                problem = "not listed yet" if state.kind in missing else "not watched"
                yield f"{problem}: {state.kind.value}" + (f" ({state.last_error})" if state.last_error else "")
            elif state.age > (FAILING_SILENT_FOR if state.last_error else SILENT_FOR):
                yield f"{state.kind.value}: nothing heard for {state.age:.0f} s ({state.last_error or 'no error'})"
        yield from self._live.controller.binding_loop.late()

    def service_level(self) -> ServiceLevel:
        return self._live.metrics.service_level


@dataclass(frozen=True, slots=True)
class Readers:
    state: StateReader
    settings: ActiveSettings
    history: HistoryReader
    health: HealthReader
