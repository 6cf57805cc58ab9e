"""Days of a model with the real controller, and the usage history that it records."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from loadtests.simulation.controller import SimulatedController
from loadtests.tournament.cluster import FluidCluster
from loadtests.tournament.drawing import draw
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
_PATIENT = Limits(flush_seconds=3600.0, call_seconds=300.0)


@dataclass(frozen=True, slots=True)
class RecordedRun:
    moves: int
    unhappy: float
    """Pod-minutes in which a pod failed more than a tenth of its probes, counted as a replay counts them."""
    cluster: ClusterView
    now: float


async def record_run(settings: Settings, seed: int, database: Path, *, usage: bool) -> RecordedRun:
    """The store gets the moves, and with `usage` the usage of every minute, too."""
    instance = draw(read(SCENARIO), seed)
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
