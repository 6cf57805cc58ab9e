"""Writes the history: decisions, plans and moves become rows of the store.

`history_reader` reads them again. There is no other copy of the history.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Generic, TypeVar, cast

import msgspec

from matching.plan import BlockingPairs, Certificate, PlannedMove, Unplaced
from matching.serialization import plan_to_json
from reactor.decision.cooldowns import Cooldowns, Lineage
from reactor.decision.decide import Decision, Unhappy, Wait
from reactor.decision.limits import RecentMoves, StartedMove
from reactor.decision.wait_reasons import Reason
from reactor.execution.cycle_outcome import Placement, Rematch
from reactor.record.move_checks import JudgedMove
from reactor.record.stored_problem import problem_row_in_parts
from reactor.record.unhappy_pods import UNHAPPY, stored_pods
from reactor.settings.model import Mode, Planner
from reactor.state.moves import Move, MoveState
from reactor.state.snapshot import Snapshot
from storage.rows import DecisionKind, DecisionRow, MoveCheckRow, MoveRow, PlanRow, ProblemRow
from storage.store import Store

NOT_COUNTED = "the blocking pairs are not counted yet"
"""In the stored plan until they are, a few seconds after its first move."""
FLUSH_DEADLINE = 5.0
"""Seconds that a cycle waits for the disk."""
MOST_WAITING_PODS = 40_000
"""Of the problems that wait to be written, all together. One of 20,000 pods takes tens of MiB, and on a busy machine
plans come faster than they are written."""

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class _Unwritten(Generic[Row]):
    """What is still to be worked out about a plan. Keeps its whole problem alive."""

    rematch: Rematch
    row: Callable[[], Row]


async def at_once() -> None:
    """For whoever lets nothing go first."""


class History:
    """A decision about a pod that is the same as in the cycle before is not written again."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._last_wait: dict[str, Reason] = {}
        self._last_placement: dict[str, str] = {}
        self._unplanned: dict[str, str] = {}
        self._problems: list[_Unwritten[Iterator[ProblemRow | None]]] = []
        self._uncounted: list[_Unwritten[PlanRow]] = []
        self._flushing: asyncio.Task[bool] | None = None
        self._numbers = itertools.count(1)

    def waits(self, cycle: str, decision: Decision) -> list[Wait]:
        """Return the waits that are new."""
        new = [wait for wait in decision.waits if self._last_wait.get(wait.uid) is not wait.reason]
        self._last_wait = {wait.uid: wait.reason for wait in decision.waits}
        for wait in new:
            self._add("wait", cycle, decision.at, wait, wait.reason, wait.text)
        return new

    def unplanned(self, cycle: str, decision: Decision, *, planned: bool) -> None:
        """Unhappy pods of a cycle that made no plan: moves are under way, or the planner refused the problem."""
        unplanned = () if planned else decision.unhappy
        for one in unplanned:
            if self._unplanned.get(one.uid) != one.cause:
                text = f"no plan was made; happiness {one.happiness.probability:.2f}: {one.cause}"
                self._add("rematch", cycle, decision.at, one, decision.trigger, text)
        self._unplanned = {one.uid: one.cause for one in unplanned}

    def placement(self, cycle: str, snapshot: Snapshot, placement: Placement) -> None:
        """Pending pods: the node of each, or why there is none."""
        at, pods = snapshot.at, snapshot.cluster.pods
        bound = {one.pod.uid: "bound" if one.succeeded else "could not be bound" for one in placement.bound}
        texts: dict[str, str] = {}
        for move in placement.moves:
            texts[move.uid] = f"{bound.get(move.uid, 'would be bound')} to {move.target}"
            if self._last_placement.get(move.uid) != texts[move.uid]:
                self._add("place", cycle, at, move, "pending", f"{texts[move.uid]}: {'; '.join(move.reasons)}")
        for left in placement.plan.unplaced if placement.plan is not None else ():
            texts[left.uid] = left.reason
            if self._last_placement.get(left.uid) != left.reason:
                self._add("place", cycle, at, left, "unplaced", left.reason)
        self._last_placement = {uid: text for uid, text in self._last_placement.items() if uid in pods} | texts

    def plan(self, cycle: str, decision: Decision, rematch: Rematch, mode: Mode) -> None:
        """Before the first eviction, and so without the blocking pairs: `complete_plans` adds them."""
        feasible, violations = rematch.plan.certificate.feasible, rematch.plan.certificate.violations
        plan = replace(
            rematch.plan,
            certificate=Certificate(feasible, violations, BlockingPairs),
            notes=(*rematch.plan.notes, NOT_COUNTED),
        )
        seq = self._store.add_plan(_plan_row(cycle, decision, replace(rematch, plan=plan), mode))
        self._uncounted.append(_Unwritten(rematch, partial(_plan_row, cycle, decision, rematch, mode, seq)))
        _take_oldest(self._uncounted)

    def problem(self, rematch: Rematch, planner: Planner) -> None:
        """Kept until `complete_plans`: to compress the problem of a large cluster takes longer than its plan."""
        row = partial(problem_row_in_parts, rematch.plan_id, rematch.problem, rematch.plan, planner)
        self._problems.append(_Unwritten(rematch, row))
        for oldest in _take_oldest(self._problems):
            self._store.add_problem(ProblemRow(oldest.rematch.plan_id, None, "not stored: newer plans came too fast"))

    async def complete_plans(self, between: Callable[[], Awaitable[None]] = at_once) -> int | None:
        """Returns how many blocking pairs the newest plan leaves; None when there is no plan since the last call. Waits
        for `between` before each plan and each part of a problem: in a large cluster that takes as long as a
        reaction."""
        newest = None
        while self._uncounted:
            await between()
            row = await asyncio.to_thread(self._uncounted.pop(0).row)
            self._store.add_plan(row)
            newest = row.blocking_pairs
        while self._problems:
            self._store.add_problem(await _last(self._problems.pop(0).row(), between))
        return newest

    def moves(self, cycle: str, moves: Sequence[Move], at: float) -> None:
        for move in moves:
            self._store.add_move(_move_row(cycle, move, at))

    def judged(self, cycle: str, move: JudgedMove, at: float) -> None:
        self._add("move", cycle, at, move, "helped" if move.helped else "didNotHelp", str(move))

    def move_check(self, row: MoveCheckRow) -> None:
        self._store.add_move_checks(row)

    async def flush(self) -> bool:
        """True when the rows are in the database. If the disk does not take them, the store's health says so; if it
        does not answer, the attempt goes on in the background."""
        for _ in range(2):
            earlier = self._flushing
            if earlier is None:
                self._flushing = asyncio.create_task(self._store.flush_history(), name="flush of the history")
            running = cast("asyncio.Task[bool]", self._flushing)
            done, _unfinished = await asyncio.wait({running}, timeout=FLUSH_DEADLINE)
            if not done:
                return False
            self._flushing = None
            if earlier is None:
                return running.result()
        return False

    def _add(
        self,
        kind: DecisionKind,
        cycle: str,
        at: float,
        about: Wait | Unhappy | PlannedMove | Unplaced | JudgedMove,
        reason: str,
        text: str,
    ) -> None:
        until = about.until if isinstance(about, Wait) else None
        row_id = f"{cycle}-{next(self._numbers)}"
        self._store.add_decisions(DecisionRow(row_id, cycle, at, kind, about.uid, about.pod, reason, text, until))


