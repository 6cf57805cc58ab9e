"""Which planned moves may start now, checked against the cluster as it is and not as it was planned."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from reactor.decision.eligibility import IN_WINDOW, MANAGED, PROTECTED, STEERABLE, Eligibility
from reactor.decision.limits import RecentMoves, StartedMove
from reactor.decision.wait_reasons import Reason
from reactor.planning.problem_builder import fits_now
from reactor.settings.model import Execution
from reactor.state.moves import ActiveMoves, Move, MoveState, Reservation

SETTLES = 30.0
"""Seconds after the end of a move in which its old pod may still terminate and PDBs may not count the new one yet."""


@dataclass(frozen=True, slots=True)
class Starts:
    """`begin` may start now; `skip` never will, each with its reason. All others wait."""

    begin: tuple[Move, ...]
    skip: tuple[tuple[Move, str], ...]


def choose_starts(moves: ActiveMoves, eligibility: Eligibility) -> Starts:
    """The next wave, in the plan's order, in which every move was possible when it was planned: each target has room
    now, and no limit is exceeded. A move that is blocked keeps its room. It is skipped when nothing is in flight that
    could unblock it: the cluster has changed."""
    snapshot, settings = eligibility.snapshot, eligibility.settings
    in_flight = moves.in_flight
    limits = _InFlight(in_flight, settings.execution)
    recent = eligibility.cooldowns.recent
    begin: list[Move] = []
    skip: list[tuple[Move, str]] = []
    blocked: list[tuple[Move, str]] = []
    reservations = moves.reservations(snapshot.at, settings.execution)
    of_blocked: list[Reservation] = []
    for move in moves.moves:
        if move.in_flight:
            continue
        obsolete = why_obsolete(move, eligibility)
        if obsolete:
            skip.append((move, obsolete))
            continue
        if not limits.allow(move) or _held(move, eligibility, recent):
            continue
        possible = _possible_way(move, eligibility)
        blocker = _why_not_now(possible, eligibility, reservations)
        if blocker:
            blocked.append((move, blocker))
            of_blocked += [] if move.dumps else [moves.reservation(move)]
        elif not (of_blocked and _why_not_now(possible, eligibility, [*reservations, *of_blocked])):
            begin.append(possible)
            limits.add(move)
            recent = recent.after([StartedMove(move.id, snapshot.at, move.pod.namespace, move.workload)])
            reservations += [] if move.dumps else [moves.reservation(move)]
    settled = snapshot.at - moves.last_end >= SETTLES
    if settled and not begin and not in_flight:
        skip += blocked
    return Starts(tuple(begin), tuple(skip))


class _InFlight:
    """The moves in flight, against the limits of how many there may be. A late one brakes its namespace instead."""

    def __init__(self, in_flight: Iterable[Move], settings: Execution) -> None:
        self._settings = settings
        self._all = 0
        self._namespaces: Counter[str] = Counter()
        self._workloads: Counter[str] = Counter()
        for move in in_flight:
            self.add(move)

    def add(self, move: Move) -> None:
        self._all += move.state is not MoveState.LATE
        self._namespaces[move.pod.namespace] += 1
        self._workloads[move.workload] += 1

    def allow(self, move: Move) -> bool:
        settings = self._settings
        return (
            self._all < settings.max_moves_in_flight
            and self._namespaces[move.pod.namespace] < settings.max_moves_in_flight_per_namespace
            and self._workloads[move.workload] < settings.max_moves_in_flight_per_workload
        )


def _held(move: Move, eligibility: Eligibility, recent: RecentMoves) -> bool:
    """By a brake or a limit in time: the move waits until its plan is too old."""
    now, limits = eligibility.snapshot.at, eligibility.settings.execution.limits
    braked = eligibility.cooldowns.brakes.on(move.pod.namespace, now) is not None
    return braked or recent.exceeds(move.pod.namespace, move.workload, now, limits) is not None


def why_obsolete(move: Move, eligibility: Eligibility) -> str:
    """Why the move is not possible any more; empty when it is."""
    cluster = eligibility.snapshot.cluster
    pod = cluster.pods.get(move.pod.uid)
    if pod is None:
        return "the pod is gone"
    if pod.node != move.source:
        return f"the pod is on {pod.node} now"
    ineligible = eligibility.why_not(pod, (*MANAGED, *PROTECTED, *STEERABLE, *IN_WINDOW))
    if ineligible is not None:
        return str(ineligible)
    happiness = eligibility.snapshot.happiness.get(pod.uid)
    if move.unhappy and (happiness is None or not happiness.unhappy):
        return "it is happy again where it is"
    age, oldest = eligibility.snapshot.at - (move.planned or 0.0), eligibility.settings.execution.max_plan_age
    if move.planned is not None and age > oldest:
        return f"the plan is {age:.0f} s old, and execution.maxPlanAge is {oldest:.0f} s"
    if move.dumps:
        return ""
    target = cluster.nodes.get(move.target)
    if target is None or not target.ready or target.unschedulable:
        return f"{move.target} does not take pods now"
    return ""


def _possible_way(move: Move, eligibility: Eligibility) -> Move:
    """By the planned strategy, or where that is impossible by now (not only for a while) by another one."""
    pod = eligibility.snapshot.cluster.pods[move.pod.uid]
    choice = eligibility.strategies.of(pod, move.strategy)
    if move.dumps or choice.strategy is not None or choice.code is not Reason.NO_STRATEGY:
        return move
    other = eligibility.strategies.of(pod).strategy
    return move if other is None else replace(move, strategy=other)


def _why_not_now(move: Move, eligibility: Eligibility, reservations: Sequence[Reservation]) -> str:
    """What other moves in flight may still change; empty when the move can start. A surge disrupts nothing, so a spent
    PDB does not hold it up."""
    pod = eligibility.snapshot.cluster.pods[move.pod.uid]
    choice = eligibility.strategies.of(pod, move.strategy)
    if choice.strategy is None:
        return choice.reason
    if not move.dumps and not fits_now(pod, move.target, eligibility.snapshot, reservations, move.strategy):
        return f"{move.target} has no room for it now"
    return ""
