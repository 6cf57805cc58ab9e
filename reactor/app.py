"""The wiring: every part is made and connected here, and nowhere else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar

import structlog

from reactor.background.active_settings import ActiveSettings, RevisionReport
from reactor.background.calibrating import Calibrating
from reactor.background.event_policy_check import EventPolicyCheck
from reactor.background.forecasting import ForecastUpdates
from reactor.background.latency_listening import LatencyListening
from reactor.background.leading import Leading
from reactor.background.load_sampling import LoadSampling
from reactor.background.metrics_collection import MetricsCollector
from reactor.background.next_problem import NextProblem
from reactor.background.probe_counting import ProbeCounting
from reactor.background.requests import Requests
from reactor.background.start_up import KernelCompilation, freeze_heap
from reactor.background.steering_check import SteeringCheck
from reactor.background.store_maintenance import StoreMaintenance
from reactor.background.usage_backfill import UsageBackfill
from reactor.background.usage_recording import UsageRecording
from reactor.binding import BindingParts, PlacementPlanner
from reactor.binding_loop import BindingLoop
from reactor.clock import Clock, SystemClock
from reactor.cluster.api import Connection
from reactor.cluster.connection import KubernetesConnection, open_connection, own_namespace
from reactor.cluster.extender_sign import ExtenderSign
from reactor.cluster.fence import FencedConnection
from reactor.cluster.hints import HintWriter
from reactor.cluster.kinds import CLUSTER_KINDS, Kind, ObjectName
from reactor.cluster.reads import ClusterReader
from reactor.cluster.records import ConfigMap
from reactor.cluster.requests import RequestObjects
from reactor.cluster.steering_policy import SteeringPolicy
from reactor.cluster.watch import ClusterWatch, WatchTiming
from reactor.cluster.writes import ClusterWriter, EventWriter
from reactor.cycle import CycleParts
from reactor.decision.cooldowns import Cooldowns, DecisionMemory
from reactor.errors import ClusterError
from reactor.execution.acting import Acting
from reactor.execution.binder import Binder
from reactor.execution.cluster_journal import ClusterJournal
from reactor.execution.executor import Executor
from reactor.execution.journal import Journal, JournalContents, MemoryJournal
from reactor.execution.leader import LeaderElection, LeaseTiming, NeverLeader, new_identity
from reactor.execution.state_documents import StateDocuments
from reactor.execution.steering import HintSteering, NoSteering, Steering
from reactor.execution.unschedulable import UnschedulablePods
from reactor.loop import Loop
from reactor.planning.planning_thread import PlanningThread
from reactor.record.events import EventQueue, WritesEvents
from reactor.record.failures import Failures
from reactor.record.history import History, cooldowns_from
from reactor.record.metrics import Instruments
from reactor.record.recorder import Recorder, WatchRecorder
from reactor.settings.model import Mode, Settings
from reactor.settings.planner import make_planner
from reactor.settings.source import watch_file
from reactor.signals.mqtt import BrokerAccess
from reactor.signals.prometheus import PrometheusAccess, PrometheusSource
from reactor.state.live_state import State
from reactor.work_queue import WorkQueue
from storage import StorageError
from storage.lock import locked
from storage.place import Place
from storage.store import Store

log = structlog.get_logger(__name__)
T = TypeVar("T")

MOVES_READ = 2000
_SYNC_POLL = 0.05


@dataclass(frozen=True, slots=True)
class Options:
    """How the process was started; everything else is in the settings."""

    store: Place
    kubeconfig: str | None = None
    context: str | None = None
    settings_file: Path | None = None
    config_map: ObjectName | None = None
    dry_run: bool = False
    mode: Mode | None = None
    """Overrides the settings, for --dry-run and `plan --apply`."""
    history: Place | None = None
    """Read happiness and past moves from this store instead, and leave it as it is."""
    share_store: bool = False
    """Use the store even if another process holds its lock."""
    models: Path | None = None
    """Where trained models are, less the end of their names. Default: beside the file of the store."""
    prometheus: PrometheusAccess = field(default_factory=PrometheusAccess)
    broker: BrokerAccess = field(default_factory=BrokerAccess)
    planner_function: str = ""
    """`package.module:function` of the planner `function`."""
    namespace: str = ""
    """Where journal, Lease and requests are. Default: the ConfigMap's, else the pod's own, else `rematch`."""
    lease: LeaseTiming = field(default_factory=LeaseTiming)
    own_process: bool = False
    """The controller is alone in this process, so it may configure the garbage collector."""


@dataclass(frozen=True, slots=True)
class Borders:
    """What the controller touches outside of itself: tests and simulations bring their own."""

    clock: Clock
    writer: ClusterWriter
    store: Store
    settings: Callable[[], Settings]
    event_writer: WritesEvents | None = None
    """None writes no Events."""
    kinds: Iterable[Kind] = CLUSTER_KINDS
    """Nothing is decided before each of these was listed."""
    config_map_changed: Callable[[ConfigMap | None], None] = lambda _config_map: None
    remembered: Cooldowns = field(default_factory=Cooldowns)
    hints: HintWriter | None = None
    """None: no pod of another scheduler can be steered."""
    journal: Journal = field(default_factory=MemoryJournal)
    acting: Acting | None = None
    """None acts always: for simulations and tests."""


@dataclass(frozen=True, slots=True)
class Controller:
    """The parts of a controller. Signals go into `state`; the two loops do the work."""

    clock: Clock
    store: Store
    state: State
    memory: DecisionMemory
    executor: Executor
    steering: Steering
    recorder: Recorder
    parts: CycleParts
    loop: Loop
    binding_parts: BindingParts
    binding_loop: BindingLoop
    failures: Failures
    work_queue: WorkQueue
    instruments: Instruments
    events: EventQueue
    journal: Journal
    acting: Acting

    def wake(self) -> None:
        """What this process may do has changed."""
        self.work_queue.add("acting")
        self.binding_loop.wake()


def wire(borders: Borders) -> Controller:
    """Connects the parts of a controller, for production, tests and simulations."""
    clock, acting = borders.clock, borders.acting or Acting.always(borders.clock)

    def settings() -> Settings:
        return acting.limited(borders.settings())

    instruments = Instruments()
    instruments.watch_acting(acting, borders.settings)
    failures = Failures(clock, instruments)
    events = EventQueue(borders.event_writer, clock, instruments.events_lost.inc, lambda: acting.leadership.may_bind)
    work_queue = WorkQueue(clock)
    binding_queue = WorkQueue(clock)
    binder = Binder(borders.writer, clock)
    state = State(
        borders.kinds,
        clock,
        work_queue,
        settings,
        lambda: executor.busy,
        borders.config_map_changed,
        lambda: steering.status,
        binding_queue.add,
    )
    steering: Steering = NoSteering()
    if borders.hints is not None:
        steering = HintSteering(borders.hints, state.hostname_of, lambda: settings().mode)
    executor = Executor(borders.writer, lambda: binder.backoffs, borders.journal, steering)
    memory = DecisionMemory(borders.remembered)
    recorder = Recorder(History(borders.store), events, instruments)
    instruments.watch_forecasts(state, settings)
    instruments.watch_power(state, settings)
    instruments.watch_latency(state.latency)
    instruments.watch_calibration(state.calibration, recorder.move_checks.summary)
    parts = CycleParts(state, memory, make_planner, executor, recorder, settings, PlanningThread("planner"))
    unschedulable = UnschedulablePods(borders.writer, clock)
    placing = PlacementPlanner(make_planner)
    binding_parts = BindingParts(state, executor, binder, placing, unschedulable, recorder, settings)
    return Controller(
        clock=clock,
        store=borders.store,
        state=state,
        memory=memory,
        executor=executor,
        steering=steering,
        recorder=recorder,
        parts=parts,
        loop=Loop(parts, work_queue, clock, failures),
        binding_parts=binding_parts,
        binding_loop=BindingLoop(binding_parts, binding_queue, clock, failures),
        failures=failures,
        work_queue=work_queue,
        instruments=instruments,
        events=events,
        journal=borders.journal,
        acting=acting,
    )


@dataclass(frozen=True, slots=True)
class LiveController:
    """A controller on a live cluster, with the background tasks that feed it."""

    options: Options
    controller: Controller
    connection: KubernetesConnection
    settings: ActiveSettings
    watch: ClusterWatch
    metrics: MetricsCollector
    recording: UsageRecording
    backfill: UsageBackfill
    maintenance: StoreMaintenance
    calibrating: Calibrating
    forecasting: ForecastUpdates
    compilation: KernelCompilation
    steering_check: SteeringCheck | None
    election: LeaderElection | None
    """None never leads: a dry run."""
    leading: Leading
    event_policy_check: EventPolicyCheck
    latency: LatencyListening
    also: list[tuple[str, Callable[[], Awaitable[None]]]] = field(default_factory=list)
    """Further tasks, by name, that run beside."""

    async def connect(self) -> None:
        """Watches, metrics, Events and settings, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            self._keep_running(tasks, "watch", self.watch.run)
            self._keep_running(tasks, "metrics", self.metrics.run)
            self._keep_running(tasks, "events", self.controller.events.run)
            if self.options.settings_file is not None:
                file = partial(watch_file, self.options.settings_file, self.settings.source, self.controller.clock)
                self._keep_running(tasks, "settings", file)

    async def run(self) -> None:
        """Decides until cancelled. As the leader it acts, else it watches and records."""
        await self.leading.restore_settings()
        self._report_settings()
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self.connect(), name="connection")
                self._keep_running(tasks, "leader election", self.lead)
                self._keep_running(tasks, "store maintenance", self.maintenance.run)
                self._keep_running(tasks, "usage history", self.recording.run)
                self._keep_running(tasks, "backfill of the usage history", self.backfill.run)
                self._keep_running(tasks, "calibration", self.calibrating.run)
                self._keep_running(tasks, "forecasts", self.forecasting.run)
                self._keep_running(tasks, "kernel compilation", self.compilation.run)
                self._keep_running(tasks, "loop of the cycles", self._decide)
                self._keep_running(tasks, "binding loop", self.controller.binding_loop.run)
                if self.steering_check is not None:
                    self._keep_running(tasks, "steering check", self.steering_check.run)
                self._keep_running(tasks, "event policy check", self.event_policy_check.run)
                self._keep_running(tasks, "latency meters", self.latency.run)
                for name, work in self.also:
                    self._keep_running(tasks, name, work)
        finally:
            await self.step_down()

    @property
    def namespace(self) -> str:
        """Of journal, Lease and requests."""
        return own_namespace(self.options.config_map, self.options.namespace)

    async def until_synced(self, deadline: float) -> None:
        """Raises ClusterError when not everything is listed within so many seconds, or may not be listed."""
        try:
            async with asyncio.timeout(deadline):
                while not self.controller.state.synced:
                    self._refuse_denied()
                    await self.controller.clock.sleep(_SYNC_POLL)
        except TimeoutError as error:
            broken = [f"{state.kind.value}: {state.last_error}" for state in self.watch.states if state.last_error]
            first = f"; {broken[0]}" if broken else ""
            raise ClusterError(f"not every kind could be listed within {deadline:g} s{first}") from error

    def _refuse_denied(self) -> None:
        for state in self.watch.states:
            if state.denied:
                hint = "; --settings FILE plans without it" if state.kind is Kind.CONFIG_MAPS else ""
                raise ClusterError(f"{state.last_error}{hint}")

    async def lead(self) -> None:
        """Whenever this process holds the Lease, until cancelled."""
        if self.election is not None:
            await self.election.run(self.leading.run)

    async def step_down(self) -> None:
        """Nothing is written after this; another process may lead at once."""
        if self.election is not None:
            await self.election.release()

    def _keep_running(self, tasks: asyncio.TaskGroup, name: str, work: Callable[[], Awaitable[None]]) -> None:
        """The process does not end because of an error in one of its tasks."""
        tasks.create_task(self.controller.failures.keep_running(name, work), name=name)

    def _report_settings(self) -> None:
        parts = self.controller
        self.settings.report_to(RevisionReport(parts.store, parts.events, parts.instruments, parts.work_queue))

    async def _decide(self) -> None:
        await self.controller.state.until_synced()
        if self.options.own_process:
            freeze_heap()
        await self.controller.loop.run()


