"""One run: broker, meter and controller as processes of their own, a user who sends requests, and what is seen."""

from __future__ import annotations

import asyncio
import itertools
import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import yaml

from loadtests.controlplane.process import ComponentProcess
from loadtests.demo.controller import ControllerSpec, RunningController, running_controller
from loadtests.experiments.latency.design import (
    CHANGED_DELAY,
    CHANGED_RANK,
    CHANGING_TEST,
    QUIET,
    REQUESTS,
    SILENCE,
    Case,
    Trouble,
)
from loadtests.experiments.latency.lab import (
    APP_NODE_PORT,
    APP_SERVICE,
    ECHO_NODE_PORT,
    NAMESPACE,
    Edge,
    EdgeLab,
)
from loadtests.experiments.latency.network import node_address
from loadtests.experiments.latency.records import MeasurementSeen, MoveSeen, PlacementSeen, RequestSeen, RunRecord
from loadtests.kubelet.pod_runner import together
from loadtests.mosquitto import Mosquitto, running_mosquitto
from loadtests.tools.ports import free_ports
from loadtests.workloads.http_client import http_get
from reactor.clock import SystemClock
from reactor.cluster.connection import DEFAULT_NAMESPACE
from reactor.errors import BrokerError
from reactor.signals.latency_messages import Refusal, parse_message
from reactor.signals.mqtt import Broker, BrokerAccess, connected
from storage.rows import MoveRow
from storage.store import Store

LOOPBACK = "127.0.0.1"
TOPIC = "rematch/latency"
_ACCOUNT = "rematch-latency-meter"
_SECONDS = {1: 420.0, 2: 420.0, 3: 900.0}
"""The longest that a run may take, by test, at full delays. With loss or silence half as much again."""
_ALONE_SECONDS = 30.0
_EVERY = 0.5
"""Seconds between two requests of the user, and between two looks at the placement."""
_LONGEST_REQUEST = 15.0
_ROUND_METRIC = "rematch_latency_round "
_MANY = 10_000


@dataclass(slots=True)
class _Seen:
    requests: list[RequestSeen] = field(default_factory=list)
    measurements: list[MeasurementSeen] = field(default_factory=list)
    placements: list[PlacementSeen] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    changed_at: float | None = None
    silent: tuple[float, float] | None = None


