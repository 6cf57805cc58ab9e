"""Writes the history: decisions, plans, moves and settings revisions become rows of the store.

`history_reader` reads them again. There is no other copy of the history.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence

import msgspec

from matching.plan import PlannedMove, Unplaced
from matching.serialization import plan_to_json
from reactor.decision.cooldowns import Lineage
from reactor.decision.decide import Decision, Wait
from reactor.decision.reasons import Reason
from reactor.execution.outcome import Placement, Rematch
from reactor.record.stored_problem import problem_row
from reactor.settings.model import Mode, Planner
from reactor.state.moves import Move, MoveState
from storage.rows import DecisionRow, MoveRow, PlanRow, RevisionRow
from storage.store import Store


class History:
    """A decision about a pod that is the same as in the cycle before is not written again."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._last_wait: dict[str, Reason] = {}
        self._last_placement: dict[str, str] = {}
        self._unplanned: dict[str, str] = {}
        self._numbers = itertools.count(1)

    def waits(self, cycle: str, decision: Decision) -> list[Wait]:
        """Return the waits that are new."""
        new = [wait for wait in decision.waits if self._last_wait.get(wait.uid) is not wait.reason]
        self._last_wait = {wait.uid: wait.reason for wait in decision.waits}
        self._store.add_decisions(*(self._wait_row(cycle, decision.at, wait) for wait in new))
        return new

    def unplanned(self, cycle: str, decision: Decision, *, planned: bool) -> None:
        """Unhappy pods of a cycle that made no plan: moves are under way, or the planner refused the problem."""
        causes = {} if planned else {one.uid: one.cause for one in decision.unhappy}
        for one in decision.unhappy:
            if one.uid in causes and self._unplanned.get(one.uid) != one.cause:
                text = f"no plan was made; happiness {one.happiness.probability:.2f}: {one.cause}"
                self._store.add_decisions(
                    DecisionRow(
                        self._id(cycle), cycle, decision.at, "rematch", one.uid, one.pod, decision.trigger, text
                    )
                )
        self._unplanned = causes

    def placement(self, cycle: str, at: float, placement: Placement) -> None:
        """Pending pods: the node of each, or why there is none."""
        bound = {one.pod.uid: one.succeeded for one in placement.bound}
        unplaced = placement.plan.unplaced if placement.plan is not None else ()
        texts = {move.uid: f"{_BINDING[bound.get(move.uid)]} to {move.target}" for move in placement.moves}
        texts |= {left.uid: left.reason for left in unplaced}
        entries: list[PlannedMove | Unplaced] = [*placement.moves, *unplaced]
        for entry in entries:
            if self._last_placement.get(entry.uid) != texts[entry.uid]:
                self._store.add_decisions(self._placement_row(cycle, at, entry, texts[entry.uid]))
        self._last_placement = texts

    def plan(self, cycle: str, decision: Decision, rematch: Rematch, mode: Mode) -> None:
        plan, unhappy = rematch.plan, decision.unhappy
        causes = [f"{one.pod} at {one.happiness.probability:.2f}: {one.cause}" for one in unhappy]
        self._store.add_plan(
            PlanRow(
                id=rematch.plan_id,
                cycle=cycle,
                at=decision.at,
                planner=plan.planner,
                mode=mode,
                trigger=decision.trigger,
                moves=len(plan.moves),
                blocking_pairs=plan.certificate.blocking_pairs,
                feasible=plan.certificate.feasible,
                document=msgspec.json.encode(plan_to_json(plan, stays=False)).decode(),
                pod_key=unhappy[0].pod if len(unhappy) == 1 else None,
                text="; ".join(causes) or f"asked for by {decision.trigger}",
            )
        )

    async def problem(self, rematch: Rematch, planner: Planner) -> None:
        """After its plan, and in a thread: compressing the problem of a large cluster takes a while."""
        row = await asyncio.to_thread(problem_row, rematch.plan_id, rematch.problem, rematch.plan, planner)
        self._store.add_problem(row)

    def moves(self, cycle: str, moves: Sequence[Move], at: float) -> None:
        """`cycle` is empty for moves of which no cycle is recorded yet."""
        for move in moves:
            self._store.add_move(_move_row(cycle, move, at))

    async def flush(self) -> None:
        """Return when the rows are in the database. If the disk does not take them, the store's health says so."""
        await self._store.flush_history()

    def revision(self, row: RevisionRow) -> None:
        self._store.add_revision(row)

    def _wait_row(self, cycle: str, at: float, wait: Wait) -> DecisionRow:
        return DecisionRow(self._id(cycle), cycle, at, "wait", wait.uid, wait.pod, wait.reason, wait.text, wait.until)

    def _placement_row(self, cycle: str, at: float, entry: PlannedMove | Unplaced, text: str) -> DecisionRow:
        if isinstance(entry, PlannedMove):
            reason, text = "pending", f"{text}: {'; '.join(entry.reasons)}"
        else:
            reason = "unplaced"
        return DecisionRow(self._id(cycle), cycle, at, "place", entry.uid, entry.pod, reason, text)

    def _id(self, cycle: str) -> str:
        return f"{cycle}-{next(self._numbers)}"


_BINDING = {None: "would be bound", True: "bound", False: "could not be bound"}


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
        started=move.evicted if move.evicted is not None else at,
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


def lineage_from(rows: Sequence[MoveRow]) -> dict[str, Lineage]:
    """The lineage of replacements, from the stored moves. Generations count along the chain."""
    lineage: dict[str, Lineage] = {}
    for row in sorted(rows, key=lambda row: row.started):
        if row.outcome == MoveState.DONE and row.replacement_uid:
            before = lineage.get(row.pod_uid)
            lineage[row.replacement_uid] = Lineage.after(before, row.ended or row.started, row.pod_uid)
    return lineage