async def _take_over(controller: Controller, contents: JournalContents) -> None:
    """Moves in the journal go on. Others in the store had not started, or their end was not stored."""
    text = "the controller was restarted before the move ended"
    resumed = {move.id for move in contents.moves}
    try:
        abandoned = await controller.store.abandon_open_moves(controller.clock.now(), text, resumed)
    except StorageError as error:
        log.warning("moves of an earlier process stay open in the history", error=str(error))
        abandoned = 0
    if abandoned:
        log.warning("moves of an earlier process recorded as abandoned", moves=abandoned)
    await controller.executor.resume(contents.moves)


async def _open_store(options: Options, stack: AsyncExitStack) -> Store:
    """A controller starts and binds pods also with a store that it cannot use, and evicts nothing."""
    try:
        alone = stack.enter_context(locked(options.store))
    except StorageError:
        if not options.own_process:
            raise
        alone = True  # nobody can lock it, and `health` says why
    if not alone and not options.share_store:
        raise StorageError(
            f"{options.store} is used by another Rematch process; stop it, or give this one another --store"
        )
    store = await Store.open(
        options.store,
        patient=options.own_process,
        replace_damaged=options.own_process and alone,
        shared=options.share_store and not alone,
    )
    if store.damaged is not None:
        log.error("the store was damaged; it is set aside, and a new one begins", set_aside=str(store.damaged))
    return store


