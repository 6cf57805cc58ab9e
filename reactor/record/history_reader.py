"""Reads the history from the store, for the dashboard, the HTTP API and `rematch history` alike.

The entries are the public JSON of `/api/v1/decisions`: keys are camelCase and stay what they are.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from reactor.errors import format_errors
from reactor.record.unhappy_pods import UnhappyPod
from reactor.record.usage_reader import UsageDocument, read_usage
from reactor.state.moves import IN_FLIGHT, NO_NODE, MoveState
from storage.rows import DecisionRow, MoveRow, PlanRow, RevisionRow
from storage.store import Store

MOVES_SEARCHED = 2000
"""Moves in which the old name of a pod is looked up."""
MOST_REPLACED = 5
"""Pods, one after the other, whose history belongs to that of the pod that replaced them."""


class HistoryKind(StrEnum):
    REMATCH = "rematch"
    WAIT = "wait"
    PLACE = "place"
    MOVE = "move"
    SETTINGS = "settings"


class MoveProgress(StrEnum):
    """The state of a move as the dashboard shows it."""

    PLANNED = "planned"
    """Not started. In mode observe it stays so."""
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    SKIPPED = "skipped"


_PROGRESS: dict[str, MoveProgress] = {
    **dict.fromkeys(IN_FLIGHT, MoveProgress.RUNNING),
    MoveState.PLANNED: MoveProgress.PLANNED,
    MoveState.DONE: MoveProgress.DONE,
    MoveState.SKIPPED: MoveProgress.SKIPPED,
}


class HistoryMove(Struct, frozen=True, rename="camel"):
    """`source` is None for a pod that had no node. `outcome` says how the move ended."""

    pod: str
    source: str | None
    target: str
    state: MoveProgress
    reasons: tuple[str, ...] = ()
    outcome: str = ""


class HistoryEntry(Struct, frozen=True, rename="camel"):
    """`id` grows with time; pages are cut by it. `reason` is a code, `text` a sentence."""

    id: int
    at: float
    cycle: str
    kind: HistoryKind
    pod: str | None
    reason: str
    text: str
    moves: tuple[HistoryMove, ...] = ()
    plan: str | None = None
    """The plan that the entry is about, if it is about one."""
    unhappy: tuple[UnhappyPod, ...] = ()
    """Of a plan: the unhappy pods that it moves, and some that it does not, each with the evidence that decided."""

    def concerns(self, pod: str) -> bool:
        return pod in (self.pod, *(move.pod for move in self.moves), *(one.pod for one in self.unhappy))


class HistoryTotals(Struct, frozen=True):
    """Counts over the history that the store keeps."""

    rematches: int = 0
    """Plans of which at least one move was started or queued."""
    moves: int = 0
    """Moves that ended with a Ready replacement."""


class HistoryReader:
    """Sees a row when the store has written it, which takes half a second at most."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._totals = (-1, HistoryTotals())

    @property
    def version(self) -> int:
        """Grows when there may be more to read."""
        return self._store.version

    async def entries(
        self, limit: int, before: int | None = None, *, waits: bool = True, pod: str | None = None
    ) -> tuple[HistoryEntry, ...]:
        """Newest first, with ids below `before`. With `pod` (`namespace/name`) only what concerns this pod."""
        store = self._store
        rows: list[DecisionRow | PlanRow | MoveRow | RevisionRow] = [
            *await store.decisions(limit, before=before, pod=pod, waits=waits),
            *await store.plans(limit, before=before, pod=pod),
            *await store.moves(limit, before=before, pod=pod, begun=True),
            *(await store.revisions(limit, before=before) if pod is None else ()),
        ]
        found = history_entries(rows)
        return tuple(entry for entry in found if pod is None or entry.concerns(pod))[:limit]

    async def of_pod(self, uid: str, name: str, limit: int) -> tuple[HistoryEntry, ...]:
        """Newest first: what concerns a pod (`name` is `namespace/name`) and the pods that it replaced; of the unhappy
        pods only these."""
        names = {name: None}
        for _ in range(MOST_REPLACED):
            move = await self._store.move_to(uid)
            if move is None:
                break
            uid = move.pod_uid
            names[move.pod_key] = None
        found = {entry.id: entry for each in names for entry in await self.entries(limit, pod=each)}
        newest = [found[number] for number in sorted(found, reverse=True)][:limit]
        return tuple(replace(each, unhappy=tuple(one for one in each.unhappy if one.pod in names)) for each in newest)

    async def totals(self) -> HistoryTotals:
        version = self._store.version
        if self._totals[0] != version:
            rematches = await self._store.count_plans_with_moves()
            self._totals = (version, HistoryTotals(rematches, await self._store.count_moves(MoveState.DONE)))
        return self._totals[1]

    async def rematch_times(self, since: float) -> tuple[float, ...]:
        return tuple(await self._store.plan_times(since))

    async def replacements_of(self, name: str, namespace: str = "") -> dict[str, str]:
        """The UIDs of the pods that replaced a moved pod of this name, each with the moved pod's `namespace/name`;
        the last one first. Without a namespace: of any."""
        rows = [row for row in await self._store.moves(MOVES_SEARCHED) if row.replacement_uid]
        by_pod = {row.pod_uid: row for row in rows}
        found: dict[str, str] = {}
        for row in rows:
            space, _, pod = row.pod_key.partition("/")
            if pod == name and namespace in ("", space):
                chain: list[str] = []
                after: MoveRow | None = row
                while after is not None and after.replacement_uid not in chain:
                    chain.append(after.replacement_uid)
                    after = by_pod.get(after.replacement_uid)
                found |= dict.fromkeys(reversed(chain), row.pod_key)
        return found

    async def usage(self, name: str, namespace: str, now: float, seconds: float) -> UsageDocument | None:
        """Of what a user may mean by the name; None if it was never recorded."""
        return await read_usage(self._store, name, namespace, now, seconds)

    async def newest_plan(self) -> PlanRow | None:
        return next(iter(await self._store.plans(1)), None)


