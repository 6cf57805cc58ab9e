"""The wiring: every part is made and joined here, and nowhere else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import structlog

from reactor.background.active_settings import SettingsInForce, Surroundings
from reactor.background.heap import settle_heap
from reactor.background.kernel_compilation import Warming
from reactor.background.metrics_collection import Measuring
from reactor.background.store_maintenance import Housekeeping
from reactor.clock import Clock, SystemClock
from reactor.cluster.connection import KubernetesConnection, open_connection
from reactor.cluster.kinds import ObjectName
from reactor.cluster.reads import ClusterReader
from reactor.cluster.watch import ClusterWatch, Pace
from reactor.cluster.writes import ClusterWriter, EventWriter
from reactor.cycle import Stages
from reactor.execution.executor import Executor
from reactor.loop import Loop
from reactor.record.history import History, lineage_from
from reactor.record.metrics import Instruments
from reactor.record.notes import Notes
from reactor.record.recorder import Recorder
from reactor.record.watch_report import WatchReport
from reactor.settings.model import Mode
from reactor.settings.planner import make_planner
from reactor.settings.source import watch_file
from reactor.state.live_state import Hooks, State
from reactor.work_queue import WorkQueue
from storage.store import Store

log = structlog.get_logger(__name__)

MOVES_REMEMBERED = 2000


@dataclass(frozen=True, slots=True)
class Options:
    """How the process was started; everything else is in the settings."""

    store: Path
    kubeconfig: str | None = None
    context: str | None = None
    settings_file: Path | None = None
    config_map: ObjectName | None = None
    dry_run: bool = False
    mode: Mode | None = None
    """Overrides the settings: --dry-run and `plan --apply` know better."""
    own_process: bool = False
    """Nobody else lives in this process, so its memory may be arranged for the controller alone."""


@dataclass(frozen=True, slots=True)
class Controller:
    """All parts of a running controller; `loop.run` is the job itself, `background` what it stands on."""

    options: Options
    clock: Clock
    connection: KubernetesConnection
    settings: SettingsInForce
    store: Store
    state: State
    executor: Executor
    stages: Stages
    loop: Loop
    work_queue: WorkQueue
    watch: ClusterWatch
    measuring: Measuring
    instruments: Instruments
    notes: Notes
    housekeeping: Housekeeping
    warming: Warming

    async def background(self) -> None:
        """Watches, measurements, Events, settings and the store's upkeep, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.watch.run(), name="watch")
            tasks.create_task(self.measuring.run(), name="measure")
            tasks.create_task(self.notes.run(), name="events")
            tasks.create_task(self.housekeeping.run(), name="housekeeping")
            tasks.create_task(self.warming.run(), name="warming")
            if self.options.settings_file is not None:
                tasks.create_task(
                    watch_file(self.options.settings_file, self.settings.source, self.clock), name="settings"
                )

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.background(), name="background")
            tasks.create_task(self._decide(), name="loop")

    async def _decide(self) -> None:
        await self.state.until_synced()
        await self.warming.look()
        if self.options.own_process:
            settle_heap()
        await self.loop.run()


@asynccontextmanager
async def open_controller(options: Options, clock: Clock | None = None) -> AsyncIterator[Controller]:
    """Opened in the order in which things need each other, closed in the reverse one."""
    clock = clock or SystemClock()
    async with AsyncExitStack() as stack:
        instruments = Instruments()
        store = await stack.enter_async_context(await Store.open(options.store))
        connection = await open_connection(options.kubeconfig, options.context)
        stack.push_async_callback(connection.close)
        yield await _join(options, clock, instruments, store, connection)


async def _join(
    options: Options, clock: Clock, instruments: Instruments, store: Store, connection: KubernetesConnection
) -> Controller:
    history = History(store)
    notes = Notes(None if options.dry_run else EventWriter(connection, clock), clock, instruments.events_lost.inc)
    work_queue = WorkQueue(clock)
    around = Surroundings(history, notes, instruments, work_queue)
    settings = SettingsInForce(options.settings_file, options.mode, clock, around)
    reader = ClusterReader(connection, options.config_map)
    executor = Executor(ClusterWriter(connection, clock), lineage_from(await store.moves(MOVES_REMEMBERED)))
    state = State(
        reader.kinds,
        clock,
        work_queue,
        settings.get,
        Hooks(lambda: executor.busy, settings.config_map_changed),
    )
    await _remember(store, state, clock)
    recorder = Recorder(history, notes, instruments)
    stages = Stages(state, make_planner, executor, recorder, settings.get)
    loop = Loop(stages, work_queue, clock, instruments)
    watch = ClusterWatch(reader, state.mirror, WatchReport(instruments), Pace(clock))
    return Controller(
        options=options,
        clock=clock,
        connection=connection,
        settings=settings,
        store=store,
        state=state,
        executor=executor,
        stages=stages,
        loop=loop,
        work_queue=work_queue,
        watch=watch,
        measuring=Measuring(state, reader, store, settings.get, clock, instruments),
        instruments=instruments,
        notes=notes,
        housekeeping=Housekeeping(state, store, settings.get, clock, instruments),
        warming=Warming(state, clock),
    )


async def _remember(store: Store, state: State, clock: Clock) -> None:
    abandoned = await store.abandon_open_moves(clock.now(), "the controller was restarted before the move ended")
    if abandoned:
        log.warning("moves of an earlier process recorded as abandoned", moves=abandoned)
    state.restore(await store.happiness())
