"""From a frozen snapshot to a matching problem: who may move, and where."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from matching.problem import Options, Problem, Requirement, Rules, Scope, Term
from reactor.cluster.records import Pod
from reactor.decision import Decision, may_not_move, rests
from reactor.execution.follow import reserved
from reactor.execution.journal import MoveRun
from reactor.execution.pending import pending_pods
from reactor.management import Management
from reactor.needs import ProblemBuilder
from reactor.reasons import Reason
from reactor.settings.model import Settings
from reactor.snapshot import Needs, Snapshot


def rematch_problem(snapshot: Snapshot, decision: Decision, settings: Settings) -> Problem:
    """Every pod that holds room, with whoever may move free to move, and the pending pods of ours."""
    unhappy = {one.uid for one in decision.unhappy}
    management = Management.of(settings)
    builder = ProblemBuilder(snapshot)
    for pod in _holders(snapshot):
        fixed = "" if pod.uid in unhappy else why_fixed(pod, snapshot, settings, management)
        builder.add(pod, fixed=fixed, happy=pod.uid not in unhappy)
    for uid in pending_pods(snapshot, settings).place:
        builder.add(snapshot.cluster.pods[uid])
    for run in _reservations(snapshot, settings):
        builder.hold(run)
    options = Options(
        scope=Scope(settings.planner.scope),
        inertia=settings.planner.inertia,
        headroom=settings.planner.headroom,
        max_moves=settings.planner.max_moves,
    )
    return builder.problem(options)


def placement_problem(snapshot: Snapshot, pending: Mapping[str, str | None], settings: Settings) -> Problem:
    """Pending pods by UID, each with the node that is held for it (or None); everybody else stays."""
    builder = ProblemBuilder(snapshot)
    for pod in _holders(snapshot):
        builder.add(pod, fixed="stays while pending pods are placed")
    for uid, target in pending.items():
        pod = snapshot.cluster.pods[uid]
        builder.add(pod, rules=pinned(pod.rules, target) if target else pod.rules)
    for run in _reservations(snapshot, settings):
        if run.replacement not in pending:
            builder.hold(run)
    return builder.problem(Options(scope=Scope.PENDING, headroom=settings.planner.headroom))


def why_fixed(pod: Pod, snapshot: Snapshot, settings: Settings, management: Management) -> str:
    """Why this pod may not be moved by a rematch, in words; empty when it may."""
    outside = management.why_not(pod)
    if outside is not None:
        return f"not managed: {outside}"
    wait = may_not_move(pod, snapshot, settings) or rests(pod, snapshot, settings)
    if wait is not None:
        return f"{wait.reason}: {wait.text}"
    if snapshot.needs is Needs.METRICS and not snapshot.usage.usage(pod.uid).known:
        return f"{Reason.NO_FRESH_METRICS}: what it needs is not known now"
    return ""


def fits_now(pod: Pod, target: str, snapshot: Snapshot, settings: Settings, starting: Sequence[MoveRun] = ()) -> bool:
    """Whether the target would take the pod now, counting terminating pods, reservations and moves just starting."""
    builder = ProblemBuilder(snapshot, only_node=target)
    for other in snapshot.cluster.pods_on(target):
        if not other.finished:
            builder.add(other, fixed="is there already")
    for run in (*_reservations(snapshot, settings), *starting):
        if run.move.target == target:
            builder.hold(run)
    return builder.takes(pod, target)


def pinned(rules: Rules, node: str) -> Rules:
    """The same rules, and only this node. An empty term matches no node, so it must not become this one."""
    here = Requirement("metadata.name", "In", (node,))
    if rules.node_affinity is None:
        return replace(rules, node_affinity=(Term(fields=(here,)),))
    terms = [term for term in rules.node_affinity if term != Term()]
    return replace(rules, node_affinity=tuple(replace(term, fields=(*term.fields, here)) for term in terms))


def _holders(snapshot: Snapshot) -> list[Pod]:
    """Whoever takes room on a node: terminating pods do, finished ones do not."""
    return [pod for pod in snapshot.cluster.pods.values() if pod.node is not None and not pod.finished]


def _reservations(snapshot: Snapshot, settings: Settings) -> list[MoveRun]:
    return [run for run in snapshot.ongoing.runs if reserved(run, snapshot.at, settings.execution)]
