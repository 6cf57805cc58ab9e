"""What the cluster shows of a move under way: pure steps from one Move to the next."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from reactor.cluster.records import Pod
from reactor.cluster.view import ClusterView
from reactor.settings.model import Execution
from reactor.state.moves import Move, MoveState


def siblings(pod: Pod, view: ClusterView) -> frozenset[str]:
    """The pods of the same owner that are there now."""
    if pod.owner is None:
        return frozenset({pod.uid})
    return frozenset(other.uid for other in view.pods_of(pod.owner.uid))


def replacement(run: Move, view: ClusterView, taken: Collection[str]) -> Pod | None:
    """The pod that the owner made instead: same owner and template, not there before (StatefulSet: same name too)."""
    owner = run.pod.owner
    if owner is None:
        return None
    for pod in sorted(view.pods_of(owner.uid), key=lambda candidate: (candidate.created, candidate.name)):
        if pod.uid in run.siblings or pod.uid in taken or pod.deleting is not None:
            continue
        if pod.template_hash != run.pod.template_hash:
            continue
        if owner.kind == "StatefulSet" and pod.name != run.pod.name:
            continue
        return pod
    return None


def follow(run: Move, view: ClusterView, now: float, settings: Execution, taken: Collection[str]) -> Move:
    """The run as the cluster shows it now; a run that has not begun or has ended is left as it is."""
    if not run.in_flight:
        return run
    if run.replacement is None:
        found = replacement(run, view, taken)
        if found is None:
            return _without_replacement(run, view, now, settings)
        run = replace(run, replacement=found.uid, replacement_key=found.key)
    pod = view.pods.get(run.replacement or "")
    if pod is None or pod.deleting is not None or pod.finished:
        return _end(run, MoveState.FAILED, now, f"the replacement {run.replacement_key} is gone before it was Ready")
    if pod.node is not None and run.bound is None:
        run = replace(run, bound=now, state=MoveState.BOUND if run.state is MoveState.EVICTED else run.state)
    if pod.node is not None and pod.ready:
        where = "as planned" if pod.node == run.move.target else f"but another scheduler bound it to {pod.node}"
        return _end(run, MoveState.DONE, now, f"{pod.key} is Ready on {pod.node}, {where}")
    return _late(run, now, settings)


def reserved(run: Move, now: float, settings: Execution) -> bool:
    """Whether the target is still held for the replacement: from the plan's start until bound or expired."""
    if run.bound is not None or not run.in_flight:
        return False
    return run.evicted is None or now < run.evicted + settings.reservation


def _without_replacement(run: Move, view: ClusterView, now: float, settings: Execution) -> Move:
    owner = run.pod.owner
    if owner is not None and owner.uid not in view.workloads:
        return _end(run, MoveState.FAILED, now, f"its {owner.kind} {owner.name} was deleted meanwhile")
    if not _overdue(run, now, settings):
        return run
    pod = view.pods.get(run.move.uid)
    if pod is not None and pod.deleting is None:
        return _end(run, MoveState.FAILED, now, "the pod is still there: it was not evicted")
    if owner is not None and not _replacement_wanted(run, owner.uid, view):
        return _end(
            run, MoveState.FAILED, now, f"its {owner.kind} {owner.name} was scaled down and wants no replacement"
        )
    return replace(run, state=MoveState.LATE)


def _replacement_wanted(run: Move, owner_uid: str, view: ClusterView) -> bool:
    """Not after a scale-down, nor when a rollout has left the old ReplicaSet with nothing to keep up."""
    others = [
        pod for pod in view.pods_of(owner_uid) if pod.uid != run.move.uid and pod.deleting is None and not pod.finished
    ]
    return len(others) < view.workloads[owner_uid].replicas


def _late(run: Move, now: float, settings: Execution) -> Move:
    return replace(run, state=MoveState.LATE) if _overdue(run, now, settings) else run


def _overdue(run: Move, now: float, settings: Execution) -> bool:
    return run.evicted is not None and now >= run.evicted + settings.ready_deadline


def _end(run: Move, state: MoveState, now: float, outcome: str) -> Move:
    return replace(run, state=state, ended=now, outcome=outcome)
