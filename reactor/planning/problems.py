"""From a frozen snapshot to a matching problem: who may move, and where."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from matching.problem import Options, Problem, Scope
from reactor.cluster.pod_constraints import unsupported_constraints
from reactor.cluster.records import Pod
from reactor.decision.decide import Decision, may_not_move, rests
from reactor.decision.eligibility import Ordinary
from reactor.decision.managed import Management
from reactor.decision.reasons import Reason
from reactor.execution.follow import reserved
from reactor.planning.network import for_planner
from reactor.planning.pending import pending_pods
from reactor.planning.problem_builder import ProblemBuilder
from reactor.settings.model import Settings
from reactor.settings.planner import waived_by
from reactor.state.moves import Move
from reactor.state.snapshot import Needs, Snapshot


def rematch_problem(snapshot: Snapshot, decision: Decision, settings: Settings) -> Problem:
    """Every pod that holds room, with whoever may move free to move, and the pending pods of ours.

    Where only the unhappy may move, nobody else is asked why not: in a large cluster that takes longer than the plan.
    A planner that waives something may not keep to the scope either.
    """
    unhappy = {one.uid for one in decision.unhappy}
    scope = Scope(settings.planner.scope)
    only_unhappy = scope is Scope.UNHAPPY and not waived_by(settings.planner.name)
    management = Management.of(settings)
    builder = ProblemBuilder(snapshot)
    holders = _holders(snapshot)
    happy = [pod.uid not in unhappy for pod in holders]
    free = [True] * len(holders) if only_unhappy else Ordinary.of(snapshot, settings, management).covers(holders)
    fixed = [
        "" if at_a_glance or not at_ease else why_fixed(pod, snapshot, settings, management)
        for pod, at_a_glance, at_ease in zip(holders, free, happy, strict=True)
    ]
    builder.add_all(holders, fixed, happy)
    pending = pending_pods(snapshot, settings)
    for uid in pending.place:
        builder.add(snapshot.cluster.pods[uid])
    for pod in pending.unsupported:
        builder.add(pod, fixed=f"cannot judge {', '.join(unsupported_constraints(pod, snapshot.cluster))}")
    for run in reservations(snapshot, settings):
        if run.replacement not in pending.place:
            builder.hold(run)
    options = Options(
        scope=scope,
        inertia=settings.planner.inertia,
        headroom=settings.planner.headroom,
        soft_weight=settings.planner.soft_weight,
        max_moves=settings.planner.max_moves,
        max_moves_per_workload=settings.planner.max_moves_per_workload,
        max_moves_per_node=settings.planner.max_moves_per_node,
        max_moves_per_namespace=settings.planner.max_moves_per_namespace,
    )
    return for_planner(builder.problem(options), snapshot, settings)


def placement_problem(snapshot: Snapshot, pending: Mapping[str, str | None], settings: Settings) -> Problem:
    """Pending pods by UID, each with the node that is held for it (or None); everybody else stays."""
    only = _enough_to_look_at(snapshot, pending)
    builder = ProblemBuilder(snapshot, only)
    for pod in _holders(snapshot, only):
        builder.add(pod, fixed="stays while pending pods are placed")
    for uid, target in pending.items():
        pod = snapshot.cluster.pods[uid]
        builder.add(pod, only_on=target)
    for run in reservations(snapshot, settings):
        if run.replacement not in pending and (only is None or run.move.target in only):
            builder.hold(run)
    options = Options(scope=Scope.PENDING, headroom=settings.planner.headroom)
    return for_planner(builder.problem(options), snapshot, settings)


def why_fixed(pod: Pod, snapshot: Snapshot, settings: Settings, management: Management) -> str:
    """Why this pod may not be moved by a rematch, in words; empty when it may."""
    outside = management.why_not(pod)
    if outside is not None:
        return f"not managed: {outside}"
    wait = may_not_move(pod, snapshot, settings) or rests(pod, snapshot, settings)
    if wait is not None:
        return f"{wait.reason}: {wait.text}"
    if snapshot.needs is Needs.METRICS and not snapshot.usage.knows(pod.uid):
        return f"{Reason.NO_FRESH_METRICS}: what it needs is not known now"
    return ""


def fits_now(pod: Pod, target: str, snapshot: Snapshot, held: Sequence[Move]) -> bool:
    """Whether the target would take the pod now, counting terminating pods and what is `held` for other moves.

    Rules between pods look beyond the target; where there are any, those whom they are about are asked, too.
    """
    elsewhere = snapshot.cluster.seen_by_rules
    builder = ProblemBuilder(snapshot, None if elsewhere else (target,))
    for other in {other.uid: other for other in (*snapshot.cluster.pods_on(target), *elsewhere)}.values():
        if other.node is not None and not other.finished and other.uid != pod.uid:
            builder.add(other, fixed="is there already")
    for run in held:
        if run.move.target == target or elsewhere:
            builder.hold(run)
    return builder.takes(pod, target)


def reservations(snapshot: Snapshot, settings: Settings) -> list[Move]:
    """The moves under way for whose replacements a node is still held."""
    return [run for run in snapshot.ongoing.in_flight if reserved(run, snapshot.at, settings.execution)]


def _enough_to_look_at(snapshot: Snapshot, pending: Mapping[str, str | None]) -> frozenset[str] | None:
    """The nodes held for the pods, when each has one and no rules between pods look beyond them; None means all."""
    held = frozenset(node for node in pending.values() if node is not None)
    known = None not in pending.values()
    return held if pending and known and not snapshot.cluster.seen_by_rules else None


def _holders(snapshot: Snapshot, only: Collection[str] | None = None) -> list[Pod]:
    """Whoever takes room on a node: terminating pods do, finished ones do not."""
    view = snapshot.cluster
    pods = view.pods.values() if only is None else [pod for node in sorted(only) for pod in view.pods_on(node)]
    return [pod for pod in pods if pod.node is not None and not pod.finished]
