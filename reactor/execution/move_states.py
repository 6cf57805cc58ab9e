"""The state machine of a move: pure functions from what happened to the next state.

planned -> evicted -> bound -> done
   |          |         |
   |          +---------+--> late (still followed) -> done | failed
   +--> skipped | failed
"""

from __future__ import annotations

import secrets
from collections.abc import Collection
from dataclasses import replace

from matching.plan import PlannedMove
from reactor.cluster.records import Pod
from reactor.cluster.view import ClusterView
from reactor.cluster.writes import Eviction, EvictionAnswer
from reactor.settings.model import Execution
from reactor.state.moves import Move, MoveState, PodRef

_MAX_REASONS = 4
_MAX_REASON = 200
_MAX_OUTCOME = 300
"""Limits that keep a move below 4 KiB."""

STATE_AFTER_EVICTION = {
    Eviction.ACCEPTED: MoveState.EVICTED,
    Eviction.UNKNOWN: MoveState.EVICTED,
    Eviction.GONE: MoveState.SKIPPED,
    Eviction.REPLACED: MoveState.SKIPPED,
    Eviction.PDB: MoveState.FAILED,
    Eviction.SEVERAL_PDBS: MoveState.FAILED,
    Eviction.THROTTLED: MoveState.FAILED,
    Eviction.FORBIDDEN: MoveState.FAILED,
    Eviction.FAILED: MoveState.FAILED,
}
"""What the eviction API's answer means for a move. An eviction without an answer may have happened."""


def planned(plan_id: str, move: PlannedMove, pod: Pod, view: ClusterView, strategy_reason: str) -> Move:
    """The planned move of a running pod."""
    workload = view.workload_of(pod)
    name = f"{workload.kind}/{pod.namespace}/{workload.name}" if workload else pod.key
    reasons = (*move.reasons[:_MAX_REASONS], strategy_reason)
    return Move(
        id=secrets.token_hex(8),
        plan_id=plan_id,
        pod=PodRef(pod.namespace, pod.name, pod.uid),
        owner=pod.owner,
        template_hash=pod.template_hash,
        workload=name,
        source=move.source or "",
        target=move.target,
        strategy=move.strategy,
        reasons=tuple(reason[:_MAX_REASON] for reason in reasons),
    )


def after_eviction(move: Move, answer: EvictionAnswer, now: float) -> Move:
    """The move after the eviction API has answered."""
    state = STATE_AFTER_EVICTION[answer.outcome]
    move = replace(move, answer=answer.outcome, retry_after=answer.retry_after)
    if state is MoveState.EVICTED and move.dumps:
        text = f"dumped from {move.source}: its replacement waits until a node takes it"
        return ended(replace(move, evicted=now), MoveState.DONE, now, text)
    if state is MoveState.EVICTED:
        return replace(move, state=state, evicted=now)
    if state is MoveState.SKIPPED:
        return ended(move, state, now, "the pod was gone before it could be evicted")
    return ended(move, state, now, f"eviction refused ({answer.outcome}): {answer.message}")


def ended(move: Move, state: MoveState, now: float, outcome: str) -> Move:
    return replace(move, state=state, ended=now, outcome=outcome[:_MAX_OUTCOME])


def siblings(pod: Pod, view: ClusterView) -> frozenset[str]:
    """UIDs of the owner's pods at the time of the eviction: a pod that comes later is the replacement."""
    if pod.owner is None:
        return frozenset({pod.uid})
    return frozenset(other.uid for other in view.pods_of(pod.owner.uid))


def replacement(move: Move, view: ClusterView, excluded: Collection[str]) -> Pod | None:
    """The pod that the owner created instead: same owner and template, for a StatefulSet the same name.

    `excluded` are the UIDs of pods that were there before and of replacements of other moves.
    """
    if move.owner is None:
        return None
    for pod in sorted(view.pods_of(move.owner.uid), key=lambda candidate: (candidate.created, candidate.name)):
        if pod.uid in excluded or pod.deleting is not None or pod.template_hash != move.template_hash:
            continue
        if move.owner.kind == "StatefulSet" and pod.name != move.pod.name:
            continue
        return pod
    return None


def followed(move: Move, view: ClusterView, now: float, settings: Execution, excluded: Collection[str]) -> Move:
    """The move as the cluster shows it now. A move that has not started or has ended is returned as it is."""
    if not move.in_flight:
        return move
    if move.replacement is None:
        found = replacement(move, view, excluded)
        if found is None:
            return _without_replacement(move, view, now, settings)
        move = replace(move, replacement=found.uid, replacement_key=found.key)
    pod = view.pods.get(move.replacement or "")
    if pod is None or pod.deleting is not None or pod.finished:
        return ended(move, MoveState.FAILED, now, f"the replacement {move.replacement_key} is gone before it was Ready")
    if pod.node is not None and move.bound is None:
        move = replace(move, bound=now, state=MoveState.BOUND if move.state is MoveState.EVICTED else move.state)
    if pod.node is not None and pod.ready:
        where = (
            "as planned" if pod.node == move.target else f"but bound by another process, and planned for {move.target}"
        )
        return ended(move, MoveState.DONE, now, f"{pod.key} is Ready on {pod.node}, {where}")
    return replace(move, state=MoveState.LATE) if _overdue(move, now, settings) else move


def _without_replacement(move: Move, view: ClusterView, now: float, settings: Execution) -> Move:
    owner = move.owner
    if owner is not None and owner.uid not in view.workloads:
        return ended(move, MoveState.FAILED, now, f"its {owner.kind} {owner.name} was deleted meanwhile")
    if not _overdue(move, now, settings):
        return move
    pod = view.pods.get(move.pod.uid)
    if pod is not None and pod.deleting is None:
        return ended(move, MoveState.FAILED, now, "the pod is still there: it was not evicted")
    if owner is not None and not _replacement_wanted(move, owner.uid, view):
        text = f"its {owner.kind} {owner.name} was scaled down and wants no replacement"
        return ended(move, MoveState.FAILED, now, text)
    return replace(move, state=MoveState.LATE)


def _replacement_wanted(move: Move, owner_uid: str, view: ClusterView) -> bool:
    """Not after a scale-down, nor when a rollout has scaled the old ReplicaSet to zero."""
    others = [
        pod for pod in view.pods_of(owner_uid) if pod.uid != move.pod.uid and pod.deleting is None and not pod.finished
    ]
    return len(others) < view.workloads[owner_uid].replicas


def _overdue(move: Move, now: float, settings: Execution) -> bool:
    return move.evicted is not None and now >= move.evicted + settings.ready_deadline