def _models(options: Options) -> Path:
    if options.models is not None:
        return options.models
    return options.store if isinstance(options.store, Path) else Path(".rematch", "rematch")


async def _readable(rows: Awaitable[list[T]]) -> list[T]:
    """No rows while the store cannot be read: a start does not depend on it."""
    try:
        return await rows
    except StorageError as error:
        log.warning("the history is not read", error=str(error))
        return []


async def _restore_calibration(controller: Controller, history: Store, calibrating: Calibrating) -> None:
    state = controller.state
    state.calibration.restore(await _readable(history.load_bins()), controller.clock.now())
    state.startup_times.restore(await _readable(history.startups()))
    controller.recorder.move_checks.restore(await _readable(history.move_checks()))
    await calibrating.fit()


async def _take_strays(controller: Controller, journal: ClusterJournal) -> None:
    executor = controller.executor
    moves = await journal.take_strays()
    if moves:
        await executor.resume(moves)
    if controller.state.synced:
        view = controller.state.cluster()
        await executor.take_back_forgotten(view, view.at)
    if executor.busy:
        controller.wake()


@asynccontextmanager
async def open_controller(options: Options, clock: Clock | None = None) -> AsyncIterator[LiveController]:
    """Opened in the order of their dependencies, closed in the reverse order. Writes no row before it runs."""
    clock = clock or SystemClock()
    async with AsyncExitStack() as stack:
        settings = ActiveSettings(options.settings_file, options.mode, clock, options.planner_function)
        store = await stack.enter_async_context(await _open_store(options, stack))
        history = store
        if options.history is not None:
            history = await stack.enter_async_context(await Store.open(options.history, read_only=True))
        connection = await open_connection(options.kubeconfig, options.context)
        stack.push_async_callback(connection.close)
        reader = ClusterReader(connection, options.config_map)
        namespace = own_namespace(options.config_map, options.namespace)
        identity = new_identity()
        election = None if options.dry_run else LeaderElection(connection, namespace, clock, identity, options.lease)
        fenced = FencedConnection(connection, election.seconds_left if election is not None else lambda _request: 0.0)
        journal = ClusterJournal(fenced, namespace, identity)
        acting = Acting(clock, election or NeverLeader())
        borders = Borders(
            clock=clock,
            writer=ClusterWriter(fenced, clock),
            store=store,
            settings=settings.get,
            event_writer=None if options.dry_run else EventWriter(fenced, clock),
            kinds=reader.kinds,
            config_map_changed=settings.config_map_changed,
            remembered=cooldowns_from(await _readable(history.moves(MOVES_READ))),
            hints=HintWriter(fenced, clock),
            journal=journal,
            acting=acting,
        )
        controller = wire(borders)
        leading = _leading(controller, settings, journal, from_config_map=options.config_map is not None)
        requests = Requests(
            objects=RequestObjects(fenced, namespace),
            identity=identity,
            leading=leading,
            acting=acting,
            parts=controller.parts,
            settings=settings.get,
            exclusive=controller.loop.exclusive,
            clock=clock,
        )
        leading.also.append(requests.run)
        steering_check = _steering_check(controller, borders, fenced, namespace)
        state, instruments = controller.state, controller.instruments
        state.restore(await _readable(history.happiness()))
        calibrating = Calibrating(state, store, clock)
        await _restore_calibration(controller, history, calibrating)
        recording = UsageRecording(state, store, settings.get, clock)
        await recording.restore(history)
        counting, sampling = ProbeCounting(state, settings.get, clock), LoadSampling(state, settings.get, clock)
        following = NextProblem(controller.parts)
        watch = ClusterWatch(reader, state.mirror, WatchRecorder(instruments), WatchTiming(clock))
        instruments.read_when_scraped(
            watches=lambda: watch.states,
            refused=lambda: settings.source.refused is not None,
            pending=lambda: len(state.pods_waiting_for(settings.get().scheduler_name)),
            late=lambda: len(controller.binding_loop.late()),
        )
        yield LiveController(
            options=options,
            controller=controller,
            connection=connection,
            settings=settings,
            watch=watch,
            metrics=MetricsCollector(
                state,
                reader,
                settings.get,
                clock,
                instruments,
                options.prometheus,
                (counting.count, sampling.sample, following.refresh),
            ),
            recording=recording,
            backfill=UsageBackfill(state, store, PrometheusSource(options.prometheus), recording, settings.get, clock),
            maintenance=StoreMaintenance(
                state, store, controller.recorder, settings.get, clock, instruments, settings.announce
            ),
            calibrating=calibrating,
            forecasting=ForecastUpdates(state, store, settings.get, clock, models=_models(options)),
            compilation=KernelCompilation(
                state, clock, settings.get, freeze_heap if options.own_process else lambda: None
            ),
            steering_check=steering_check,
            election=election,
            leading=leading,
            event_policy_check=EventPolicyCheck(connection, state, clock),
            latency=LatencyListening(state, settings.get, clock, instruments.latency_messages, options.broker),
        )


def _leading(
    controller: Controller, settings: ActiveSettings, journal: ClusterJournal, *, from_config_map: bool
) -> Leading:
    clock = controller.clock
    return Leading(
        journal=journal,
        acting=controller.acting,
        documents=StateDocuments(journal, clock),
        memory=controller.memory,
        settings=settings,
        saved_state=journal.read_state if from_config_map else None,
        clock=clock,
        wake=controller.wake,
        take_over=partial(_take_over, controller),
        drop=controller.executor.drop_all,
        strays=partial(_take_strays, controller, journal),
    )


def _steering_check(
    controller: Controller, borders: Borders, connection: Connection, namespace: str
) -> SteeringCheck | None:
    if borders.hints is None or not isinstance(controller.steering, HintSteering):
        return None
    return SteeringCheck(
        SteeringPolicy(connection, borders.hints, borders.clock, namespace),
        ExtenderSign(connection, namespace, borders.clock),
        controller.steering,
        lambda: [move.id for move in controller.executor.active_moves().moves],
        controller.parts.settings,
        borders.clock,
        controller.instruments,
    )