async def _last(parts: Iterator[Row | None], between: Callable[[], Awaitable[None]]) -> Row:
    while True:
        await between()
        row = await asyncio.to_thread(next, parts)
        if row is not None:
            return row


def _take_oldest(waiting: list[_Unwritten[Row]]) -> list[_Unwritten[Row]]:
    """Those for which there is no room. The newest one always has room."""
    taken = []
    while len(waiting) > 1 and sum(len(each.rematch.problem.pods) for each in waiting) > MOST_WAITING_PODS:
        taken.append(waiting.pop(0))
    return taken


def _plan_row(cycle: str, decision: Decision, rematch: Rematch, mode: Mode, seq: int = 0) -> PlanRow:
    plan, unhappy = rematch.plan, decision.unhappy
    document = plan_to_json(plan, stays=False)
    if found := stored_pods(decision, {move.uid for move in plan.moves}):
        document[UNHAPPY] = found
    causes = [f"{one.pod} at {one.happiness.probability:.2f}: {one.cause}" for one in unhappy]
    return PlanRow(
        id=rematch.plan_id,
        cycle=cycle,
        at=decision.at,
        planner=plan.planner,
        mode=mode,
        trigger=decision.trigger,
        moves=len(plan.moves),
        blocking_pairs=plan.certificate.blocking_pairs,
        feasible=plan.certificate.feasible,
        document=msgspec.json.encode(document).decode(),
        pod_key=unhappy[0].pod if len(unhappy) == 1 else None,
        text="; ".join(causes) or f"triggered by {decision.trigger}",
        seq=seq,
    )


def _move_row(cycle: str, move: Move, at: float) -> MoveRow:
    return MoveRow(
        id=move.id,
        plan_id=move.plan_id,
        pod_uid=move.pod.uid,
        pod_key=move.pod.key,
        workload=move.workload,
        from_node=move.source,
        to_node=move.target,
        state=move.state,
        started=next((time for time in (move.began, move.evicted) if time is not None), at),
        evicted=move.evicted,
        bound=move.bound,
        ready=move.ended if move.state is MoveState.DONE else None,
        ended=move.ended,
        outcome=move.state if move.ended is not None else "",
        text=move.outcome,
        replacement_uid=move.replacement or "",
        cycle=cycle,
        at=at,
        reasons=move.reasons,
    )


def cooldowns_from(rows: Sequence[MoveRow]) -> Cooldowns:
    """What is known from the stored moves: who was moved lately, and how many moves there were."""
    return Cooldowns(lineage_from(rows), recent=_recent_from(rows))


def _recent_from(rows: Sequence[MoveRow]) -> RecentMoves:
    """The moves that were started, from the stored moves."""
    started = [row for row in rows if row.state not in (MoveState.PLANNED, MoveState.SKIPPED)]
    return RecentMoves().after(
        StartedMove(row.id, row.started, row.pod_key.partition("/")[0], row.workload) for row in started
    )


def lineage_from(rows: Sequence[MoveRow]) -> dict[str, Lineage]:
    """The lineage of replacements, from the stored moves. Generations count along the chain."""
    lineage: dict[str, Lineage] = {}
    for row in sorted(rows, key=lambda row: row.started):
        if row.outcome == MoveState.DONE and row.replacement_uid:
            before = lineage.get(row.pod_uid)
            lineage[row.replacement_uid] = Lineage.after(before, row.ended or row.started, row.pod_uid)
    return lineage
