"""Records the usage of every minute, rolls complete hours up, and reads the needs of the past again after that."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import structlog

from reactor.background.minute_of_state import pods_of_minute, state_minute
from reactor.clock import Clock
from reactor.history.levels import HOURS, MINUTES
from reactor.history.minute import Minute
from reactor.history.past_needs import read_past_needs
from reactor.history.rolling import roll_up
from reactor.history.series import SeriesIndex
from reactor.settings.model import Settings
from reactor.state.live_state import State
from storage import StorageError
from storage.rows import ChunkRow
from storage.store import Store

log = structlog.get_logger(__name__)


class UsageRecording:
    def __init__(self, state: State, store: Store, settings: Callable[[], Settings], clock: Clock) -> None:
        self._state = state
        self._store = store
        self._settings = settings
        self._clock = clock
        self._series: SeriesIndex | None = None
        self._rolling = asyncio.Lock()
        self._next = MINUTES.start_of(clock.now())
        """The first minute that is not recorded yet."""
        self._restored = float("-inf")
        """The hour up to which the needs of the past are read."""
        self._read_with = settings().history

    async def run(self) -> None:
        """Until cancelled. What was measured in a minute that is not over is lost."""
        while True:
            now = self._clock.now()
            await self._clock.sleep(MINUTES.start_of(now) + MINUTES.step - now)
            await self.record()
            if self._clock.now() >= self._restored + HOURS.step or self._settings().history != self._read_with:
                await self.restore(self._store)

    async def restore(self, history: Store) -> None:
        """Rolls up what the last hour or an earlier process left, and reads the needs of the past from `history`.
        While the store does not answer, they stay what they were."""
        now, settings = self._clock.now(), self._settings().history
        try:
            if history is self._store:
                await self.roll_up()
            self._state.past_needs = await read_past_needs(history, now, settings.window, settings.peak)
        except StorageError as error:
            log.warning("the usage history is not read", error=str(error))
            return
        self._restored, self._read_with = now // HOURS.step * HOURS.step, settings

    async def roll_up(self) -> None:
        """One at a time: hours are added to the row of their day."""
        async with self._rolling:
            await roll_up(self._store, self._clock.now())

    async def record(self) -> None:
        """The last complete minute."""
        start = MINUTES.start_of(self._clock.now()) - MINUTES.step
        of_pods, of_nodes = self._state.usage.take_minute()
        departed = self._state.usage.take_departed()
        events, failures = self._state.usage_changes.take(), self._state.probes.take_minute_failures()
        if start < self._next:
            log.warning("a minute is not recorded twice; did the clock go back?", minute=start)
            return
        series = await self.known_series()
        if series is None:
            return
        self._next = start + MINUTES.step
        pods = await pods_of_minute(self._state, start, failures, departed, len(of_pods.counts))
        measured = (of_pods.followed_by([each.usage for each in departed]), of_nodes)
        minute = state_minute(self._state, start, series, pods, measured)
        samples = sum(each.refused for each in measured)
        if samples or minute.refused:
            one = minute.refused[0] if minute.refused else "negative, no number, or of the far future"
            log.warning("usage that cannot be true is not recorded", values=samples + len(minute.refused), one=one)
        self._store.add_usage_events(*events)
        self._store.add_series(*series.take_changed())
        series.forget_old(start)
        self._store.add_chunks(*await asyncio.to_thread(_rows, minute.minutes))

    async def known_series(self) -> SeriesIndex | None:
        """None while the store cannot be read: new numbers might be those of other series."""
        if self._series is None:
            try:
                self._series = SeriesIndex(await self._store.series())
            except StorageError as error:
                log.warning("the usage is not recorded", error=str(error))
        return self._series


def _rows(minutes: tuple[Minute, ...]) -> list[ChunkRow]:
    return [row for minute in minutes for row in minute.rows()]
