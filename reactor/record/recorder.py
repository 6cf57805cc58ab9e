"""Records what a cycle did: as rows of the history, Events, metrics and log lines."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import structlog

from reactor.clock import rfc3339
from reactor.cluster.decoding.decoder import MalformedObject
from reactor.cluster.kinds import Kind
from reactor.decision.brakes import Brakes
from reactor.decision.decide import Decision
from reactor.decision.effects import Trial, Verdict
from reactor.decision.eligibility import Management
from reactor.decision.evidence import Evidence
from reactor.decision.shortage import Shortage
from reactor.errors import ClusterError, Expired
from reactor.execution.cycle_outcome import Outcome, Placement, Rematch
from reactor.record.events import (
    EventQueue,
    move_event,
    placement_events,
    pod_event,
    refused_event,
    suspected_node_event,
    unhappy_event,
    wait_event,
)
from reactor.record.failures import stage as stage_of_errors
from reactor.record.history import History, at_once
from reactor.record.landings import Landings
from reactor.record.metrics import Instruments
from reactor.record.move_checks import MoveChecks
from reactor.settings.model import Settings
from reactor.state.moves import ActiveMoves, Move, MoveState
from reactor.state.snapshot import MEASURED, Snapshot

log = structlog.get_logger(__name__)

REMEMBERED_OBJECTS = 1_000

Listener = Callable[[str, Snapshot, Outcome], None]
"""Called with cycle id, snapshot and outcome. The dashboard is one."""


class Recorder:
    def __init__(self, history: History, events: EventQueue, instruments: Instruments) -> None:
        self._history = history
        self._events = events
        self._instruments = instruments
        self._listeners: list[Listener] = []
        self.landings = Landings()
        self.move_checks = MoveChecks(history.move_check)
        self._full = False
        """Whether the Event about missing capacity was written."""

    def listen(self, listener: Listener) -> None:
        self._listeners.append(listener)

    @contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        began = time.perf_counter()
        with stage_of_errors(stage):
            yield
        self._instruments.stage_seconds.labels(stage).observe(time.perf_counter() - began)

    def record(self, cycle: str, snapshot: Snapshot, outcome: Outcome, settings: Settings) -> None:
        decision = outcome.decision
        self._instruments.cycles.labels(decision.trigger).inc()
        self._instruments.last_cycle.set(snapshot.at)
        self._decision(cycle, snapshot, outcome)
        self.record_moves(cycle, outcome.executed, snapshot)
        for move in outcome.active.refused:
            self._events.add(refused_event(move))
        self._gauges(snapshot, outcome.active, Management.of(settings))
        for listener in self._listeners:
            listener(cycle, snapshot, outcome)

    async def complete_plans(self, between: Callable[[], Awaitable[None]] = at_once) -> None:
        """The problems and the blocking pairs of the plans recorded since the last call. Not part of a cycle: the next
        one need not wait. `between` lets a cycle go first."""
        pairs = await self._history.complete_plans(between)
        if pairs is not None:
            self._instruments.blocking_pairs.set(pairs)

    def record_moves(self, cycle: str, moves: Sequence[Move], snapshot: Snapshot) -> None:
        """Moves that changed their state."""
        self._history.moves(cycle, moves, snapshot.at)
        for move in moves:
            self._move(move, snapshot)
            self.move_checks.expect(move, snapshot)

    async def store_planned_moves(self, cycle: str, moves: Sequence[Move], at: float) -> bool:
        """Store moves, and the plan they are from, before their first eviction, so that a process that is killed then
        does not lose them. False if the store does not take them."""
        self._history.moves(cycle, moves, at)
        stored = await self._history.flush()
        if not stored:
            log.error("nothing is evicted: the planned moves could not be stored")
        return stored

    def _decision(self, cycle: str, snapshot: Snapshot, outcome: Outcome) -> None:
        decision = outcome.decision
        for wait in self._history.waits(cycle, decision):
            log.info("wait", pod=wait.pod, reason=wait.reason, text=wait.text, **_product(wait.evidence))
            self._instruments.waits.labels(wait.reason).inc()
            self._events.add(wait_event(snapshot.cluster.pods[wait.uid], wait))
        self._history.unplanned(cycle, decision, planned=outcome.rematch is not None)
        for one in decision.unhappy:
            pod = snapshot.cluster.pods[one.uid]
            log.info(
                "unhappy",
                pod=one.pod,
                node=pod.node,
                happiness=round(one.happiness.probability, 3),
                cause=one.cause,
                **_product(one.evidence),
            )
            self._events.add(unhappy_event(pod, one, outcome.rematch))
            node = snapshot.cluster.nodes.get(pod.node or "")
            if node is not None and one.evidence is not None and one.evidence.node_suspected:
                log.warning("node suspected", node=node.name, pod=one.pod)
                self._instruments.suspected_nodes.labels(node.name).inc()
                self._events.add(suspected_node_event(node, one))

    def record_plan(self, cycle: str, decision: Decision, rematch: Rematch, settings: Settings) -> None:
        """As soon as it is made: its moves are stored before the first eviction, and the plan with them."""
        plan = rematch.plan
        self._history.plan(cycle, decision, rematch, settings.mode)
        self._history.problem(rematch, settings.planner)
        self._instruments.plans.labels(plan.planner).inc()
        self._instruments.planned_moves.set(len(plan.moves))
        log.info(
            "plan",
            plan=rematch.plan_id,
            planner=plan.planner,
            moves=len(plan.moves),
            feasible=plan.certificate.feasible,
            mode=settings.mode,
        )

    def record_placement(self, cycle: str, snapshot: Snapshot, placement: Placement) -> None:
        for one in placement.bound:
            self._instruments.bindings.labels(one.answer.outcome).inc()
        if placement.plan is not None or placement.reserved:
            self._history.placement(cycle, snapshot, placement)
        for event in placement_events(placement, snapshot):
            self._events.add(event)

    def _move(self, move: Move, snapshot: Snapshot) -> None:
        pod, source, target = move.pod.key, move.source, move.target
        log.info("move", pod=pod, source=source, target=target, state=move.state, outcome=move.outcome)
        if move.answer is not None and (move.state is MoveState.EVICTED or move.evicted is None or move.dumps):
            self._instruments.evictions.labels(move.answer).inc()
        if move.ended is not None:
            self._instruments.moves.labels(move.state).inc()
            landing = self.landings.observe(move, snapshot)
            if landing is not None:
                self._instruments.landings.labels(landing).inc()
            began = move.evicted if move.began is None else move.began
            if move.state is MoveState.DONE and began is not None and not move.dumps:
                self._instruments.move_seconds.observe(move.ended - began)
        event = move_event(move, snapshot)
        if event is not None:
            self._events.add(event)

    def check_moves(
        self, cycle: str, trials: Mapping[str, Trial], verdicts: Iterable[Verdict], snapshot: Snapshot
    ) -> None:
        """What moves were expected to do against what they did. `trials` are those before the verdicts."""
        for judged in self.move_checks.judge(trials, verdicts, snapshot):
            self._history.judged(cycle, judged, snapshot.at)

    def record_effects(self, verdicts: Iterable[Verdict], brakes: Brakes, now: float) -> None:
        """Whether moves helped, and the brakes that hold now. A new brake is logged."""
        instruments = self._instruments
        for verdict in verdicts:
            instruments.effects.labels("helped" if verdict.helped else "did not help").inc()
            log.info("effect of a move", workload=verdict.trial.workload, node=verdict.node, helped=verdict.helped)
        instruments.halted.set(1 if brakes.held else 0)
        instruments.brakes.clear()
        for brake in brakes.held:
            instruments.brakes.labels(brake.scope or "*", brake.cause).set(1)
            if brake.since == now:
                log.warning("brake", text=str(brake), until=rfc3339(brake.until))

    def record_shortage(self, shortage: Shortage | None, snapshot: Snapshot) -> None:
        """What no placement can give. The Event is written when it begins, on the first of the pods."""
        for resource in {*MEASURED, *(shortage.amounts if shortage is not None else ())}:
            lacking = 0.0 if shortage is None else shortage.amounts.get(resource, 0.0)
            self._instruments.missing_capacity.labels(resource).set(lacking)
        full = shortage is not None
        if shortage is not None and not self._full:
            log.warning("no placement helps", text=shortage.text)
            pods = (snapshot.cluster.pods.get(uid) for uid in shortage.pods)
            for pod in [pod for pod in pods if pod is not None][:1]:
                self._events.add(pod_event(pod, "ClusterFull", shortage.text[:1000], warning=True))
        self._full = full

    def _gauges(self, snapshot: Snapshot, active: ActiveMoves, management: Management) -> None:
        instruments = self._instruments
        instruments.moves_in_flight.set(len(active.in_flight))
        instruments.moves_refused.set(len(active.refused))
        instruments.unhappy.set(sum(management.covers(pod) for pod in snapshot.unhappy_pods()))
        instruments.happiness.clear()
        for uid, happiness in snapshot.happiness.items():
            pod = snapshot.cluster.pods[uid]
            instruments.happiness.labels(pod.namespace, pod.name).set(happiness.probability)


def _product(evidence: Evidence | None) -> dict[str, str]:
    """What a log line says of the evidence: the odds as a product."""
    return {} if evidence is None else {"odds": evidence.product}


class WatchRecorder:
    """Counts and logs the problems of the watches."""

    def __init__(self, instruments: Instruments) -> None:
        self._instruments = instruments
        self._logged: set[MalformedObject] = set()

    def malformed(self, malformed: MalformedObject) -> None:
        """Every list reads the object again. It is logged once."""
        self._instruments.malformed.labels(malformed.kind).inc()
        if malformed in self._logged:
            return
        if len(self._logged) >= REMEMBERED_OBJECTS:
            self._logged.clear()
        self._logged.add(malformed)
        log.warning("object left out: it cannot be read", kind=malformed.kind, problem=str(malformed))

    def trouble(self, kind: Kind, error: ClusterError, delay: float) -> None:
        self._instruments.watch_failures.labels(kind).inc()
        level = log.info if isinstance(error, Expired) else log.warning
        level("watch interrupted", kind=kind.value, error=str(error), again_in=round(delay, 2))
