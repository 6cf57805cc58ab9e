"""Finds out whether hints work in this cluster, at intervals and in doubt, and removes hints that nobody needs."""

from __future__ import annotations

from collections.abc import Callable, Collection

import structlog

from reactor.clock import Clock
from reactor.cluster.extender_sign import ExtenderSign
from reactor.cluster.steering_policy import SteeringPolicy
from reactor.errors import ClusterError
from reactor.execution.steering import HintSteering
from reactor.record.metrics import Instruments
from reactor.settings.model import Mode, Settings, SteeringMode

log = structlog.get_logger(__name__)

TICK = 1.0
DISCOVER_EVERY = 60.0
CANARY_EVERY = 3600.0
EXTENDER_EVERY = 10.0
FIRST_RETRY = 15.0
"""Seconds until a canary that failed is tried again, doubled each time up to `CANARY_EVERY`."""


class SteeringCheck:
    """The canary creates objects, so it runs in mode act only, and only where pods of other schedulers are managed.

    `settings` have the mode that this process may use: one that does not lead observes.
    """

    def __init__(
        self,
        policy: SteeringPolicy,
        sign: ExtenderSign,
        steering: HintSteering,
        active_moves: Callable[[], Collection[str]],
        settings: Callable[[], Settings],
        clock: Clock,
        instruments: Instruments,
    ) -> None:
        self._policy = policy
        self._sign = sign
        self._steering = steering
        self._active_moves = active_moves
        self._settings = settings
        self._clock = clock
        self._instruments = instruments
        self._version = ""
        self._discover_at = float("-inf")
        self._canary_at = float("-inf")
        self._extender_at = float("-inf")
        self._retry = FIRST_RETRY

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await self.step()
            await self._clock.sleep(TICK)

    async def step(self) -> None:
        """What is due now."""
        before = self._steering.status
        if self._clock.monotonic() >= self._discover_at:
            self._discover_at = self._clock.monotonic() + DISCOVER_EVERY
            await self._discover()
        if self._settings().placement.steering is SteeringMode.EXTENDER:
            await self._look_for_extender()
        if self._canary_due():
            await self._try_canary()
        status = self._steering.status
        self._instruments.steering_works.set(status.policy_works and status.tried)
        if status != before:
            text = status.problem_of(self._settings())
            log.info("steering", works=status.policy_works, tried=status.tried, problem=text)

    async def _discover(self) -> None:
        try:
            found = await self._policy.discover()
            by_extender = self._settings().placement.steering is SteeringMode.EXTENDER
            if self._settings().mode is Mode.ACT and (by_extender or not found.problem):
                await self._steering.sweep(self._active_moves)
                await self._policy.remove_canaries()
        except ClusterError as error:
            log.warning("whether hints can work here is not known", error=str(error))
            if self._steering.missing is None:
                self._steering.missing = f"whether the policy rematch-hints is installed could not be read: {error}"
            return
        self._steering.missing = found.problem
        if found.version != self._version:
            self._version = found.version
            self._steering.canary = None
            self._canary_at = float("-inf")

    async def _look_for_extender(self) -> None:
        if self._clock.monotonic() < self._extender_at:
            return
        self._extender_at = self._clock.monotonic() + EXTENDER_EVERY
        try:
            self._steering.extender_problem = await self._sign.problem()
        except ClusterError as error:
            self._steering.extender_problem = f"whether an extender runs could not be read: {error}"

    def _canary_due(self) -> bool:
        settings = self._settings()
        wanted = (
            settings.mode is Mode.ACT
            and settings.placement.steering in (SteeringMode.AUTO, SteeringMode.POLICY)
            and bool(settings.managed.any_scheduler_namespaces)
            and self._steering.missing == ""
        )
        return wanted and (self._steering.doubted.is_set() or self._clock.monotonic() >= self._canary_at)

    async def _try_canary(self) -> None:
        self._steering.doubted.clear()
        self._steering.canary = await self._policy.try_canary()
        if self._steering.canary:
            wait, self._retry = self._retry, min(2 * self._retry, CANARY_EVERY)
        else:
            wait, self._retry = CANARY_EVERY, FIRST_RETRY
        self._canary_at = self._clock.monotonic() + wait
