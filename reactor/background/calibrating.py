"""Fits the failure curve to the counted probes and stores what was learned, every few minutes."""

from __future__ import annotations

import asyncio

import structlog

from reactor.clock import Clock
from reactor.state.calibration import fitted_curve
from reactor.state.live_state import State
from storage.store import Store

log = structlog.get_logger(__name__)

FIT_EVERY = 300.0


class Calibrating:
    def __init__(self, state: State, store: Store, clock: Clock) -> None:
        self._state = state
        self._store = store
        self._clock = clock

    async def run(self) -> None:
        """Until cancelled; then everything is written once more."""
        try:
            while True:
                await self.fit()
                await self._clock.sleep(FIT_EVERY)
                self._save()
        finally:
            self._save()

    async def fit(self) -> None:
        """In a thread: it takes tens of milliseconds."""
        calibration = self._state.calibration
        curve = await asyncio.to_thread(fitted_curve, calibration.table)
        if curve != calibration.curve:
            calibration.curve = curve
            log.info(
                "failure curve", floor=curve.floor, ceiling=curve.ceiling, midpoint=curve.midpoint, width=curve.width
            )

    def _save(self) -> None:
        now = self._clock.now()
        self._store.add_load_bins(*self._state.calibration.rows(now))
        self._store.add_startups(*self._state.startup_times.export(now))
