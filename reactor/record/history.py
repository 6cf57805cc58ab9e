"""Cycles, plans, moves and settings revisions as rows of the store."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import msgspec

from matching.plan import Plan, PlannedMove, Unplaced
from matching.serialization import plan_to_json
from reactor.decision.decide import Decision, Wait
from reactor.decision.reasons import Reason
from reactor.settings.model import Mode
from reactor.state.moves import Lineage, Move, MoveState
from storage.rows import DecisionRow, MoveRow, PlanRow, RevisionRow
from storage.store import Store


class History:
    """Writes rows; a wait or placement that has not changed since the last cycle is not written again."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._last_wait: dict[str, Reason] = {}
        self._last_place: dict[str, str] = {}
        self._numbers = itertools.count(1)

    def decision(self, cycle: str, decision: Decision) -> list[Wait]:
        """Record it; the waits that are news are returned."""
        news = [wait for wait in decision.waits if self._last_wait.get(wait.uid) is not wait.reason]
        self._last_wait = {wait.uid: wait.reason for wait in decision.waits}
        self._store.add_decisions(*(self._wait_row(cycle, decision.at, wait) for wait in news))
        for one in decision.unhappy:
            text = f"happiness {one.mood.probability:.2f} below {one.mood.threshold.value:g}; {one.cause}"
            self._store.add_decisions(
                DecisionRow(self._id(cycle), cycle, decision.at, "rematch", one.uid, one.pod, decision.trigger, text)
            )
        return news

    def placed(self, cycle: str, at: float, plan: Plan, outcomes: Mapping[str, str]) -> None:
        """Pending pods: where each goes and what the binding said, or why it fits nowhere."""
        said = {move.uid: f"{move.target} {outcomes.get(move.uid, '')}" for move in plan.moves}
        said |= {left.uid: left.reason for left in plan.unplaced}
        for move in plan.moves:
            if self._last_place.get(move.uid) != said[move.uid]:
                text = f"to {move.target}: {outcomes.get(move.uid, 'not bound')}; {'; '.join(move.reasons)}"
                self._place_row(cycle, at, move, "pending", text)
        for left in plan.unplaced:
            if self._last_place.get(left.uid) != said[left.uid]:
                self._place_row(cycle, at, left, "unplaced", left.reason)
        self._last_place = said

    def plan(self, plan_id: str, cycle: str, at: float, plan: Plan, mode: Mode, trigger: str) -> None:
        document = msgspec.json.encode(plan_to_json(plan)).decode()
        certificate = plan.certificate
        self._store.add_plan(
            PlanRow(
                plan_id,
                cycle,
                at,
                plan.planner,
                mode,
                trigger,
                len(plan.moves),
                certificate.blocking_pairs,
                certificate.feasible,
                document,
            )
        )

    def moves(self, runs: Sequence[Move], at: float) -> None:
        for run in runs:
            self._store.add_move(_move_row(run, at))

    async def moves_written(self) -> None:
        """The moves recorded so far are in the database; if the disk does not take them now, its health says so."""
        await self._store.flush_moves()

    def revision(self, row: RevisionRow) -> None:
        self._store.add_revision(row)

    def _wait_row(self, cycle: str, at: float, wait: Wait) -> DecisionRow:
        return DecisionRow(self._id(cycle), cycle, at, "wait", wait.uid, wait.pod, wait.reason, wait.text, wait.until)

    def _place_row(self, cycle: str, at: float, entry: PlannedMove | Unplaced, reason: str, text: str) -> None:
        self._store.add_decisions(DecisionRow(self._id(cycle), cycle, at, "place", entry.uid, entry.pod, reason, text))

    def _id(self, cycle: str) -> str:
        return f"{cycle}-{next(self._numbers)}"


def _move_row(run: Move, at: float) -> MoveRow:
    return MoveRow(
        id=run.id,
        plan_id=run.plan_id,
        pod_uid=run.move.uid,
        pod_key=run.move.pod,
        workload=run.workload,
        from_node=run.move.source,
        to_node=run.move.target,
        state=run.state,
        started=run.evicted if run.evicted is not None else at,
        evicted=run.evicted,
        bound=run.bound,
        ready=run.ended if run.state is MoveState.DONE else None,
        ended=run.ended,
        outcome=run.state if run.ended is not None else "",
        text=run.outcome,
        replacement_uid=run.replacement or "",
    )


def lineage_from(rows: Sequence[MoveRow]) -> dict[str, Lineage]:
    """Who is here because we moved a predecessor, from the stored moves; generations count along the chain."""
    lineage: dict[str, Lineage] = {}
    for row in sorted(rows, key=lambda row: row.started):
        if row.outcome == MoveState.DONE and row.replacement_uid:
            before = lineage.get(row.pod_uid)
            lineage[row.replacement_uid] = Lineage.after(before, row.ended or row.started, row.pod_uid)
    return lineage
