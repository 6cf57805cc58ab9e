"""Which planned moves may start now, checked against the cluster as it is and not as it was planned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from reactor.decision.eligibility import MANAGED, PROTECTED, STEERABLE, Eligibility
from reactor.decision.wait_reasons import Reason
from reactor.planning.problem_builder import fits_now
from reactor.state.moves import ActiveMoves, Move, Reservation

SETTLES = 30.0
"""Seconds after the end of a move in which its old pod may still terminate and PDBs may not count the new one yet."""


@dataclass(frozen=True, slots=True)
class Starts:
    """`begin` may start now; `skip` never will, each with its reason. All others wait."""

    begin: tuple[Move, ...]
    skip: tuple[tuple[Move, str], ...]


def choose_starts(moves: ActiveMoves, eligibility: Eligibility) -> Starts:
    """In the plan's order, in which every move was possible when it was planned; never two of one workload at a time. A
    move that is blocked now is skipped when nothing is in flight that could unblock it: the cluster has changed."""
    snapshot, settings = eligibility.snapshot, eligibility.settings
    in_flight = moves.in_flight
    free = 0 if moves.halted else settings.execution.max_moves_in_flight - len(in_flight)
    busy = {move.workload for move in in_flight}
    begin: list[Move] = []
    skip: list[tuple[Move, str]] = []
    blocked: list[tuple[Move, str]] = []
    reservations = moves.reservations(snapshot.at, settings.execution)
    for move in moves.moves:
        if move.in_flight:
            continue
        obsolete = why_obsolete(move, eligibility)
        if obsolete:
            skip.append((move, obsolete))
        elif len(begin) < free and move.workload not in busy:
            possible = _possible_way(move, eligibility)
            blocker = _why_not_now(possible, eligibility, reservations)
            if blocker:
                blocked.append((move, blocker))
            else:
                begin.append(possible)
                busy.add(move.workload)
                if not move.dumps:
                    reservations.append(moves.reservation(move))
    settled = snapshot.at - moves.last_end >= SETTLES
    if settled and not begin and not in_flight:
        skip += blocked
    return Starts(tuple(begin), tuple(skip))


def why_obsolete(move: Move, eligibility: Eligibility) -> str:
    """Why the move is not possible any more; empty when it is."""
    cluster = eligibility.snapshot.cluster
    pod = cluster.pods.get(move.pod.uid)
    if pod is None:
        return "the pod is gone"
    if pod.node != move.source:
        return f"the pod is on {pod.node} now"
    ineligible = eligibility.why_not(pod, (*MANAGED, *PROTECTED, *STEERABLE))
    if ineligible is not None:
        return str(ineligible)
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
