"""One outcome per cycle comes in; rows, Events, metrics and log lines go out, in this one place."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

import structlog

from reactor.decision.decide import Wait
from reactor.decision.eligibility import Management
from reactor.execution.outcome import Outcome, Placement, Rematch
from reactor.record.announce import about_move, about_placement, about_unhappy, about_wait
from reactor.record.history import History
from reactor.record.metrics import Instruments
from reactor.record.notes import Notes
from reactor.settings.model import Settings
from reactor.state.moves import ActiveMoves, Move, MoveState
from reactor.state.snapshot import Snapshot

log = structlog.get_logger(__name__)

Listener = Callable[[str, Snapshot, Outcome], None]
"""(cycle id, snapshot, outcome): the dashboard is one."""


class Recorder:
    def __init__(self, history: History, notes: Notes, instruments: Instruments) -> None:
        self._history = history
        self._notes = notes
        self._instruments = instruments
        self._listeners: list[Listener] = []

    def listen(self, listener: Listener) -> None:
        self._listeners.append(listener)

    @contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        began = time.perf_counter()
        yield
        self._instruments.stage_seconds.labels(stage).observe(time.perf_counter() - began)

    def record(self, cycle: str, snapshot: Snapshot, outcome: Outcome, settings: Settings) -> None:
        decision = outcome.decision
        self._instruments.cycles.labels(decision.trigger).inc()
        if outcome.placement is not None:
            self._placement(cycle, snapshot, outcome.placement)
        self._decision(cycle, snapshot, outcome)
        if outcome.rematch is not None:
            self._rematch(cycle, snapshot, outcome.rematch, decision.trigger, settings)
        self.record_moves(outcome.executed, snapshot)
        self._gauges(snapshot, outcome.active, Management.of(settings))
        for listener in self._listeners:
            listener(cycle, snapshot, outcome)

    def record_moves(self, moves: Iterable[Move], snapshot: Snapshot) -> None:
        """Moves that changed their state."""
        for move in moves:
            self._move(move, snapshot)

    async def intend(self, moves: Sequence[Move], at: float) -> None:
        """In the store before the first eviction: a process killed right after it must not lose the move."""
        if moves:
            self._history.moves(moves, at)
            await self._history.moves_written()

    def _decision(self, cycle: str, snapshot: Snapshot, outcome: Outcome) -> None:
        decision = outcome.decision
        for wait in self._history.decision(cycle, decision):
            self._wait(wait, snapshot)
        for one in decision.unhappy:
            pod = snapshot.cluster.pods[one.uid]
            log.info(
                "unhappy", pod=one.pod, node=pod.node, happiness=round(one.happiness.probability, 3), cause=one.cause
            )
            self._notes.add(about_unhappy(pod, one, outcome.rematch))

    def _wait(self, wait: Wait, snapshot: Snapshot) -> None:
        log.info("wait", pod=wait.pod, reason=wait.reason, text=wait.text)
        self._instruments.waits.labels(wait.reason).inc()
        self._notes.add(about_wait(snapshot.cluster.pods[wait.uid], wait))

    def _rematch(self, cycle: str, snapshot: Snapshot, rematch: Rematch, trigger: str, settings: Settings) -> None:
        plan = rematch.plan
        self._history.plan(rematch.plan_id, cycle, snapshot.at, plan, settings.mode, trigger)
        self._instruments.plans.labels(plan.planner).inc()
        self._instruments.blocking_pairs.set(plan.certificate.blocking_pairs)
        self._instruments.planned_moves.set(len(plan.moves))
        log.info(
            "plan",
            plan=rematch.plan_id,
            planner=plan.planner,
            moves=len(plan.moves),
            feasible=plan.certificate.feasible,
            blocking_pairs=plan.certificate.blocking_pairs,
            mode=settings.mode,
        )

    def _placement(self, cycle: str, snapshot: Snapshot, placement: Placement) -> None:
        for one in placement.bound:
            self._instruments.bindings.labels(one.answer.outcome).inc()
        if placement.plan is not None or placement.reserved:
            self._history.placed(cycle, snapshot.at, placement)
        for note in about_placement(placement, snapshot):
            self._notes.add(note)

    def _move(self, move: Move, snapshot: Snapshot) -> None:
        self._history.moves([move], snapshot.at)
        log.info(
            "move",
            pod=move.pod.key,
            source=move.source,
            target=move.target,
            state=move.state,
            outcome=move.outcome,
        )
        if move.answer is not None and (move.state is MoveState.EVICTED or move.evicted is None or move.dumps):
            self._instruments.evictions.labels(move.answer).inc()
        if move.ended is not None:
            self._instruments.moves.labels(move.state).inc()
            if move.state is MoveState.DONE and move.evicted is not None and not move.dumps:
                self._instruments.move_seconds.observe(move.ended - move.evicted)
        note = about_move(move, snapshot)
        if note is not None:
            self._notes.add(note)

    def _gauges(self, snapshot: Snapshot, active: ActiveMoves, management: Management) -> None:
        instruments = self._instruments
        instruments.moves_in_flight.set(len(active.in_flight))
        instruments.halted.set(1 if active.halted else 0)
        instruments.unhappy.set(sum(management.covers(pod) for pod in snapshot.unhappy_pods()))
        instruments.happiness.clear()
        for uid, happiness in snapshot.happiness.items():
            pod = snapshot.cluster.pods[uid]
            instruments.happiness.labels(pod.namespace, pod.name).set(happiness.probability)
