"""Writes happiness and problems to the store at intervals, prunes the store, and sets the gauges of both."""

from __future__ import annotations

from collections.abc import Callable

import structlog

from reactor.clock import Clock
from reactor.cluster.kinds import Kind
from reactor.record.metrics import Instruments
from reactor.record.recorder import Recorder
from reactor.settings.model import Settings
from reactor.state.live_state import State
from storage import StorageError
from storage.retention import Retention
from storage.store import Store

log = structlog.get_logger(__name__)

SAVE_EVERY = 5.0
SAVE_ALL_EVERY = 300.0
PRUNE_EVERY = 3600.0
SHRINK_EVERY = 30.0
SAY_AGAIN_AFTER = 300.0


class StoreMaintenance:
    def __init__(
        self,
        state: State,
        store: Store,
        recorder: Recorder,
        settings: Callable[[], Settings],
        clock: Clock,
        instruments: Instruments,
        announce: Callable[[str, str], None] = lambda _reason, _message: None,
    ) -> None:
        """`announce` gets reason and message of a Warning."""
        self._announce = announce
        self._said: str | None = None
        self._said_at = float("-inf")
        self._state = state
        self._recorder = recorder
        self._store = store
        self._settings = settings
        self._clock = clock
        self._instruments = instruments
        self._saved_all = clock.now()
        self._pruned = float("-inf")
        self._shrunk = float("-inf")

    async def run(self) -> None:
        """Until cancelled; then everything is written once more."""
        try:
            while True:
                self._set_gauges()
                self._report_health()
                await self._clock.sleep(SAVE_EVERY)
                self._save()
                await self._recorder.complete_plans(self._state.yield_to_cycle)
                await self._shrink()
                await self._prune()
        finally:
            self._save(everything=True)
            await self._recorder.complete_plans()

    def _save(self, *, everything: bool = False) -> None:
        """Pods with new failures every time; all pods, whose successes grow by themselves, less often."""
        now = self._clock.now()
        everything = everything or now - self._saved_all >= SAVE_ALL_EVERY
        if everything:
            self._saved_all = now
        self._store.add_happiness(*self._state.probes.export(now, changed_only=not everything))

    def _set_gauges(self) -> None:
        instruments = self._instruments
        instruments.synced.set(self._state.synced)
        instruments.storage_ok.set(self._store.health.ok)
        for kind in Kind:
            instruments.objects.labels(kind).set(len(self._state.mirror.records(kind)))

    def _report_health(self) -> None:
        """Said when it changes and every few minutes."""
        error, now = self._store.health.error, self._clock.monotonic()
        if error is None:
            if self._said is not None:
                log.info("the store takes records again", store=str(self._store.place))
            self._said = None
            return
        if self._said is None or now - self._said_at >= SAY_AGAIN_AFTER:
            log.error("nothing is evicted: the store takes no records", store=str(self._store.place), error=error)
            self._announce("StoreUnusable", f"nothing is evicted: the store takes no records: {error}")
            self._said_at = now
        self._said = error

    async def _shrink(self) -> None:
        now = self._clock.now()
        if now - self._shrunk < SHRINK_EVERY:
            return
        self._shrunk = now
        try:
            removed = await self._store.shrink(self._settings().history.max_bytes)
        except StorageError as error:
            log.warning("the store could not be made smaller", error=str(error))
            return
        if removed:
            log.info("the oldest records removed: the store has its largest size", rows=removed)

    async def _prune(self) -> None:
        now = self._clock.now()
        if now - self._pruned < PRUNE_EVERY:
            return
        self._pruned = now
        try:
            removed = await self._store.prune(now, Retention(records=self._settings().history.keep))
        except StorageError as error:
            log.warning("the store could not be pruned", error=str(error))
            return
        if removed:
            log.info("old records removed", rows=removed)
