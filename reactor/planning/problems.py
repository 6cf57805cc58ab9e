"""From a snapshot to a matching problem: which pods may move, and what room there is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from matching.problem import Options, Preference, Problem, Role, Scope
from reactor.cluster.pod_constraints import unsupported_constraints
from reactor.cluster.records import Pod
from reactor.decision.decide import Decision
from reactor.decision.eligibility import Eligibility
from reactor.decision.strategies import Choice
from reactor.planning.pending import pending_pods
from reactor.planning.problem_builder import ProblemBuilder
from reactor.planning.problem_pods import EVICTED, KeptPods
from reactor.planning.rate_axes import for_planner
from reactor.planning.source_axes import with_source_axes
from reactor.settings.model import Settings
from reactor.settings.planner import waived_by
from reactor.signals.latency import needed_measurements
from reactor.state.moves import Reservation
from reactor.state.snapshot import Snapshot


def rematch_problem(eligibility: Eligibility, decision: Decision, kept: KeptPods | None = None) -> Problem:
    """All pods that take room; the eligible ones may move. Pending pods with our scheduler name are placed, too.

    Where only unhappy pods may move, the others are not checked: in a large cluster that takes longer than the plan. A
    planner that waives a promise may not keep to the scope either. `kept`: the pods of the last problem.
    """
    snapshot, settings = eligibility.snapshot, eligibility.settings
    scope = Scope(settings.planner.scope)
    only_unhappy = scope is Scope.UNHAPPY and not waived_by(settings.planner.name)
    bound = _bound_pods(snapshot)
    avoided, energy = _avoided(bound, eligibility), settings.energy
    faulty = _faulty_nodes(decision, snapshot)
    builder = ProblemBuilder(
        snapshot, avoided=avoided, kept=kept, predicted=decision.predicted, energy=energy, faulty=faulty
    )
    unhappy = {one.uid for one in decision.unhappy}
    happy = [pod.uid not in unhappy for pod in bound]
    reasons = [None] * len(bound) if only_unhappy else eligibility.why_not_all(bound)
    fixed = ["" if why is None or not is_happy else str(why) for why, is_happy in zip(reasons, happy, strict=True)]
    if decision.only_in is not None:
        fixed = [why or _elsewhere(pod, decision.only_in) for pod, why in zip(bound, fixed, strict=True)]
    movable = [(not is_happy) if only_unhappy else not why for why, is_happy in zip(fixed, happy, strict=True)]
    choices = _choices(bound, movable, eligibility, few=only_unhappy)
    builder.add_all(bound, fixed, happy, choices)
    pending = pending_pods(snapshot, settings)
    for uid in pending.reserved_nodes:
        builder.add(snapshot.cluster.pods[uid])
    for pod in pending.unsupported:
        builder.add(pod, fixed=f"unsupported {', '.join(unsupported_constraints(pod, snapshot.cluster))}")
    for reservation in snapshot.moves.reservations(snapshot.at, settings.execution):
        if reservation.move.replacement not in pending.reserved_nodes:
            builder.reserve(reservation)
    builder.hold(snapshot.cluster.nominated)
    problem = _with_axes(builder.problem(_options(snapshot, settings, scope)), snapshot, settings)
    return replace(problem, latency=snapshot.latency)


def _faulty_nodes(decision: Decision, snapshot: Snapshot) -> set[str]:
    """The cause by what they report, or by whom else fails there, and not by their load."""
    pods = snapshot.cluster.pods
    return {pods[one.uid].node or "" for one in decision.unhappy if one.evidence and one.evidence.node_faulty}


def _choices(pods: Sequence[Pod], movable: Sequence[bool], eligibility: Eligibility, *, few: bool) -> list[Choice]:
    """`few`: hardly any pod may move, so not all are asked about."""
    strategies = eligibility.strategies
    if few:
        return [strategies.of(pod) if may_move else EVICTED for pod, may_move in zip(pods, movable, strict=True)]
    found = strategies.of_all(pods)
    return [choice if may_move else EVICTED for choice, may_move in zip(found, movable, strict=True)]


def placement_problem(
    snapshot: Snapshot, pending: Iterable[str], reservations: Iterable[Reservation], settings: Settings
) -> Problem:
    """Pending pods by UID; all running pods stay where they are."""
    builder = ProblemBuilder(snapshot)
    for pod in _bound_pods(snapshot):
        builder.add(pod, fixed="stays while pending pods are placed")
    for uid in pending:
        builder.add(snapshot.cluster.pods[uid])
    for reservation in reservations:
        builder.reserve(reservation)
    builder.hold(snapshot.cluster.nominated)
    planner = settings.planner
    options = Options(scope=Scope.PENDING, headroom=planner.headroom, soft_weight=planner.soft_weight)
    problem = _with_axes(builder.problem(options), snapshot, settings)
    return _with_pending_roles(problem, snapshot, settings)


def _with_pending_roles(problem: Problem, snapshot: Snapshot, settings: Settings) -> Problem:
    """While a target is surged there is one more of them than the planner's `measurements` may allow. Only pending
    targets have to be known here; the nodes of the others count as visited."""
    latency = snapshot.latency
    if latency is None:
        return problem
    nodes = {pod.key: pod.node for pod in problem.pods if pod.key in latency.roles}
    targets = [key for key in nodes if latency.roles[key] is Role.TARGET]
    pending = [key for key in targets if nodes[key] is None]
    known = pending[: needed_measurements(settings) - 1]
    roles = {key: role for key, role in latency.roles.items() if role is Role.PROBE or key in known}
    visited = latency.visited | {node for key in targets if (node := nodes[key]) is not None}
    return replace(problem, latency=replace(latency, roles=roles, visited=visited))


def _with_axes(problem: Problem, snapshot: Snapshot, settings: Settings) -> Problem:
    return with_source_axes(for_planner(problem, snapshot, settings), snapshot, settings)


def _elsewhere(pod: Pod, namespace: str) -> str:
    if pod.namespace == namespace:
        return ""
    return f"only annotations in {namespace} ask for this rematch (decision.crossNamespaceAnnotations lifts this)"


def _bound_pods(snapshot: Snapshot) -> list[Pod]:
    """The pods that take room on a node: Terminating ones do, finished ones do not."""
    return [pod for pod in snapshot.cluster.pods.values() if pod.node is not None and not pod.finished]


def _avoided(pods: Iterable[Pod], eligibility: Eligibility) -> dict[str, tuple[str, ...]]:
    """The nodes that did not help the pod's workload lately, by the UID of the pod."""
    effects, snapshot = eligibility.cooldowns.effects, eligibility.snapshot
    useless = effects.useless(snapshot.at) if eligibility.restrained else {}
    if not useless:
        return {}
    found = ((pod.uid, useless.get(snapshot.cluster.workload_name(pod), ())) for pod in pods)
    return {uid: nodes for uid, nodes in found if nodes}


def _options(snapshot: Snapshot, settings: Settings, scope: Scope) -> Options:
    planner = settings.planner
    return Options(
        scope=scope,
        inertia=planner.inertia,
        headroom=planner.headroom,
        soft_weight=planner.soft_weight,
        max_moves=planner.max_moves,
        max_moves_per_workload=planner.max_moves_per_workload,
        max_moves_per_node=planner.max_moves_per_node,
        max_moves_per_namespace=planner.max_moves_per_namespace,
        failure_curve=snapshot.failure_curve,
        threshold=settings.happiness.threshold,
        horizon=planner.horizon,
        required_ratio=planner.required_ratio,
        move_price=planner.move_price,
        preference=Preference(planner.preference),
    )