class Run:
    def __init__(self, lab: EdgeLab, case: Case, pace: float, folder: Path) -> None:
        self._lab = lab
        self._case = case
        self._pace = pace
        self._folder = folder
        self._clock = SystemClock()
        self._seen = _Seen()
        self._began = 0.0
        self._roles: dict[str, tuple[str, int]] = {}
        """Role and rank of every pod that was seen, by UID."""

    async def play(self) -> RunRecord:
        case = self._case
        shutil.rmtree(self._folder, ignore_errors=True)  # of a run that was stopped
        self._folder.mkdir(parents=True)
        moves: list[MoveRow] = []
        async with self._lab.opened(case, self._pace) as edge:
            self._began = self._clock.now()
            began = datetime.now(UTC).isoformat(timespec="seconds")
            async with together(self._user(edge), self._watch(edge)):
                if case.arm.moves:
                    finished = await self._with_controller(edge)
                else:
                    await asyncio.sleep(_ALONE_SECONDS * self._pace)
                    finished = True
            if case.arm.moves:
                moves = await self._moves_of_store()
            seen = self._seen
            return RunRecord(
                arm=case.arm,
                test=case.test,
                targets=case.targets,
                trouble=case.trouble,
                seed=case.seed,
                pace=self._pace,
                workers=list(edge.names.values()),
                began=began,
                seconds=round(self._now(), 1),
                requests=seen.requests,
                measurements=seen.measurements,
                placements=seen.placements,
                moves=[self._move(each, edge) for each in moves],
                changed_at=seen.changed_at,
                silent=seen.silent,
                problems=tuple(seen.problems),
                finished=finished,
            )

    def _now(self) -> float:
        return self._clock.now() - self._began

    async def _with_controller(self, edge: Edge) -> bool:
        (broker_port,) = free_ports(LOOPBACK, 1)
        async with AsyncExitStack() as stack:
            mosquitto = await stack.enter_async_context(running_mosquitto(self._folder, broker_port))
            broker = Broker(LOOPBACK, broker_port, tls=False)
            controller = await stack.enter_async_context(self._controller(broker))
            await stack.enter_async_context(self._meter(broker))
            await stack.enter_async_context(together(self._listen(broker, edge)))
            return await self._until_at_rest(edge, controller, mosquitto)

    @asynccontextmanager
    async def _controller(self, broker: Broker) -> AsyncIterator[RunningController]:
        token = await self._lab.plane.token(DEFAULT_NAMESPACE, "rematch")
        kubeconfig = self._lab.plane.write_kubeconfig(self._folder / "controller.kubeconfig", token=token)
        settings = self._folder / "settings.yaml"
        settings.write_text(yaml.safe_dump(settings_of(self._case, broker, self._pace)))
        (port,) = free_ports(LOOPBACK, 1)
        log = self._folder / "controller.log"
        async with running_controller(ControllerSpec(kubeconfig, settings, self._store, log, port)) as running:
            yield running

    @property
    def _store(self) -> Path:
        return self._folder / "rematch.db"

    @asynccontextmanager
    async def _meter(self, broker: Broker) -> AsyncIterator[None]:
        token = await self._lab.plane.token(NAMESPACE, _ACCOUNT)
        kubeconfig = self._lab.plane.write_kubeconfig(self._folder / "meter.kubeconfig", token=token)
        program = [sys.executable, "-c", "from reactor.cli.main import main; main()", "latency-client"]
        numbers = [f"--port={ECHO_NODE_PORT}", f"--requests={REQUESTS}", f"--interval={max(0.1, self._pace)}"]
        timeout = f"--timeout={max(0.1, 2.5 * self._pace)}"
        names = [f"--broker={broker}", f"--topic={TOPIC}", f"--namespace={NAMESPACE}", f"--kubeconfig={kubeconfig}"]
        log = self._folder / "meter.log"
        process = ComponentProcess("latency-client", [*program, *numbers, timeout, *names], log)
        process.start()
        try:
            yield
            process.check()
        finally:
            process.stop()

    async def _until_at_rest(self, edge: Edge, controller: RunningController, mosquitto: Mosquitto) -> bool:
        """Until the best placement is there and a new round has begun; in test 3 twice, with the change in between."""
        trouble = 1.0 if self._case.trouble is Trouble.NONE else 1.5
        silence = SILENCE * self._pace if self._case.trouble is Trouble.SILENCE else 0.0
        longest = max(60.0, (_SECONDS[self._case.test] * trouble) * self._pace) + silence
        try:
            async with asyncio.timeout(longest):
                if silence:
                    await self._until_moved(edge)
                    began = self._now()
                    mosquitto.pause()
                    await self._look_for(silence, controller)
                    mosquitto.resume()
                    self._seen.silent = (began, self._now())
                await self._until_round(controller, await self._until_placed(self._case.best, controller))
                if self._case.test == CHANGING_TEST:
                    edge.ways[CHANGED_RANK].delay = CHANGED_DELAY * self._pace
                    self._seen.changed_at = self._now()
                    number = await self._until_placed(self._case.best_after_change, controller)
                    await self._until_round(controller, number)
        except TimeoutError:
            return False
        return True

    async def _until_moved(self, edge: Edge) -> None:
        while (await edge.placed())[0] == tuple(sorted(self._case.start)):
            await asyncio.sleep(_EVERY)

    async def _look_for(self, seconds: float, controller: RunningController) -> None:
        until = self._now() + seconds
        while self._now() < until:
            await self._note_problems(controller)
            await asyncio.sleep(_EVERY)

    async def _until_placed(self, wanted: tuple[int, ...], controller: RunningController) -> int:
        """The number of the round in which they got there."""
        while not self._seen.placements or self._seen.placements[-1].targets != wanted:
            await self._note_problems(controller)
            await asyncio.sleep(_EVERY)
        return await self._round(controller)

    async def _until_round(self, controller: RunningController, over: int) -> None:
        while await self._round(controller) <= over:
            await self._note_problems(controller)
            await asyncio.sleep(_EVERY)

    async def _round(self, controller: RunningController) -> int:
        lines = (await controller.metrics()).splitlines()
        return int(float(next(line for line in lines if line.startswith(_ROUND_METRIC)).removeprefix(_ROUND_METRIC)))

    async def _note_problems(self, controller: RunningController) -> None:
        for problem in (await controller.overview()).problems:
            if "latency meter" in problem and not any("latency meter" in each for each in self._seen.problems):
                self._seen.problems.append(problem)

    async def _user(self, edge: Edge) -> None:
        """Asks a worker with a ready target, one after the other, each request with a connection of its own."""
        async with asyncio.TaskGroup() as asking:
            for turn in itertools.count():
                ready = edge.endpoints.ready(APP_SERVICE)
                if ready:
                    asking.create_task(self._ask(edge.ranks[ready[turn % len(ready)].node]))
                else:
                    self._seen.requests.append(RequestSeen(round(self._now(), 2), 0, 0.0, "no ready endpoint"))
                await asyncio.sleep(_EVERY * max(self._pace, 0.1))

    async def _ask(self, rank: int) -> None:
        sent, began = self._now(), self._clock.monotonic()
        answer = await http_get(node_address(self._lab.number, rank), APP_NODE_PORT, "/", _LONGEST_REQUEST)
        seconds = self._clock.monotonic() - began
        ending = "ok" if answer.ok else f"{answer.ending} {answer.status or ''}".strip()
        self._seen.requests.append(RequestSeen(round(sent, 2), rank, round(seconds, 4), ending))

    async def _watch(self, edge: Edge) -> None:
        while True:
            await self._learn_pods(edge)
            targets, probes = await edge.placed()
            last = self._seen.placements[-1] if self._seen.placements else None
            if last is None or (last.targets, last.probes) != (targets, probes):
                self._seen.placements.append(PlacementSeen(round(self._now(), 2), targets, probes))
            await asyncio.sleep(_EVERY * max(self._pace, 0.2))

    async def _learn_pods(self, edge: Edge) -> None:
        for app, role in (("app", "target"), ("latency-probe", "probe")):
            for pod in await edge.pods(app):
                if node := pod["spec"].get("nodeName"):
                    self._roles[pod["metadata"]["uid"]] = (role, edge.ranks[node])

    async def _listen(self, broker: Broker, edge: Edge) -> None:
        """To what the meter publishes, as the controller does."""
        while True:
            try:
                async with connected(broker, BrokerAccess(), f"listener-{edge.lab.number}") as connection:
                    await connection.subscribe(f"{TOPIC}/+")
                    async for _, payload in connection.messages():
                        self._note_measurement(payload)
            except BrokerError:  # silent for too long
                await asyncio.sleep(_EVERY)

    def _note_measurement(self, payload: bytes) -> None:
        parsed = parse_message(payload)
        if isinstance(parsed, Refusal):
            return
        message, at = parsed
        role, rank = self._roles.get(message.uid, ("", 0))
        rtt = None if message.rtt_seconds is None else round(message.rtt_seconds, 4)
        self._seen.measurements.append(
            MeasurementSeen(round(at - self._began, 2), role, rank, rtt, round(message.loss, 2))
        )

    async def _moves_of_store(self) -> list[MoveRow]:
        store = await Store.open(str(self._store), read_only=True)
        try:
            return [move for move in await store.moves(_MANY, begun=True) if move.ended is not None]
        finally:
            await store.close()

    def _move(self, row: MoveRow, edge: Edge) -> MoveSeen:
        role = "target" if row.pod_key.startswith(f"{NAMESPACE}/app-") else "probe"
        return MoveSeen(
            plan=row.plan_id or "",
            role=role,
            source=edge.ranks.get(row.from_node or "", 0),
            target=edge.ranks[row.to_node],
            started=round(row.started - self._began, 2),
            ended=round((row.ended or 0.0) - self._began, 2),
            outcome=row.outcome,
        )


def settings_of(case: Case, broker: Broker, pace: float) -> dict[str, object]:
    """`pace` shortens the waiting, never the rule."""
    scopes = ("cluster", "namespace", "workload")
    return {
        "apiVersion": "rematch/v1alpha1",
        "mode": "act",
        "managed": {"namespaces": [NAMESPACE]},
        "planner": {
            "name": case.arm.value,
            "parameters": {"measurements": case.targets + 1, "quiet": max(5.0, QUIET * pace)},
        },
        "triggers": {"rematchInterval": "1s", "evaluationInterval": "1s"},
        "decision": {"cooldown": "0s", "settle": "0s"},
        "metrics": {"metricsApi": {"interval": "2s"}},
        "latency": {"broker": str(broker), "namespaces": [NAMESPACE]},
        "execution": {
            "maxMovesInFlight": 2,
            "limits": {scope: {"per10Minutes": 10_000, "perDay": 10_000} for scope in scopes},
            "brake": {"movesWithoutEffect": 1000},
        },
    }
