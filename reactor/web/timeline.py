"""What the dashboard remembers: recent decisions and samples, bounded, in memory."""

from __future__ import annotations

import itertools
from collections import deque
from dataclasses import dataclass

from reactor.decision.decide import Decision
from reactor.execution.outcome import Outcome, Placement, Rematch
from reactor.state.moves import Move, MoveState, dumping
from reactor.state.snapshot import Snapshot
from reactor.web.view import DecisionKind, DecisionView, MovePhase, MoveView, NodeSeries, Series

DECISIONS_KEPT = 1000
SAMPLES_KEPT = 1800

_PHASES = {
    MoveState.PLANNED: MovePhase.PLANNED,
    MoveState.EVICTED: MovePhase.RUNNING,
    MoveState.BOUND: MovePhase.RUNNING,
    MoveState.LATE: MovePhase.RUNNING,
    MoveState.DONE: MovePhase.DONE,
    MoveState.SKIPPED: MovePhase.SKIPPED,
}


@dataclass(frozen=True, slots=True)
class Sample:
    """One instant of the charts; shares of capacity, None where not measured."""

    at: float
    availability: float | None
    latency_p95: float | None
    happiness_min: float | None
    """Of the pods of ours that run; None where there are none. Not every pod's is kept: 1,800 samples are."""
    happiness_mean: float | None
    cpu: dict[str, float | None]
    memory: dict[str, float | None]


class Timeline:
    def __init__(self) -> None:
        self._ids = itertools.count(1)
        self._decisions: deque[DecisionView] = deque(maxlen=DECISIONS_KEPT)
        self._samples: deque[Sample] = deque(maxlen=SAMPLES_KEPT)
        self._waits: dict[str, str] = {}
        self._places: dict[str, str] = {}
        self._moving: dict[str, int] = {}
        self._rematches: deque[float] = deque(maxlen=DECISIONS_KEPT)
        self.rematches = 0
        self.moves = 0
        self.changes = 0
        """Grows with every sample and decision."""

    def sample(self, sample: Sample) -> None:
        self._samples.append(sample)
        self.changes += 1

    def outcome(self, cycle: str, snapshot: Snapshot, outcome: Outcome) -> None:
        """A listener of the recorder."""
        at = snapshot.at
        if outcome.placement is not None:
            self._placement(cycle, at, outcome.placement)
        self._new_waits(cycle, outcome.decision)
        if outcome.rematch is not None:
            self.rematches += any(move.state is MoveState.PLANNED for move in outcome.moves)
            self._rematch(cycle, at, outcome.decision, outcome.rematch)
        for move in outcome.moves:
            if move.state is not MoveState.PLANNED:
                self._move(cycle, at, move)

    def settings(self, at: float, reason: str, text: str) -> None:
        self._add(DecisionView(next(self._ids), at, "", DecisionKind.SETTINGS, None, reason, text))

    def decisions(self, limit: int, before: int | None, *, waits: bool) -> tuple[DecisionView, ...]:
        chosen = (
            view
            for view in reversed(self._decisions)
            if (before is None or view.id < before) and (waits or view.kind is not DecisionKind.WAIT)
        )
        return tuple(itertools.islice(chosen, limit))

    def about(self, pod: str, limit: int = 50) -> tuple[DecisionView, ...]:
        """Newest first: what concerned one pod, also as part of somebody else's plan."""
        chosen = (
            view for view in reversed(self._decisions) if view.pod == pod or any(move.pod == pod for move in view.moves)
        )
        return tuple(itertools.islice(chosen, limit))

    def series(self) -> Series:
        samples = list(self._samples)
        names = sorted({name for sample in samples for name in sample.cpu})
        nodes = tuple(
            NodeSeries(
                name,
                tuple(sample.cpu.get(name) for sample in samples),
                tuple(sample.memory.get(name) for sample in samples),
            )
            for name in names
        )
        return Series(
            times=tuple(sample.at for sample in samples),
            availability=tuple(sample.availability for sample in samples),
            latency_p95=tuple(sample.latency_p95 for sample in samples),
            happiness_min=tuple(sample.happiness_min for sample in samples),
            happiness_mean=tuple(sample.happiness_mean for sample in samples),
            nodes=nodes,
            node_count=len(names),
            rematches=tuple(self._rematches),
        )

    def _new_waits(self, cycle: str, decision: Decision) -> None:
        for wait in decision.waits:
            if self._waits.get(wait.uid) != wait.reason:
                self._add(
                    DecisionView(
                        next(self._ids), decision.at, cycle, DecisionKind.WAIT, wait.pod, wait.reason, wait.text
                    )
                )
        self._waits = {wait.uid: wait.reason for wait in decision.waits}

    def _rematch(self, cycle: str, at: float, decision: Decision, rematch: Rematch) -> None:
        self._rematches.append(at)
        moves = tuple(
            MoveView(move.pod, move.source, move.target, MovePhase.PLANNED, move.reasons)
            for move in (*map(dumping, rematch.plan.dumped), *rematch.plan.moves)
        )
        causes = [f"{one.pod} at {one.happiness.probability:.2f}: {one.cause}" for one in decision.unhappy]
        text = "; ".join(causes) or f"asked for by {decision.trigger}"
        pod = decision.unhappy[0].pod if len(decision.unhappy) == 1 else None
        self._add(DecisionView(next(self._ids), at, cycle, DecisionKind.REMATCH, pod, decision.trigger, text, moves))

    def _placement(self, cycle: str, at: float, placement: Placement) -> None:
        """What was said of a pending pod in the cycle before is not said again."""
        if placement.plan is None and not placement.reserved:
            return
        results = {one.pod.uid: "bound" if one.succeeded else "could not be bound" for one in placement.bound}
        said = {}
        for move in placement.moves:
            said[move.uid] = f"{results.get(move.uid, 'would be bound')} to {move.target}"
            if self._places.get(move.uid) != said[move.uid]:
                text = f"{said[move.uid]}: {'; '.join(move.reasons)}"
                self._add(DecisionView(next(self._ids), at, cycle, DecisionKind.PLACE, move.pod, "pending", text))
        self._places = said

    def _move(self, cycle: str, at: float, move: Move) -> None:
        """One entry per move: its latest stage takes the place of the ones before."""
        if move.state is MoveState.DONE:
            self.moves += 1
        before = self._moving.pop(move.id, None)
        if before is not None:
            self._decisions = deque((one for one in self._decisions if one.id != before), maxlen=DECISIONS_KEPT)
        state = _PHASES.get(move.state, MovePhase.FAILED)
        view = MoveView(move.pod.key, move.source, move.target, state, move.reasons, move.outcome)
        text = move.outcome or f"{move.state}: from {move.source} to {move.target}"
        self._add(DecisionView(next(self._ids), at, cycle, DecisionKind.MOVE, move.pod.key, move.state, text, (view,)))
        if move.active:
            self._moving[move.id] = self._decisions[-1].id

    def _add(self, view: DecisionView) -> None:
        self.changes += 1
        self._decisions.append(view)
