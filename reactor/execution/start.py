"""Which planned moves may start now: judged afresh against the cluster as it is, not as it was planned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reactor.decision.managed import Management
from reactor.decision.pdbs import why_not_evictable
from reactor.decision.protection import protection
from reactor.planning.problems import fits_now, reservations
from reactor.settings.model import Settings
from reactor.state.moves import Move
from reactor.state.snapshot import Snapshot

SETTLES = 30.0
"""After a move its old pod may still be terminating, and a disruption budget is told of the new one a moment later."""


@dataclass(frozen=True, slots=True)
class Starts:
    """`begin` may start now; `skip` never will, each with its reason; the others wait for their turn."""

    begin: tuple[Move, ...]
    skip: tuple[tuple[Move, str], ...]


def choose_starts(snapshot: Snapshot, settings: Settings) -> Starts:
    ongoing = snapshot.ongoing
    flying = ongoing.in_flight
    planned = [run for run in ongoing.runs if not run.in_flight]
    free = 0 if ongoing.halted else settings.execution.max_moves_in_flight - len(flying)
    busy = {run.workload for run in flying}
    begin: list[Move] = []
    skip: list[tuple[Move, str]] = []
    hindered: list[tuple[Move, str]] = []
    management = Management.of(settings)
    held = reservations(snapshot, settings)
    for run in planned:
        obsolete = why_obsolete(run, snapshot, settings, management)
        if obsolete:
            skip.append((run, obsolete))
        elif len(begin) < free and run.workload not in busy:
            hindrance = _why_not_now(run, snapshot, held)
            if hindrance:
                hindered.append((run, hindrance))
            else:
                begin.append(run)
                busy.add(run.workload)
                if not run.dumps:
                    held.append(run)
    settled = snapshot.at - ongoing.last_end >= SETTLES
    if settled and not begin and not flying:
        skip += hindered
    return Starts(tuple(begin), tuple(skip))


def why_obsolete(run: Move, snapshot: Snapshot, settings: Settings, management: Management) -> str:
    """Why the plan no longer holds for this pod; empty when it does."""
    pod = snapshot.cluster.pods.get(run.move.uid)
    if pod is None:
        return "the pod is gone"
    if pod.node != run.move.source:
        return f"the pod is on {pod.node} now"
    outside = management.why_not(pod)
    if outside is not None:
        return f"not managed any more: {outside}"
    veto = protection(pod, snapshot.cluster, settings)
    if veto is not None:
        return f"protected by now ({veto.veto}: {veto.evidence})"
    if run.dumps:
        return ""
    target = snapshot.cluster.nodes.get(run.move.target)
    if target is None or not target.ready or target.unschedulable:
        return f"{run.move.target} does not take pods now"
    return ""


def _why_not_now(run: Move, snapshot: Snapshot, held: Sequence[Move]) -> str:
    """What other moves under way may still clear; empty when the move can start."""
    pod = snapshot.cluster.pods[run.move.uid]
    budget = why_not_evictable(pod, snapshot.cluster)
    if budget:
        return budget
    if not run.dumps and not fits_now(pod, run.move.target, snapshot, held):
        return f"{run.move.target} has no room for it now"
    return ""
