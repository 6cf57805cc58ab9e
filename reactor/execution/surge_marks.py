"""Marks that surges leave on what they change, and how a surge is found by them whose journal entry somebody deleted.

They cost no write of their own. A pod has the annotation `rematch.io/surge` from the patch that changes it to the one
that takes this back. Of an owner the field manager of `replicas` is the mark: it is ours until anybody changes the
number. A mark counts only for the journal that it names, and on the pod whose UID it holds.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

import msgspec
from msgspec import Struct

from matching.problem import Strategy
from reactor.cluster.decoding.workloads import SURGE_MANAGER
from reactor.cluster.records import Owner, Pod, Workload
from reactor.cluster.surge_writes import SURGE
from reactor.cluster.view import ClusterView
from reactor.execution.steering import MOVE_LABEL
from reactor.state.moves import Move, MoveState, PodRef

_OUTCOME = "its journal entry was deleted and its leader ended: it is taken back"
_UID_END = 12


class PodMark(Struct, frozen=True, omit_defaults=True):
    """What is needed to take back what a surge has done to a pod."""

    journal: str
    move: str
    pod: str
    """UID: a copy of the annotation on another pod means nothing."""
    owner: Owner | None = None
    """The ReplicaSet that a released pod had."""
    hash: str = ""
    """The label that a released pod had."""
    labels: tuple[tuple[str, str], ...] = ()
    """Those that were taken off a released pod."""
    cost: str | None = None
    """The pod-deletion-cost before ours, empty without one; None: it has none of ours."""


def pod_mark(move: Move, pod: Pod, journal: str, cost: str | None = None) -> dict[str, str | None]:
    """As an annotation, for the patch that releases or detaches the pod, or that sets its deletion cost."""
    mark = PodMark(journal, move.id, pod.uid, cost=cost)
    if cost is None:
        mark = PodMark(journal, move.id, pod.uid, move.owner, move.template_hash, move.detached)
    return {SURGE: msgspec.json.encode(mark).decode()}


def owner_mark(move: Move, journal: str) -> str:
    """The field manager of a scale-up; at most 128 characters."""
    return f"{SURGE_MANAGER}{journal}/{move.id}/{move.pod.uid[-_UID_END:]}"


def is_marked(owner: Workload, journal: str) -> bool:
    """Whether a scale-up of this journal is in force: the one of a move in flight, or a forgotten one. Another scale-up
    would replace its mark."""
    return owner.surge.startswith(f"{journal}/")


def labels_taken_off(move: Move, pod: Pod) -> dict[str, str]:
    """As the journal or the pod says: a late write may have come after the surge was found by its mark."""
    mark = _mark_of(pod)
    return dict(move.detached) | (dict(mark.labels) if mark is not None and mark.move == move.id else {})


def forgotten_surges(view: ClusterView, journal: str, known: Collection[str], now: float) -> list[Move]:
    """The surges of this journal that are under way and not known, as moves that are taken back."""
    marked = [(pod, mark) for pod, mark in _marked_pods(view, journal) if mark.move not in known]
    costs = {pod.uid: mark.cost for pod, mark in marked}
    found = [
        *_scaled(view, journal, costs),
        *(_released(*each, view, costs) for each in marked if each[0].owner is None),
    ]
    taken = {move.id for move in found}
    found += [_costed(pod, mark, view) for pod, mark in marked if mark.cost is not None and mark.move not in taken]
    unknown = {move.id: replace(move, began=now, settling=now) for move in found if move.id not in known}
    return list(unknown.values())


def _marked_pods(view: ClusterView, journal: str) -> Iterator[tuple[Pod, PodMark]]:
    for pod in view.pods.values():
        mark = _mark_of(pod) if SURGE in pod.annotations and pod.active else None
        if mark is not None and mark.journal == journal:
            yield pod, mark


def _mark_of(pod: Pod) -> PodMark | None:
    try:
        mark = msgspec.json.decode(pod.annotations.get(SURGE, ""), type=PodMark)
    except msgspec.MsgspecError:
        return None  # not ours
    return mark if mark.pod == pod.uid else None


def _scaled(view: ClusterView, journal: str, costs: Mapping[str, str | None]) -> Iterator[Move]:
    """By owners whose replicas were last changed by a scale-up. The replacement is the pod that the policy has stamped,
    else the newest one."""
    for top in view.workloads.values():
        place, _, rest = top.surge.partition("/")
        move_id, _, uid_end = rest.partition("/")
        owner = _replica_set(top, view)
        if place != journal or not move_id or owner is None:
            continue
        pods = [pod for pod in view.pods_of(owner.uid) if pod.active]
        old = next((pod for pod in pods if pod.uid[-_UID_END:] == uid_end), None)
        move = _taken_back(move_id, old, Owner(owner.kind, owner.name, owner.uid), top, Strategy.SCALE_SURGE)
        new = _replacement(move_id, [pod for pod in pods if pod is not old])
        yield replace(
            move,
            replicas=top.replicas - 1,
            old_cost=None if old is None else costs.get(old.uid),
            new_cost=None if new is None else costs.get(new.uid),
            replacement=None if new is None else new.uid,
            replacement_key="" if new is None else new.key,
        )


def _released(pod: Pod, mark: PodMark, view: ClusterView, costs: Mapping[str, str | None]) -> Move:
    """A pod that its ReplicaSet let go. The mark may be anybody's: only an owner of its own namespace counts."""
    found = view.workloads.get(mark.owner.uid) if mark.owner is not None else None
    owner = found if found is not None and found.namespace == pod.namespace else None
    top = None if owner is None else _top(owner, view)
    move = _taken_back(mark.move, pod, mark.owner, top, Strategy.RELEASE_SURGE)
    new = _replacement(mark.move, [each for each in view.pods_of(owner.uid) if each.active] if owner else [])
    return replace(
        move,
        template_hash=mark.hash,
        detached=mark.labels,
        replicas=0 if top is None else top.replicas,
        new_cost=None if new is None else costs.get(new.uid),
        replacement=None if new is None else new.uid,
        replacement_key="" if new is None else new.key,
    )


