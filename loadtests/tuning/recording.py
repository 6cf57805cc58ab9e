"""Days of a model with the real controller, and the usage history that it records."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import numpy as np

from loadtests.simulation.controller import SimulatedController
from loadtests.tournament.cluster import FluidCluster
from loadtests.tournament.drawing import draw
from loadtests.tournament.instance import Instance, LoadPlan
from loadtests.tournament.run import start
from loadtests.tournament.scenario import read
from loadtests.tournament.watched import WatchedModel
from reactor.background.usage_recording import UsageRecording
from reactor.cluster.view import ClusterView
from reactor.replay.recorded import STEP
from reactor.replay.replaying import UNHAPPY
from reactor.settings.model import Settings
from storage.limits import Limits
from storage.store import Store

SCENARIO = Path(__file__).parent / "scenario.yaml"
MINUTE = 60.0
_NEXT_DAY, _NEXT_CHANCE = 1_000, 1_000_000
_PATIENT = Limits(flush_seconds=3600.0, call_seconds=300.0)


@dataclass(frozen=True, slots=True)
class RecordedRun:
    moves: int
    unhappy: float
    """Pod-minutes in which a pod failed more than a tenth of its probes, counted as a replay counts them."""
    cluster: ClusterView
    now: float


def days_of(seed: int, days: int, chance: int) -> Instance:
    """The cluster of the seed; its apps follow other series every day. `chance`: when probes are sent, and with that
    which of them fail, with the same load."""
    scenario = read(SCENARIO)
    first = draw(scenario, seed)
    loads = [first.load, *(draw(scenario, seed + _NEXT_DAY * day).load for day in range(1, days))]
    load = LoadPlan(
        np.concatenate([each.starts + day * scenario.seconds for day, each in enumerate(loads)]),
        np.concatenate([each.factors for each in loads]),
    )
    longer = msgspec.structs.replace(scenario, seconds=days * scenario.seconds)
    return replace(first, scenario=longer, load=load, seed=seed + _NEXT_CHANCE * chance)


async def play(settings: Settings, instance: Instance) -> RecordedRun:
    """Nothing is kept of it."""
    with tempfile.TemporaryDirectory() as folder:
        return await record_run(settings, instance, Path(folder) / "rematch.db", usage=False)


async def record_run(settings: Settings, instance: Instance, database: Path, *, usage: bool) -> RecordedRun:
    """The store gets the moves, and with `usage` the usage of every minute, too."""
    cluster = start(instance, binds=False)
    async with await Store.open(database, _PATIENT) as store:
        window, watched = settings.metrics.metrics_api.interval, WatchedModel(cluster)
        controller = SimulatedController(watched, settings, store, window, skip_quiet=True, skip_measuring=not usage)
        recording = UsageRecording(controller.state, store, lambda: settings, cluster.clock)
        every, next_record = MINUTE if usage else STEP, 0.0
        counted = _UnhappyMinutes(cluster)
        while cluster.clock.time < instance.seconds:
            if cluster.clock.time >= next_record:
                next_record += every
            cluster.advance(min(next_record, instance.seconds))
            await controller.step_if_due()
            if cluster.clock.time >= next_record:
                counted.count()
                if usage:
                    await recording.record()
        await recording.roll_up()
        await store.flush()
        return RecordedRun(len(cluster.moves), counted.total, controller.state.cluster(), cluster.clock.now())


class _UnhappyMinutes:
    """By pod, in steps of five minutes."""

    def __init__(self, cluster: FluidCluster) -> None:
        self._cluster = cluster
        self._before: dict[str, tuple[float, float]] = {}
        self.total = 0.0

    def count(self) -> None:
        """At the end of a step; else it does nothing."""
        cluster = self._cluster
        if round(cluster.clock.time) % STEP:
            return
        slots, now = cluster.slots, {}
        for pod in cluster.pods.values():
            if pod.app.pinned:
                continue
            now[pod.uid] = float(slots.successes[pod.slot]), float(slots.failures[pod.slot])
            good, bad = (
                new - old for new, old in zip(now[pod.uid], self._before.get(pod.uid, (0.0, 0.0)), strict=True)
            )
            self.total += (bad > UNHAPPY * (good + bad)) * STEP / MINUTE
        self._before = now
