"""One pass of the binder: snapshot, place the pending pods, take the room, bind, record.

It runs beside the cycles and shares no waiting with them. Deciding on room and taking it happens in one step of the
event loop, here (`_claim`) and in `Executor.start`, so that both never use the same room.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

import structlog

from matching.plan import Plan, PlannedMove, Planner
from matching.problem import ProblemError
from reactor.cluster.records import Pod
from reactor.errors import PlannerError
from reactor.execution.binder import Binder, Bound
from reactor.execution.cycle_outcome import Placement
from reactor.execution.executor import Executor
from reactor.execution.unschedulable import UnschedulablePods
from reactor.planning.pending import ReservationCheck, check_reservations, fit_beside_nominated, pending_pods
from reactor.planning.planning_thread import PlanningThread
from reactor.planning.problem_builder import fits_now
from reactor.planning.problems import placement_problem
from reactor.record.logs import cycle_context
from reactor.record.recorder import Recorder
from reactor.settings.model import Mode, Settings
from reactor.settings.planner import PLACES_PENDING, placing_planner
from reactor.state.live_state import State
from reactor.state.snapshot import Snapshot

log = structlog.get_logger(__name__)

PLANNING_DEADLINE = 10.0
"""Seconds for one placement. After that it is tried again with half of the pods."""


class PlacementPlanner:
    """Places pending pods with a planner of ours, in a thread of its own: no other work can occupy it."""

    def __init__(self, make_planner: Callable[[str, Mapping[str, object]], Planner]) -> None:
        self._make_planner = make_planner
        self._thread = PlanningThread("binding")
        self._most: int | None = None
        """Pods that are placed at once; None is no limit."""
        self._configured = True
        """False after a failure of the configured planner: then the default one is used."""

    async def place(self, snapshot: Snapshot, checked: ReservationCheck, settings: Settings) -> Plan:
        """The oldest pods first if not all are placed at once. Raises PlannerError after the deadline."""
        pods = snapshot.cluster.pods
        oldest = sorted(checked.unreserved, key=lambda uid: (pods[uid].created, pods[uid].key))
        uids = checked.unreserved if self._most is None else oldest[: self._most]

        def solve() -> Plan:
            problem = placement_problem(snapshot, uids, checked.kept, settings)
            return self._planner(settings).plan(problem)

        try:
            plan = await self._thread.run(solve, PLANNING_DEADLINE)
        except PlannerError as error:
            self._configured, self._most = False, max(1, len(uids) // 2)
            raise PlannerError(f"{len(uids)} pending pods: {error}; next are {self._most} of them") from None
        except ProblemError:
            self._configured = False
            raise
        self._most = None if self._most is None or self._most >= len(checked.unreserved) else self._most * 2
        return plan

    def _planner(self, settings: Settings) -> Planner:
        if self._configured:
            return placing_planner(settings, self._make_planner)
        return self._make_planner(PLACES_PENDING, {})


@dataclass(frozen=True, slots=True)
class BindingParts:
    """The parts that a pass uses. Built once, by `reactor.app.wire`."""

    state: State
    executor: Executor
    binder: Binder
    planner: PlacementPlanner
    unschedulable: UnschedulablePods
    recorder: Recorder
    settings: Callable[[], Settings]


@dataclass(frozen=True, slots=True)
class ClaimedBindings:
    """A placement whose room is taken, to be carried out by `bind`."""

    cycle: str
    snapshot: Snapshot
    placement: Placement
    moves: tuple[PlannedMove, ...]


async def bind_pending(parts: BindingParts) -> Placement | None:
    """One whole pass. None when no pod waits for us."""
    claimed = await place_pending(parts)
    return await bind(parts, claimed) if claimed is not None else None


async def place_pending(parts: BindingParts) -> ClaimedBindings | None:
    """Replacements go to the node reserved for them if it still takes them; all others are matched. None when no pod
    waits for us.

    In mode observe only the replacements of moves in flight are bound, so that these moves end.
    """
    settings = parts.settings()
    if not parts.state.pending:
        return None
    with cycle_context() as cycle, parts.recorder.timed("place"):
        snapshot = _snapshot(parts, settings)
        parts.binder.forget_gone(snapshot.cluster)
        pending = pending_pods(snapshot, settings)
        if not pending.reserved_nodes and not pending.unsupported:
            return None
        checked = check_reservations(pending, snapshot, settings)
        plan = await parts.planner.place(snapshot, checked, settings) if checked.unreserved else None
        placed = fit_beside_nominated(plan.moves if plan is not None else (), snapshot, checked.kept)
        observed = settings.mode is Mode.OBSERVE
        replacements = {move.replacement for move in snapshot.moves.in_flight}
        wanted = [move for move in (*checked.bindable, *placed) if not observed or move.uid in replacements]
        placement = Placement(plan, (), pending.unsupported, checked.bindable, observed)
        now = snapshot if plan is None else _snapshot(parts, settings)
        reserved_meanwhile = _reserved(now, settings) - _reserved(snapshot, settings)
        moves = _claim(parts, wanted, now, settings, check=bool(reserved_meanwhile))
        return ClaimedBindings(cycle, snapshot, placement, moves)


async def bind(parts: BindingParts, claimed: ClaimedBindings) -> Placement:
    """Sends the bindings, gives back the room of those that failed, and records all."""
    pods = claimed.snapshot.cluster.pods
    with cycle_context(claimed.cycle):
        bound = await asyncio.gather(*(_bind(parts, pods[move.uid], move) for move in claimed.moves))
        placement = replace(claimed.placement, bound=tuple(bound))
        parts.recorder.record_placement(claimed.cycle, claimed.snapshot, placement)
        if not placement.observed:
            await parts.unschedulable.write(placement, claimed.snapshot)
    return placement


async def _bind(parts: BindingParts, pod: Pod, move: PlannedMove) -> Bound:
    try:
        bound = await parts.binder.bind(pod, move)
    except asyncio.CancelledError:
        parts.state.release_binding(pod)
        raise
    if bound.succeeded:
        parts.state.confirm_binding(pod, bound.answer.outcome)
    else:
        parts.state.release_binding(pod)
    return bound


def _claim(
    parts: BindingParts, wanted: Iterable[PlannedMove], now: Snapshot, settings: Settings, *, check: bool
) -> tuple[PlannedMove, ...]:
    """Take the room of the placements, without waiting for anything in between. With `check` a move has reserved room
    since they were made, so each must fit beside it."""
    claimed = []
    for move in wanted:
        pod = now.cluster.pods.get(move.uid)
        if pod is None or pod.node is not None:
            continue
        if check and not _still_fits(parts, move, settings):
            log.info("placed again: a move has reserved the room", pod=pod.key, node=move.target)
            continue
        parts.state.assume_bound(pod, move.target)
        claimed.append(move)
    return tuple(claimed)


def _still_fits(parts: BindingParts, move: PlannedMove, settings: Settings) -> bool:
    snapshot = _snapshot(parts, settings)
    reservations = snapshot.moves.reservations(snapshot.at, settings.execution)
    others = [each for each in reservations if each.move.replacement != move.uid]
    return fits_now(snapshot.cluster.pods[move.uid], move.target, snapshot, others)


def _reserved(snapshot: Snapshot, settings: Settings) -> set[str]:
    return {each.move.id for each in snapshot.moves.reservations(snapshot.at, settings.execution)}


def _snapshot(parts: BindingParts, settings: Settings) -> Snapshot:
    """With the moves as this cluster shows them: a replacement does not wait until a cycle has found it."""
    cluster = parts.state.cluster()
    return parts.state.freeze(parts.executor.moves_in(cluster, settings), cluster)
