"""Listens to latency meters at the broker of the settings, and connects again when it is away."""

from __future__ import annotations

import asyncio
import random
import secrets
from collections.abc import Callable

import structlog
from prometheus_client import Counter

from reactor.clock import Clock
from reactor.cluster.backoff import Backoff
from reactor.errors import BrokerError
from reactor.settings.model import Latency, Settings
from reactor.signals.mqtt import Broker, BrokerAccess, BrokerConnection, connected
from reactor.state.live_state import State

log = structlog.get_logger(__name__)

LOOK_AGAIN = 2.0
"""Seconds after which the settings are read again."""


class LatencyListening:
    def __init__(
        self, state: State, settings: Callable[[], Settings], clock: Clock, counted: Counter, access: BrokerAccess
    ) -> None:
        self._state = state
        self._settings = settings
        self._clock = clock
        self._counted = counted
        self._access = access
        self._client_id = f"rematch-{secrets.token_hex(4)}"
        self._backoff = Backoff(random.random, first=0.5, cap=30.0)
        self._failure = ""
        self._since: float | None = None
        """When the current connection was made."""

    @property
    def problem(self) -> str:
        """Why there are no new measurements; empty while there are, or while it is off."""
        settings = self._settings().latency
        if not settings.broker:
            return ""
        if self._failure:
            return f"latency meters are not heard, so no target moves: {self._failure}"
        heard = max(self._since or 0.0, self._state.latency.accepted_at or 0.0)
        silent = self._clock.now() - heard
        if self._since is None or silent <= settings.freshness:
            return ""
        return (
            f"no latency meter was heard at {settings.broker} for {silent:.0f} s, so no target moves;"
            f" do meters run, and do they publish to {settings.topic}/NAMESPACE?"
        )

    async def run(self) -> None:
        await self._state.until_synced()
        while True:
            wanted = self._settings().latency
            if not wanted.broker:
                self._failure = ""
                await self._clock.sleep(LOOK_AGAIN)
                continue
            try:
                async with connected(Broker.parse(wanted.broker), self._access, self._client_id) as connection:
                    await self._listen(connection, wanted)
            except BrokerError as error:
                self._report(str(error))
                await self._clock.sleep(self._backoff.next())
            finally:
                self._since = None

    async def _listen(self, connection: BrokerConnection, wanted: Latency) -> None:
        """Until the settings change. Raises BrokerError when the connection is lost."""
        await connection.subscribe(f"{wanted.topic}/+")
        self._since = self._clock.now()
        self._backoff.reset()
        self._report("")
        receiving = asyncio.create_task(self._receive(connection))
        try:
            while not receiving.done() and self._settings().latency == wanted:
                await asyncio.wait({receiving}, timeout=LOOK_AGAIN)
            if receiving.done():
                receiving.result()
        finally:
            receiving.cancel()
            await asyncio.gather(receiving, return_exceptions=True)

    async def _receive(self, connection: BrokerConnection) -> None:
        async for topic, payload in connection.messages():
            refused = self._state.latency.observe(topic, payload)
            self._counted.labels(refused or "accepted").inc()
            if refused is not None:
                log.debug("message of a latency meter refused", topic=topic, reason=refused)

    def _report(self, failure: str) -> None:
        """Logged when it changes."""
        if failure and failure != self._failure:
            log.warning("latency meters are not heard", problem=failure)
        elif self._since is not None:
            log.info("listening to latency meters", broker=self._settings().latency.broker)
        self._failure = failure
