"""Carries plans out: the only keeper of active moves, and the only one who makes their calls.

Each call is announced in the journal first (`move_states.ANNOUNCING`), then made, then answered. The pure functions of
`move_states` say what comes next, so that a move that an earlier process began goes on like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import msgspec
import structlog

from matching.plan import Plan
from matching.problem import Strategy
from reactor.cluster.records import Pod
from reactor.cluster.surge_writes import Answer
from reactor.cluster.view import ClusterView
from reactor.cluster.writes import ClusterWriter, gather_limited
from reactor.decision.eligibility import Eligibility
from reactor.errors import ClusterError
from reactor.execution.choose_starts import choose_starts
from reactor.execution.journal import Journal, JournalError, MemoryJournal
from reactor.execution.look_times import LookTimes
from reactor.execution.move_calls import make_call
from reactor.execution.move_states import (
    Seen,
    after_answer,
    after_eviction,
    asks_for_new_endpoints,
    asks_for_old_endpoints,
    begun,
    ended,
    followed,
    hint_is_due_to_go,
    journal_entry,
    journaled_siblings,
    look,
    next_step,
    planned,
    reference,
    siblings,
)
from reactor.execution.steering import MOVE_LABEL, NoSteering, Steering
from reactor.execution.surge_checks import may_pin, scaled_object, why_no_surge
from reactor.execution.surge_marks import forgotten_surges
from reactor.settings.model import Settings, SteeringMode
from reactor.state.moves import ANNOUNCING, ActiveMoves, Call, Move, MoveState, dumping
from reactor.state.snapshot import Snapshot

log = structlog.get_logger(__name__)

LOOK_AGAIN = 1.0
"""Seconds after which a journal entry that could not be removed is tried again."""
_MAX_STEPS = 8
"""Of one move in one cycle."""
_SURGE_STATES = frozenset(
    {
        MoveState.SURGING,
        MoveState.SURGED,
        MoveState.RETIRING,
        MoveState.RETIRED,
        MoveState.UNDOING,
        MoveState.UNDONE,
    }
)
Announced = tuple[object, ...]


class Executor:
    def __init__(
        self,
        writer: ClusterWriter,
        binding_backoffs: Callable[[], Mapping[str, float]] = dict,
        journal: Journal | None = None,
        steering: Steering | None = None,
    ) -> None:
        self._writer = writer
        self._binding_backoffs = binding_backoffs
        self._journal = journal or MemoryJournal()
        self._steering = steering or NoSteering()
        self._starting: set[str] = set()
        """By id: moves that are about to start. Their room is taken."""
        self._moves: dict[str, Move] = {}
        self._pods: dict[str, Pod] = {}
        self._siblings: dict[str, frozenset[str]] = {}
        self._announced: dict[str, Announced] = {}
        self._repeated: set[str] = set()
        """Moves of which an earlier call may have been carried out although its answer is not known."""
        self._finished: dict[str, Move] = {}
        """Ended, and still in the journal."""
        self._forgotten: frozenset[str] = frozenset()
        """Surges without an entry that the last look has shown."""
        self._looks = LookTimes()
        self._last_end = float("-inf")

    @property
    def busy(self) -> bool:
        return bool(self._moves)

    @property
    def under_way(self) -> bool:
        """Without the late ones, which may never end."""
        return any(move.state is not MoveState.LATE for move in self._moves.values())

    def drop_all(self) -> None:
        """This process does not lead any more: the moves are another one's now."""
        for kept in (self._moves, self._pods, self._siblings, self._announced, self._repeated, self._finished):
            kept.clear()
        self._forgotten = frozenset()
        self._looks.clear()

    def due_at(self, now: float) -> float | None:
        """When a move is to be looked at again if no signal comes before."""
        times = [now + LOOK_AGAIN] if self._finished else []
        waiting = [move.id for move in self._moves.values() if move.state in _SURGE_STATES | ANNOUNCING]
        look = self._looks.next_at(waiting)
        return min([*times, look]) if look is not None else min(times, default=None)

    def active_moves(self) -> ActiveMoves:
        return ActiveMoves(tuple(self._moves.values()), dict(self._pods), self._binding_backoffs(), self._last_end)

    def moves_in(self, view: ClusterView, settings: Settings) -> ActiveMoves:
        """The moves as this view shows them, for the binder, which does not wait for a cycle. Changes nothing."""
        seen = tuple(after for _, after in self._followed(view, view.at, settings) if after.active)
        return replace(self.active_moves(), moves=seen)

    async def resume(self, moves: Sequence[Move]) -> None:
        """Take over what an earlier process or leader has journaled. Each move goes on where its entry says; its calls
        are repeated, which is harmless. Hints of other moves are removed.

        Nothing is awaited after the moves are known here: the caller lets this process act at once.
        """
        try:
            await self._steering.withdraw_others({*self._moves, *(move.id for move in moves)})
        except ClusterError as error:
            log.warning("hints of an earlier process could not be removed", error=str(error))
        for move in moves:
            taken = replace(move, acknowledged=())
            self._moves[move.id] = taken
            self._announced[move.id] = _announcement(taken)
            self._repeated.add(move.id)
            log.warning("move of an earlier process resumed", move=move.id, pod=move.pod.key, state=move.state)

    async def take_back_forgotten(self, view: ClusterView, now: float) -> None:
        """Surges whose journal entry somebody deleted before their leader ended, and what such a leader wrote too late.
        Two looks have to show them, as a watch may be behind. Raises JournalError."""
        known = self._moves.keys() | self._finished.keys()
        found = {move.id: move for move in forgotten_surges(view, self._journal.place, known, now)}
        again = [move for move_id, move in found.items() if move_id in self._forgotten]
        self._forgotten = frozenset(found)
        for move in again:
            await self._journal.write(journal_entry(move))
        if again:
            await self.resume(again)

    def adopt(self, plan: Plan, plan_id: str, snapshot: Snapshot) -> list[Move]:
        """Take over the plan's moves of running pods; `start` starts them when they are possible. Dumped pods go
        first: the others may need the room."""
        adopted = []
        for move in (*map(dumping, plan.dumped), *plan.moves):
            pod = snapshot.cluster.pods.get(move.uid)
            if move.source is None or pod is None:
                continue
            adopted.append(planned(plan_id, move, pod, snapshot))
            self._pods[adopted[-1].id] = pod
        self._moves.update({move.id: move for move in adopted})
        return adopted

    def follow(self, view: ClusterView, now: float, settings: Settings) -> list[Move]:
        """Update every move from what the watches show; returns the moves that changed their state."""
        changed = []
        for move, after in list(self._followed(view, now, settings)):
            self._remember_pod(move, view)
            self._update(after)
            if after.state is not move.state:
                changed.append(after)
        return changed

    def _followed(self, view: ClusterView, now: float, settings: Settings) -> Iterator[tuple[Move, Move]]:
        """Each move as it was and as the view shows it. A move that is about to start holds its room already."""
        taken = {move.replacement for move in self._moves.values() if move.replacement is not None}
        for move in self._moves.values():
            if move.state is MoveState.PLANNED:
                yield move, replace(move, state=MoveState.EVICTING) if move.id in self._starting else move
                continue
            excluded = self._excluded(move, view) | (taken - {move.replacement})
            after = followed(move, view, now, settings.execution, excluded)
            if after.replacement is not None:
                taken.add(after.replacement)
            yield move, after

    async def stop(self, now: float, reason: str) -> list[Move]:
        """Give up what has not started; moves in flight are still followed. Returns the moves that were given up."""
        waiting = [move for move in self._moves.values() if move.state is MoveState.PLANNED]
        return [self._update(ended(move, MoveState.SKIPPED, now, reason)) for move in waiting]

    async def proceed(
        self, view: ClusterView, now: float, settings: Settings, changed: Callable[[Move], None], *, stopping: bool
    ) -> None:
        """Make the calls that are due of the moves in flight. With `stopping` they are finished or taken back."""
        flying = [
            move
            for move in self._moves.values()
            if move.in_flight and self._looks.is_due(move.id, self._shown(move, view, settings, stopping), now)
        ]
        await gather_limited(
            [partial(self._proceed, move, view, now, settings, changed, stopping=stopping) for move in flying]
        )

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
            await gather_limited([partial(self._start, move, eligibility, changed) for move in starts.begin])
        finally:
            self._starting.difference_update(move.id for move in starts.begin)

    async def forget_finished(self) -> None:
        """Remove hints and journal entries of moves that have ended and are recorded. What fails is tried again in the
        next cycle, or by the next process."""
        for move in list(self._finished.values()):
            try:
                if move.hinted:
                    await self._steering.withdraw((move.id,))
                await self._journal.remove(move.id)
            except (ClusterError, JournalError) as error:
                log.warning("journal entry not removed", move=move.id, error=str(error))
            else:
                self._finished.pop(move.id, None)  # it may have been dropped meanwhile

    async def _start(self, move: Move, eligibility: Eligibility, changed: Callable[[Move], None]) -> None:
        """The result is kept at once: a failure of another call must not lose it."""
        snapshot, settings = eligibility.snapshot, eligibility.settings
        pod = snapshot.cluster.pods[move.pod.uid]
        first, hindrance = await self._begin(move, pod, eligibility)
        if first is None:
            changed(self._update(ended(move, MoveState.SKIPPED, snapshot.at, hindrance)))
            return
        self._siblings[move.id] = siblings(pod, snapshot.cluster)
        if not await self._announce(first):
            text = "the move could not be written to the journal"
            self._announced.setdefault(move.id, _announcement(first))
            changed(self._update(ended(move, MoveState.SKIPPED, snapshot.at, text)))
            return
        self._update(first)
        await self._proceed(first, snapshot.cluster, snapshot.at, settings, changed, stopping=False)

    async def _begin(self, move: Move, pod: Pod, eligibility: Eligibility) -> tuple[Move | None, str]:
        """The move in its first announcing state, or why it cannot start."""
        view, now = eligibility.snapshot.cluster, eligibility.snapshot.at
        move = replace(move, hinted=self._steers(pod, eligibility.settings))
        scaled = scaled_object(pod, view)
        if not move.strategy.surges or scaled is None:
            return begun(replace(move, strategy=Strategy.EVICT), view, now, None, None), ""
        try:
            owner = await self._writer.surges.read_owner(reference(scaled), pod.namespace)
        except ClusterError as error:
            return None, f"its owner could not be read: {error}"
        hindrance = why_no_surge(pod, view, owner, self._journal.place)
        return (None, hindrance) if hindrance else (begun(move, view, now, scaled, owner), "")

    async def _proceed(
        self,
        move: Move,
        view: ClusterView,
        now: float,
        settings: Settings,
        changed: Callable[[Move], None],
        *,
        stopping: bool,
    ) -> None:
        """Steps of one move until it waits, ends, or a call has to be repeated later."""
        before = move.state
        try:
            for _ in range(_MAX_STEPS):
                seen = await self._look(move, view, now, settings, stopping=stopping)
                move = await self._withdraw_hint(move, seen)
                step = next_step(move, seen)
                if step.call is None:
                    settled = step.move.state is move.state
                    move = self._update(step.move)
                    if settled or not move.in_flight:
                        break
                    continue
                if not await self._announce(step.move):
                    break
                self._update(step.move)
                after = await self._call(step.call, step.move, seen, now)
                waits = (after.state, after.acknowledged) == (step.move.state, step.move.acknowledged)
                move = self._update(after)
                if waits or not move.in_flight:
                    break
        except ClusterError as error:
            log.warning("a move could not be looked at", move=move.id, pod=move.pod.key, error=str(error))
        finally:
            known = self._moves.get(move.id, move)
            if known.state is not before:
                changed(known)
            if known.id in self._moves:
                shown = self._shown(known, view, settings, stopping)
                self._looks.looked(known.id, shown, now, refused=bool(known.refused))

    def _shown(self, move: Move, view: ClusterView, settings: Settings, stopping: bool) -> Hashable:
        """What of the move and of the watches says that there may be something to do."""
        seen = look(move, view, view.at, settings.execution, self._excluded(move, view))
        owner = view.workloads.get(move.owner.uid) if move.owner is not None else None
        versions = [each.resource_version for each in (seen.old, seen.new, owner) if each is not None]
        return (move.state, move.acknowledged, seen.wanted, tuple(versions), stopping)

    async def _look(self, move: Move, view: ClusterView, now: float, settings: Settings, *, stopping: bool) -> Seen:
        """What the watches show, and what has to be read for it."""
        seen = look(move, view, now, settings.execution, self._excluded(move, view))
        by_extender = settings.placement.steering is SteeringMode.EXTENDER
        failure = await self._creation_failure(move, seen)
        seen = replace(seen, stopping=stopping, failure=failure, by_extender=by_extender)
        if move.state not in _SURGE_STATES or move.scaled is None:
            return seen
        surges, old = self._writer.surges, seen.old
        more = 1 if move.strategy is Strategy.SCALE_SURGE else 0
        waiting = move.state in (MoveState.SURGED, MoveState.RETIRING)
        if waiting and seen.wanted is not None and seen.wanted != move.replicas + more:
            owner = await surges.read_owner(move.scaled, move.pod.namespace)
            seen = replace(seen, wanted=None if owner is None else owner.replicas)
        if seen.new is not None and asks_for_new_endpoints(move, seen):
            seen = replace(seen, new_served=await surges.services_of(seen.new))
        if old is not None and asks_for_old_endpoints(move, seen):
            served = await surges.services_of(_labelled(old, dict(move.detached)))
            seen = replace(seen, old_served=served)
        pinned = move.came_back and may_pin(old, view, settings, self._steering.status)
        return replace(seen, may_pin=pinned)

    async def _creation_failure(self, move: Move, seen: Seen) -> str:
        """Why the owner cannot create the replacement that is waited for; empty when it can. A StatefulSet does not
        say."""
        owner = move.owner
        waits = move.state is MoveState.SURGED or (move.state is MoveState.EVICTED and move.hinted)
        if not waits or seen.new is not None or owner is None or owner.kind != "ReplicaSet":
            return ""
        found = await self._writer.surges.read_owner(owner, move.pod.namespace)
        return "" if found is None else found.failure

    async def _withdraw_hint(self, move: Move, seen: Seen) -> Move:
        """A hint that cannot be removed now does not hold up the move."""
        if not hint_is_due_to_go(move, seen):
            return move
        unstamped = seen.new is not None and seen.new.labels.get(MOVE_LABEL) != move.id
        if unstamped and not seen.by_extender:
            self._steering.doubt()
        try:
            await self._steering.withdraw((move.id,))
        except ClusterError as error:
            log.warning("hint not removed", move=move.id, error=str(error))
            return move
        return self._update(replace(move, hinted=False))

    async def _announce(self, move: Move) -> bool:
        """Journal the state, and what is needed to take it back, before its first call. False: do not call."""
        announcement = _announcement(move)
        if move.state not in ANNOUNCING or self._announced.get(move.id) == announcement:
            return True
        try:
            await self._journal.write(journal_entry(move))
        except JournalError as error:
            log.warning("a move waits: it could not be journaled", move=move.id, state=move.state, error=str(error))
            return False
        self._announced[move.id] = announcement
        self._finished.pop(move.id, None)
        return True

    async def _call(self, call: Call, move: Move, seen: Seen, now: float) -> Move:
        repeated = move.id in self._repeated
        self._repeated.add(move.id)  # until it is answered
        if call is Call.EVICT:
            assert seen.old is not None
            evicted = await self._writer.evict(seen.old)
            if not repeated:
                self._repeated.discard(move.id)
            log.info("eviction", pod=move.pod.key, node=move.source, target=move.target, answer=evicted.outcome)
            return after_eviction(move, evicted, now, repeated=repeated)
        answer = await make_call(call, move, seen, self._writer, self._steering, self._journal.place)
        level = log.warning if answer.outcome is Answer.REFUSED else log.info
        level("call of a move", move=move.id, pod=move.pod.key, call=call, answer=answer.outcome, text=answer.message)
        if not repeated and (answer.outcome is not Answer.LATER or call is Call.HINT):
            self._repeated.discard(move.id)
        return after_answer(move, call, answer.outcome, answer.message, now, repeated=repeated)

    def _steers(self, pod: Pod, settings: Settings) -> bool:
        way = self._steering.status.way(pod, settings)
        return way is not None and way.hints

    def _excluded(self, move: Move, view: ClusterView) -> frozenset[str]:
        """Pods that are not the replacement: those that were there before, and replacements of other moves."""
        before = self._siblings.get(move.id)
        if before is None:
            before = journaled_siblings(move, view)
        others = (other for other in self._moves.values() if other.id != move.id)
        return before | {other.replacement for other in others if other.replacement is not None}

    def _remember_pod(self, move: Move, view: ClusterView) -> None:
        """Of a resumed move: the pod that moves, or one of its owner's that has the same requests."""
        if move.id in self._pods:
            return
        same = view.pods_of(move.owner.uid) if move.owner is not None else ()
        found = view.pods.get(move.pod.uid) or next(iter(same), None)
        if found is not None:
            self._pods[move.id] = found

    def _update(self, move: Move) -> Move:
        """Track an active move, forget an ended one. A move that is planned again leaves the journal, too."""
        if move.id not in self._moves:
            return move  # it was dropped meanwhile
        again = move.state is MoveState.PLANNED and move.id in self._announced
        if move.active and not again:
            self._moves[move.id] = move
            return move
        if self._announced.pop(move.id, None) is not None:
            self._finished[move.id] = self._moves[move.id]
        self._repeated.discard(move.id)
        self._siblings.pop(move.id, None)
        self._looks.forget(move.id)
        if again:
            self._moves[move.id] = move
            return move
        for kept in (self._moves, self._pods):
            kept.pop(move.id, None)
        if move.evicted is not None and move.ended is not None:
            self._last_end = move.ended
        return move


def _announcement(move: Move) -> Announced:
    """What of a move has to be in the journal before a call."""
    return (move.state, move.hard, move.old_cost, move.new_cost, move.detached)


def _labelled(pod: Pod, labels: Mapping[str, str]) -> Pod:
    return msgspec.structs.replace(pod, labels={**pod.labels, **labels}) if labels else pod
