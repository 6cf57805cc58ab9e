"""What is seen during a run: the user's requests, the meter's measurements, where the pods are, what the controller
tells of."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping

from loadtests.demo.controller import RunningController
from loadtests.experiments.latency.lab import APP_NODE_PORT, APP_SERVICE, PROBE, TARGET, Edge
from loadtests.experiments.latency.network import node_address
from loadtests.experiments.latency.records import MeasurementSeen, PlacementSeen, RequestSeen
from loadtests.workloads.http_client import http_get
from reactor.clock import Clock
from reactor.errors import BrokerError
from reactor.signals.latency_messages import Refusal, parse_message
from reactor.signals.mqtt import Broker, BrokerAccess, connected

EVERY = 0.5
"""Seconds between two requests of the user, and between two looks at the placement, at full delays."""
_LEAST_EVERY = 0.1
_LONGEST_REQUEST = 15.0
_METER_PROBLEM = "latency meter"
_ROLES: Mapping[str, str] = {TARGET: "target", PROBE: "probe"}


class Observer:
    """Times are seconds since it was made."""

    def __init__(self, edge: Edge, pace: float, clock: Clock) -> None:
        self._edge = edge
        self._clock = clock
        self._every = max(_LEAST_EVERY, EVERY * pace)
        self.began = clock.now()
        self.requests: list[RequestSeen] = []
        self.measurements: list[MeasurementSeen] = []
        self.placements: list[PlacementSeen] = []
        self.problems: list[str] = []
        self._pods: dict[str, tuple[str, int]] = {}
        """Role and rank of every pod that was seen, by UID."""

    def now(self) -> float:
        return round(self._clock.now() - self.began, 2)

    async def send_requests(self) -> None:
        """To the workers with a ready target in turn, each with a connection of its own."""
        async with asyncio.TaskGroup() as asking:
            for turn in itertools.count():
                if ready := self._edge.endpoints.ready(APP_SERVICE):
                    asking.create_task(self._ask(self._edge.ranks[ready[turn % len(ready)].node]))
                else:
                    self.requests.append(RequestSeen(self.now(), 0, 0.0, "no ready endpoint"))
                await asyncio.sleep(self._every)

    async def watch_pods(self) -> None:
        while True:
            for app, role in _ROLES.items():
                for pod in await self._edge.pods(app):
                    if node := pod["spec"].get("nodeName"):
                        self._pods[pod["metadata"]["uid"]] = (role, self._edge.ranks[node])
            targets, probes = await self._edge.placed()
            last = self.placements[-1] if self.placements else None
            if last is None or (last.targets, last.probes) != (targets, probes):
                self.placements.append(PlacementSeen(self.now(), targets, probes))
            await asyncio.sleep(self._every)

    async def listen(self, broker: Broker, topic: str) -> None:
        """To what the meter publishes, as the controller does."""
        while True:
            try:
                async with connected(broker, BrokerAccess(), "observer") as connection:
                    await connection.subscribe(f"{topic}/+")
                    async for _, payload in connection.messages():
                        self._note_measurement(payload)
            except BrokerError:  # silent for too long
                await asyncio.sleep(self._every)

    async def note_problem(self, controller: RunningController) -> None:
        """The first that is about the meter."""
        if not self.problems:
            found = (await controller.overview()).problems
            self.problems += [problem for problem in found if _METER_PROBLEM in problem][:1]

    async def _ask(self, rank: int) -> None:
        sent, began = self.now(), self._clock.monotonic()
        answer = await http_get(node_address(self._edge.lab.number, rank), APP_NODE_PORT, "/", _LONGEST_REQUEST)
        seconds = round(self._clock.monotonic() - began, 4)
        ending = "ok" if answer.ok else f"{answer.ending} {answer.status or ''}".strip()
        self.requests.append(RequestSeen(sent, rank, seconds, ending))

    def _note_measurement(self, payload: bytes) -> None:
        parsed = parse_message(payload)
        if isinstance(parsed, Refusal):
            return
        message, at = parsed
        role, rank = self._pods.get(message.uid, ("", 0))
        rtt = None if message.rtt_seconds is None else round(message.rtt_seconds, 4)
        when = round(at - self.began, 2)
        self.measurements.append(MeasurementSeen(when, role, rank, rtt, round(message.loss, 2)))
