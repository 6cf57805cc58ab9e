"""One run: the pods of a case, with broker, meter and controller until the placement is at rest, or left alone."""

from __future__ import annotations

import asyncio
import shutil
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from loadtests.demo.controller import RunningController
from loadtests.experiments.latency.design import (
    CHANGED_DELAY,
    CHANGED_RANK,
    CHANGING_TEST,
    SILENCE,
    Case,
    Trouble,
)
from loadtests.experiments.latency.lab import NAMESPACE, TARGET, Edge, EdgeLab
from loadtests.experiments.latency.observer import EVERY, Observer
from loadtests.experiments.latency.processes import LOOPBACK, TOPIC, controller, meter, store_of
from loadtests.experiments.latency.records import MoveSeen, RunRecord
from loadtests.kubelet.pod_runner import together
from loadtests.mosquitto import Mosquitto, running_mosquitto
from loadtests.tools.ports import free_ports
from reactor.clock import SystemClock
from reactor.signals.mqtt import Broker
from storage.rows import MoveRow
from storage.store import Store

_LONGEST = {1: 420.0, 2: 420.0, 3: 900.0}
"""Seconds that a run may take, by test, at full delays; with loss or silence half as much again."""
_LEAST = 60.0
_ALONE_SECONDS = 30.0
_ROUND_METRIC = "rematch_latency_round "
_MANY_MOVES = 10_000


async def play(lab: EdgeLab, case: Case, pace: float, folder: Path) -> RunRecord:
    _make_anew(folder)
    began = datetime.now(UTC).isoformat(timespec="seconds")
    async with lab.opened(case, pace) as edge:
        observer = Observer(edge, pace, SystemClock())
        course = _Course(edge, observer, pace)
        async with together(observer.send_requests(), observer.watch_pods()):
            if case.arm.moves:
                await _with_controller(course, folder)
            else:
                await asyncio.sleep(_ALONE_SECONDS * pace)
                course.finished = True
        moves = await _moves(folder, edge, observer.began) if case.arm.moves else []
        return RunRecord(
            arm=case.arm,
            test=case.test,
            targets=case.targets,
            trouble=case.trouble,
            seed=case.seed,
            pace=pace,
            workers=list(edge.names.values()),
            began=began,
            seconds=observer.now(),
            requests=observer.requests,
            measurements=observer.measurements,
            placements=observer.placements,
            moves=moves,
            changed_at=course.changed_at,
            silent=course.silent,
            problems=tuple(observer.problems),
            finished=course.finished,
        )


def _make_anew(folder: Path) -> None:
    """A run that was stopped may have left a store."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)


async def _with_controller(course: _Course, folder: Path) -> None:
    plane, case = course.edge.lab.plane, course.edge.case
    (port,) = free_ports(LOOPBACK, 1)
    broker = Broker(LOOPBACK, port, tls=False)
    async with AsyncExitStack() as stack:
        mosquitto = await stack.enter_async_context(running_mosquitto(folder, port))
        running = await stack.enter_async_context(controller(plane, case, broker, course.pace, folder))
        await stack.enter_async_context(meter(plane, broker, course.pace, folder))
        await stack.enter_async_context(together(course.observer.listen(broker, TOPIC)))
        await course.until_at_rest(running, mosquitto)


@dataclass(slots=True)
class _Course:
    """What happens in a run, one after the other."""

    edge: Edge
    observer: Observer
    pace: float
    changed_at: float | None = None
    silent: tuple[float, float] | None = None
    finished: bool = False

    async def until_at_rest(self, running: RunningController, mosquitto: Mosquitto) -> None:
        """Until the best placement is there and its round is over; in test 3 twice, with the change in between."""
        case = self.edge.case
        more = 1.0 if case.trouble is Trouble.NONE else 1.5
        silence = SILENCE * self.pace if case.trouble is Trouble.SILENCE else 0.0
        try:
            async with asyncio.timeout(max(_LEAST, _LONGEST[case.test] * more * self.pace) + silence):
                if silence:
                    await self._silence(silence, running, mosquitto)
                await self._until_over(case.best, running)
                if case.test == CHANGING_TEST:
                    self.edge.ways[CHANGED_RANK].delay = CHANGED_DELAY * self.pace
                    self.changed_at = self.observer.now()
                    await self._until_over(case.best_after_change, running)
        except TimeoutError:
            return
        self.finished = True

    async def _silence(self, seconds: float, running: RunningController, mosquitto: Mosquitto) -> None:
        """After the first move."""
        while len(self.observer.placements) < 2:
            await asyncio.sleep(EVERY)
        began = self.observer.now()
        mosquitto.pause()
        while self.observer.now() < began + seconds:
            await self.observer.note_problem(running)
            await asyncio.sleep(EVERY)
        mosquitto.resume()
        self.silent = (began, self.observer.now())

    async def _until_over(self, wanted: tuple[int, ...], running: RunningController) -> None:
        """The targets are there, and the round in which they got there is over."""
        while not self.observer.placements or self.observer.placements[-1].targets != wanted:
            await asyncio.sleep(EVERY)
        number = await _round(running)
        while await _round(running) <= number:
            await asyncio.sleep(EVERY)


async def _round(running: RunningController) -> int:
    lines = (await running.metrics()).splitlines()
    found = next(line for line in lines if line.startswith(_ROUND_METRIC))
    return int(float(found.removeprefix(_ROUND_METRIC)))


async def _moves(folder: Path, edge: Edge, began: float) -> list[MoveSeen]:
    """Of the controller's own record."""
    store = await Store.open(str(store_of(folder)), read_only=True)
    try:
        rows = await store.moves(_MANY_MOVES, begun=True)
    finally:
        await store.close()
    return [_move(row, row.ended, edge, began) for row in rows if row.ended is not None]


def _move(row: MoveRow, ended: float, edge: Edge, began: float) -> MoveSeen:
    return MoveSeen(
        plan=row.plan_id or "",
        role="target" if row.pod_key.startswith(f"{NAMESPACE}/{TARGET}-") else "probe",
        source=edge.ranks.get(row.from_node or "", 0),
        target=edge.ranks[row.to_node],
        started=round(row.started - began, 2),
        ended=round(ended - began, 2),
        outcome=row.outcome,
    )
