"""Which planned moves may start now: judged afresh against the cluster as it is, not as it was planned."""

from __future__ import annotations

from dataclasses import dataclass

from reactor.execution.budgets import why_not_evictable
from reactor.execution.journal import MoveRun
from reactor.planning import fits_now
from reactor.protection import protection
from reactor.settings.model import Settings
from reactor.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Starts:
    """`begin` may start now; `skip` never will, each with its reason; the others wait for their turn."""

    begin: tuple[MoveRun, ...]
    skip: tuple[tuple[MoveRun, str], ...]


def choose_starts(snapshot: Snapshot, settings: Settings) -> Starts:
    ongoing = snapshot.ongoing
    flying = ongoing.in_flight
    planned = [run for run in ongoing.runs if not run.in_flight]
    free = 0 if ongoing.halted else settings.execution.max_moves_in_flight - len(flying)
    busy = {run.workload for run in flying}
    begin: list[MoveRun] = []
    skip: list[tuple[MoveRun, str]] = []
    waiting_for_room: list[MoveRun] = []
    for run in planned:
        obsolete = why_obsolete(run, snapshot, settings)
        if obsolete:
            skip.append((run, obsolete))
        elif len(begin) < free and run.workload not in busy:
            if fits_now(run.pod, run.move.target, snapshot, settings):
                begin.append(run)
                busy.add(run.workload)
            else:
                waiting_for_room.append(run)
    if not begin and not flying and not ongoing.halted:
        skip.extend((run, f"{run.move.target} has no room for it now") for run in waiting_for_room)
    return Starts(tuple(begin), tuple(skip))


def why_obsolete(run: MoveRun, snapshot: Snapshot, settings: Settings) -> str:
    """Why the plan no longer holds for this pod; empty when it does."""
    pod = snapshot.cluster.pods.get(run.move.uid)
    if pod is None:
        return "the pod is gone"
    if pod.node != run.move.source:
        return f"the pod is on {pod.node} now"
    veto = protection(pod, snapshot.cluster, settings)
    if veto is not None:
        return f"protected by now ({veto.veto}: {veto.evidence})"
    budget = why_not_evictable(pod, snapshot.cluster)
    if budget:
        return budget
    target = snapshot.cluster.nodes.get(run.move.target)
    if target is None or not target.ready or target.unschedulable:
        return f"{run.move.target} does not take pods now"
    return ""
