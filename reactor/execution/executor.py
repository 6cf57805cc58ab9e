"""Carries plans out: the only keeper of active moves, and the only caller of the strategies."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial

from matching.plan import Plan, PlannedMove
from matching.problem import Strategy
from reactor.cluster.records import Pod
from reactor.cluster.view import ClusterView
from reactor.cluster.writes import ClusterWriter, gather_limited
from reactor.decision.eligibility import Eligibility
from reactor.execution.choose_starts import choose_starts
from reactor.execution.move_states import ended, planned, siblings
from reactor.execution.strategies import MoveStrategy, strategies
from reactor.settings.model import Settings
from reactor.state.moves import ActiveMoves, Move, MoveState, dumping
from reactor.state.snapshot import Snapshot


class Executor:
    def __init__(self, writer: ClusterWriter, binding_backoffs: Callable[[], Mapping[str, float]] = dict) -> None:
        self._strategies = strategies(writer)
        self._binding_backoffs = binding_backoffs
        self._starting: set[str] = set()
        """By id: moves whose first call has no answer yet. Their room is taken."""
        self._moves: dict[str, Move] = {}
        self._pods: dict[str, Pod] = {}
        self._siblings: dict[str, frozenset[str]] = {}
        self._last_end = float("-inf")

    @property
    def busy(self) -> bool:
        return bool(self._moves)

    def drop_all(self) -> None:
        """This process does not lead any more: the moves are another one's now."""
        for kept in (self._moves, self._pods, self._siblings):
            kept.clear()

    def active_moves(self) -> ActiveMoves:
        return ActiveMoves(tuple(self._moves.values()), dict(self._pods), self._binding_backoffs(), self._last_end)

    def moves_in(self, view: ClusterView, settings: Settings) -> ActiveMoves:
        """The moves as this view shows them, for the binder, which does not wait for a cycle. Changes nothing."""
        seen = tuple(after for _, after in self._followed(view, view.at, settings) if after.active)
        return replace(self.active_moves(), moves=seen)

    def adopt(self, plan: Plan, plan_id: str, snapshot: Snapshot) -> list[Move]:
        """Take over the plan's moves of running pods; `start` starts them when they are possible. Dumped pods go
        first: the others may need the room."""
        adopted = []
        for move in (*map(dumping, plan.dumped), *plan.moves):
            pod = snapshot.cluster.pods.get(move.uid)
            if move.source is None or pod is None:
                continue
            reason = self._strategy(move).reason
            adopted.append(planned(plan_id, move, pod, snapshot.cluster, reason))
            self._pods[adopted[-1].id] = pod
        self._moves.update({move.id: move for move in adopted})
        return adopted

    def follow(self, view: ClusterView, now: float, settings: Settings) -> list[Move]:
        """Update every move from what the cluster shows; returns the moves that changed their state."""
        changed = []
        for move, after in list(self._followed(view, now, settings)):
            self._update(after)
            if after.state is not move.state:
                changed.append(after)
        return changed

    def _followed(self, view: ClusterView, now: float, settings: Settings) -> Iterator[tuple[Move, Move]]:
        """Each move as it was and as the view shows it. A move whose eviction is not answered yet counts as evicted:
        its replacement may be there before the answer."""
        taken = {move.replacement for move in self._moves.values() if move.replacement is not None}
        for move in self._moves.values():
            excluded = taken | self._siblings.get(move.id, frozenset())
            evicting = move.id in self._starting and not move.dumps
            known = replace(move, state=MoveState.EVICTED) if evicting else move
            after = self._strategy(move).follow(known, view, now, settings.execution, excluded)
            if after.replacement is not None:
                taken.add(after.replacement)
            yield move, after

    async def stop(self, now: float, reason: str) -> list[Move]:
        """Give up what has not started; moves in flight are still followed. Returns the moves that were given up."""
        moves = list(self._moves.values())
        undone = [await self._strategy(move).undo(move, now, reason) for move in moves]
        return [self._update(after) for before, after in zip(moves, undone, strict=True) if after is not before]

    async def start(self, eligibility: Eligibility, changed: Callable[[Move], None]) -> None:
        """Start the planned moves that are possible now. `changed` gets each move that changes its state, at once.

        The cycle has stored the planned moves before (`Recorder.store_planned_moves`).
        """
        snapshot = eligibility.snapshot
        starts = choose_starts(self.active_moves(), eligibility)
        self._starting.update(move.id for move in starts.begin)
        for move, reason in starts.skip:
            changed(self._update(ended(move, MoveState.SKIPPED, snapshot.at, reason)))
        try:
            await gather_limited([partial(self._start, move, snapshot, changed) for move in starts.begin])
        finally:
            self._starting.difference_update(move.id for move in starts.begin)

    async def _start(self, move: Move, snapshot: Snapshot, changed: Callable[[Move], None]) -> None:
        """The result is kept at once: a failure of another call must not lose it."""
        pod = snapshot.cluster.pods[move.pod.uid]
        self._siblings[move.id] = siblings(pod, snapshot.cluster)
        changed(self._update(await self._strategy(move).start(move, pod, snapshot.at)))

    def _strategy(self, move: Move | PlannedMove) -> MoveStrategy:
        """A strategy that cannot be carried out yet falls back to an eviction."""
        return self._strategies.get(move.strategy, self._strategies[Strategy.EVICT])

    def _update(self, move: Move) -> Move:
        """Track an active move, forget an ended one."""
        if move.active:
            self._moves[move.id] = move
            return move
        for kept in (self._moves, self._pods, self._siblings):
            kept.pop(move.id, None)
        if move.evicted is not None and move.ended is not None:
            self._last_end = move.ended
        return move
