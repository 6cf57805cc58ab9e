"""The reactor in simulated time: the controller itself on a virtual clock, fed by a model of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from loadtests.simulation.clock import VirtualClock
from reactor.app import Borders, wire
from reactor.cluster.api import Connection
from reactor.cluster.kinds import CLUSTER_KINDS, Kind
from reactor.cluster.records import NodeUsageSample, PodUsageSample, Record
from reactor.cluster.writes import ClusterWriter
from reactor.execution.cycle_outcome import Outcome
from reactor.settings.model import DecisionTrigger, Settings
from reactor.signals.measurements import MetricsSource, ProbeCounter, ThrottleSample
from reactor.state.live_state import State
from storage.store import Store

QUIET_SECONDS = 30.0
"""Without a signal, before cycles are left out."""


@dataclass(frozen=True, slots=True)
class Measured:
    """Usage and probe counters, as Prometheus would have scraped them."""

    pods: Sequence[PodUsageSample]
    nodes: Sequence[NodeUsageSample]
    counters: Sequence[ProbeCounter]
    throttled: Sequence[ThrottleSample] = ()


class RecordSink(Protocol):
    """The controller's mirror of the cluster."""

    def changed(self, kind: Kind, record: Record) -> None: ...

    def removed(self, kind: Kind, key: str) -> None: ...


class ModelledCluster(Protocol):
    """What the controller sees of a model, and how it writes to it."""

    @property
    def clock(self) -> VirtualClock: ...

    @property
    def connection(self) -> Connection: ...

    def records(self) -> Mapping[Kind, Sequence[Record]]:
        """Everything that is there now."""
        ...

    def report_to(self, sink: RecordSink) -> None:
        """Every change from now on."""
        ...

    def measure(self) -> Measured:
        """Averages since the last call."""
        ...


class SimulatedController:
    """Feeds the changes of the cluster to the controller. Call `step_if_due` after each step of the clock."""

    def __init__(
        self,
        cluster: ModelledCluster,
        settings: Settings,
        store: Store,
        window: float,
        *,
        skip_quiet: bool = False,
        skip_measuring: bool = False,
        source: MetricsSource = MetricsSource.PROMETHEUS,
    ) -> None:
        """`window`: seconds between two measurements, over which usage is averaged. `skip_quiet`: leave out the cycles
        in which nothing can have changed; `skip_measuring`: and the measurements, for runs over days. `source`: who
        measures the pods; metrics-server averages over what a pod has lived of the window, Prometheus over all of
        it."""
        self._skip_quiet, self._skip_measuring = skip_quiet, skip_measuring
        self._resting, self._unmeasured, self._signalled = False, False, 0.0
        self._settled = False
        self._settings = settings
        self._cluster, self._clock, self._window = cluster, cluster.clock, window
        self._source, self._cpu_window = source, window if source is MetricsSource.PROMETHEUS else 0.0
        writer = ClusterWriter(cluster.connection, self._clock)
        self._controller = wire(Borders(self._clock, writer, store, lambda: self._settings))
        self._state, self._loop = self._controller.state, self._controller.loop
        self._due = 0.0
        self._woken = False
        self._listener: Callable[[Outcome], None] = lambda _: None
        self._sync()
        self._clock.after(window, self._measure)

    def listen(self, listener: Callable[[Outcome], None]) -> None:
        """`listener` gets the outcome of every cycle."""
        self._listener = listener

    @property
    def state(self) -> State:
        return self._state

    @property
    def busy(self) -> bool:
        """Moves are under way."""
        return self._controller.executor.busy

    def changed(self, kind: Kind, record: Record) -> None:
        self._state.mirror.upsert(kind, record)
        self._wake()

    def removed(self, kind: Kind, key: str) -> None:
        self._state.mirror.remove(kind, key)
        self._wake()

    @property
    def may_be_due(self) -> bool:
        """Without it a step does nothing."""
        return self._woken or (not self._resting and self._clock.time >= self._due)

    async def step_if_due(self) -> None:
        """On a signal, or when the controller's loop is due."""
        keys: dict[str, float] = {}
        if self._woken:
            self._woken = False
            keys = await self._controller.work_queue.next(0.0)
        if not keys and not self.may_be_due:
            return
        if not keys and self._quiet():
            self._resting = True
            return
        await self._controller.binding_loop.step()
        outcome = await self._loop.step(keys)
        self._due = self._clock.time + self._loop.due_at - self._clock.now()
        self._clock.at(self._due, lambda: None)
        if outcome is not None:
            self._settled = not outcome.decision.unhappy and not outcome.decision.waits
            self._listener(outcome)

    def _wake(self) -> None:
        self._woken, self._signalled = True, self._clock.time
        self._resting = False
        if self._unmeasured:
            self._unmeasured = False
            self._measure()

    def _quiet(self) -> bool:
        """Nobody is unhappy, nothing moves, and time alone makes nobody unhappy: only a signal can."""
        long = self._clock.time - self._signalled >= QUIET_SECONDS
        still = self._settled and long and not self.busy and not self._state.pending
        foresees = self._settings.decision.trigger is DecisionTrigger.PREDICTIVE
        return self._skip_quiet and still and self._settings.triggers.rematch_interval == 0 and not foresees

    def _sync(self) -> None:
        mirror, found = self._state.mirror, self._cluster.records()
        for kind in CLUSTER_KINDS:
            mirror.replaced(kind, list(found.get(kind, ())))
        self._cluster.report_to(self)
        self._woken = True
        assert self._state.synced

    def _measure(self) -> None:
        if self._resting and self._skip_measuring:
            self._unmeasured = True
            return
        self._clock.after(self._window, self._measure)
        now, measured = self._clock.now(), self._cluster.measure()
        self._state.usage.record_pods(measured.pods, self._source, now, cpu_window=self._cpu_window)
        self._state.usage.record_nodes(measured.nodes, MetricsSource.PROMETHEUS, now)
        self._state.usage.record_throttling(measured.throttled, now)
        self._state.observe_counters(measured.counters)
        self._state.usage_changed()
        self._woken = True
