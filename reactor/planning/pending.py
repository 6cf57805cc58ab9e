"""Pods that wait for our binder: which are bound to the node reserved for them, and which need a matching."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from matching.feasibility import has_inter_pod_rules
from matching.plan import PlannedMove
from reactor.cluster.pod_constraints import unsupported_constraints
from reactor.cluster.records import Pod
from reactor.planning.problem_builder import fits_now
from reactor.settings.model import Settings
from reactor.state.moves import Reservation
from reactor.state.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Pending:
    reserved_nodes: Mapping[str, str | None]
    """By UID: the node that is reserved for the pod, or None."""
    unsupported: tuple[Pod, ...]
    """Not bound, because a hard constraint of theirs is not supported."""


@dataclass(frozen=True, slots=True)
class ReservationCheck:
    """Which pending pods still fit on the node that is reserved for them."""

    bindable: tuple[PlannedMove, ...]
    """Replacements that are bound to the node reserved for them."""
    unreserved: tuple[str, ...]
    """UIDs for the matching: no node is reserved for them, or not one that takes them any more."""
    kept: tuple[Reservation, ...]
    """Room that the matching must leave, also for the `bindable` ones."""


def pending_pods(snapshot: Snapshot, settings: Settings) -> Pending:
    """Pods with our scheduler name, managed or not: nobody else would bind them.

    Pods with scheduling gates are not ready to be bound. A pod whose binding just failed backs off.
    """
    waiting = [
        pod
        for pod in snapshot.cluster.pods.values()
        if pod.node is None
        and pod.scheduler_name == settings.scheduler_name
        and not pod.gates
        and not pod.finished
        and pod.deleting is None
        and snapshot.at >= snapshot.moves.binding_backoffs.get(pod.uid, 0.0)
    ]
    reservations = snapshot.moves.reservations(snapshot.at, settings.execution)
    reserved = {each.move.replacement: each.move.target for each in reservations}
    unsupported = tuple(pod for pod in waiting if unsupported_constraints(pod, snapshot.cluster))
    left_out = {pod.uid for pod in unsupported}
    return Pending({pod.uid: reserved.get(pod.uid) for pod in waiting if pod.uid not in left_out}, unsupported)


def fit_beside_nominated(
    moves: Iterable[PlannedMove], snapshot: Snapshot, reservations: Sequence[Reservation]
) -> tuple[PlannedMove, ...]:
    """A plan takes pods that are nominated to a node as running there. A pod with rules about other pods may depend on
    one of them, on its node or on another one of its zone, so it has to fit without them, too."""
    cluster = snapshot.cluster
    if not cluster.nominated:
        return tuple(moves)
    return tuple(
        move
        for move in moves
        if not has_inter_pod_rules(cluster.pods[move.uid].rules)
        or fits_now(cluster.pods[move.uid], move.target, snapshot, reservations)
    )


def check_reservations(pending: Pending, snapshot: Snapshot, settings: Settings) -> ReservationCheck:
    """A replacement whose reserved node still takes it needs no matching. A reservation whose node does not take the
    replacement any more is given up."""
    kept = snapshot.moves.reservations(snapshot.at, settings.execution)
    bindable: list[PlannedMove] = []
    unreserved: list[str] = []
    for uid, node in pending.reserved_nodes.items():
        pod = snapshot.cluster.pods[uid]
        others = [each for each in kept if each.move.replacement != uid]
        if node is not None and fits_now(pod, node, snapshot, others):
            moved = next(each.pod.key for each in kept if each.move.replacement == uid)
            reasons = (f"{node} is reserved for the replacement of {moved}",)
            bindable.append(PlannedMove(pod.key, uid, None, node, 1, reasons))
        else:
            unreserved.append(uid)
            kept = others
    return ReservationCheck(tuple(bindable), tuple(unreserved), tuple(kept))
