"""Looks at intervals whether a policy makes Events about probes trustworthy."""

from __future__ import annotations

import structlog

from reactor.clock import Clock
from reactor.cluster.api import Connection
from reactor.cluster.event_policy import events_authentic
from reactor.errors import ClusterError
from reactor.state.live_state import State

log = structlog.get_logger(__name__)

INTERVAL = 60.0


class EventPolicyCheck:
    def __init__(self, connection: Connection, state: State, clock: Clock) -> None:
        self._connection = connection
        self._state = state
        self._clock = clock
        self._problem = ""

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await self.step()
            await self._clock.sleep(INTERVAL)

    async def step(self) -> None:
        """What cannot be read is not trusted."""
        try:
            authentic, problem = await events_authentic(self._connection, self._clock.now()), ""
        except ClusterError as error:
            authentic, problem = False, str(error)
        if (authentic, problem) != (self._state.events_authentic, self._problem):
            log.info("Events about probes", only_by_kubelets=authentic, problem=problem)
        self._state.events_authentic, self._problem = authentic, problem