def history_entries(rows: Iterable[DecisionRow | PlanRow | MoveRow | RevisionRow]) -> list[HistoryEntry]:
    """Newest first."""
    return [_entry(row) for row in sorted(rows, key=lambda row: row.seq, reverse=True)]


def _entry(row: DecisionRow | PlanRow | MoveRow | RevisionRow) -> HistoryEntry:
    match row:
        case DecisionRow():
            return HistoryEntry(row.seq, row.at, row.cycle, HistoryKind(row.kind), row.pod_key, row.reason, row.text)
        case PlanRow():
            return _plan_entry(row)
        case MoveRow():
            kind, moves = HistoryKind.MOVE, (_move(row),)
            text = row.text or f"{row.state}: from {row.from_node} to {row.to_node}"
            return HistoryEntry(row.seq, row.at, row.cycle, kind, row.pod_key, row.state, text, moves, row.plan_id)
        case RevisionRow(accepted=True):
            text = f"settings from {row.source} are in force"
            return HistoryEntry(row.seq, row.at, "", HistoryKind.SETTINGS, None, "accepted", text)
        case RevisionRow():
            text = f"refused, the last good ones stay: {row.source}: {format_errors(row.errors)}"
            return HistoryEntry(row.seq, row.at, "", HistoryKind.SETTINGS, None, "refused", text)


def _plan_entry(row: PlanRow) -> HistoryEntry:
    plan = _decode_plan(row.document)
    return HistoryEntry(
        id=row.seq,
        at=row.at,
        cycle=row.cycle,
        kind=HistoryKind.REMATCH,
        pod=row.pod_key,
        reason=row.trigger,
        text=row.text,
        moves=_planned_moves(plan),
        plan=row.id,
        unhappy=plan.unhappy,
    )


def _move(row: MoveRow) -> HistoryMove:
    progress = _PROGRESS.get(row.state, MoveProgress.FAILED)
    return HistoryMove(row.pod_key, row.from_node, row.to_node, progress, row.reasons, row.text)


class _PlannedMove(Struct, rename={"source": "from", "target": "to"}):
    pod: str
    source: str | None = None
    target: str = NO_NODE
    """A running pod that a plan leaves without a node has no target."""
    reasons: tuple[str, ...] = ()
    reason: str = ""


class _PlanDocument(Struct):
    moves: tuple[_PlannedMove, ...] = ()
    unplaced: tuple[_PlannedMove, ...] = ()
    unhappy: tuple[UnhappyPod, ...] = ()


_decode_plan = msgspec.json.Decoder(_PlanDocument).decode


def _planned_moves(plan: _PlanDocument) -> tuple[HistoryMove, ...]:
    """Pods that lose their node come first, as in the execution."""
    dumped = (left for left in plan.unplaced if left.source is not None)
    return tuple(
        HistoryMove(move.pod, move.source, move.target, MoveProgress.PLANNED, move.reasons or (move.reason,))
        for move in (*dumped, *plan.moves)
    )