def _costed(pod: Pod, mark: PodMark, view: ClusterView) -> Move:
    """Nothing but the deletion cost is left."""
    owner = view.workloads.get(pod.owner.uid) if pod.owner is not None else None
    top = None if owner is None else _top(owner, view)
    move = _taken_back(mark.move, pod, pod.owner, top, Strategy.SCALE_SURGE)
    return replace(move, state=MoveState.UNDONE, replicas=0 if top is None else top.replicas, old_cost=mark.cost)


def _taken_back(move_id: str, pod: Pod | None, owner: Owner | None, top: Workload | None, strategy: Strategy) -> Move:
    reference = PodRef(top.namespace if top is not None else "", top.name if top is not None else "", "")
    if pod is not None:
        reference = PodRef(pod.namespace, pod.name, pod.uid)
    return Move(
        id=move_id,
        plan_id="",
        pod=reference,
        owner=owner,
        template_hash="" if pod is None else pod.template_hash,
        workload="" if top is None else f"{top.kind}/{top.namespace}/{top.name}",
        source="" if pod is None else pod.node or "",
        target="",
        strategy=strategy,
        state=MoveState.UNDOING,
        outcome=_OUTCOME,
        scaled=None if top is None else Owner(top.kind, top.name, top.uid),
    )


def _replica_set(top: Workload, view: ClusterView) -> Workload | None:
    """The ReplicaSet that has the Deployment's pods now; a ReplicaSet without one is it."""
    if top.kind == "ReplicaSet":
        return top
    owned = (each for each in view.workloads.values() if each.owner is not None and each.owner.uid == top.uid)
    return max(owned, key=lambda each: each.replicas, default=None)


def _top(owner: Workload, view: ClusterView) -> Workload:
    return view.workloads.get(owner.owner.uid, owner) if owner.owner is not None else owner


def _replacement(move_id: str, pods: list[Pod]) -> Pod | None:
    return max(pods, key=lambda pod: (pod.labels.get(MOVE_LABEL) == move_id, pod.created, pod.name), default=None)
