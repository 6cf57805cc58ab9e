"""Pods that wait for our binder: who is to be placed now, and for whom a node is held."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from reactor.cluster.pod_constraints import unsupported_constraints
from reactor.cluster.records import Pod
from reactor.execution.follow import reserved
from reactor.settings.model import Settings
from reactor.state.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Pending:
    place: Mapping[str, str | None]
    """By UID: the node that a reservation holds for the pod, or None."""
    unsupported: tuple[Pod, ...]
    """Not bound, because a hard constraint of theirs cannot be judged."""


def pending_pods(snapshot: Snapshot, settings: Settings) -> Pending:
    """Ours by scheduler name, whether managed or not: nobody else would bind them.

    Gated pods are left alone, and a pod whose binding just failed has to wait a little.
    """
    waiting = [
        pod
        for pod in snapshot.cluster.pods.values()
        if pod.node is None
        and pod.scheduler_name == settings.scheduler_name
        and not pod.gates
        and not pod.finished
        and pod.deleting is None
        and snapshot.at >= snapshot.ongoing.unbound.get(pod.uid, 0.0)
    ]
    held = {
        run.replacement: run.move.target
        for run in snapshot.ongoing.in_flight
        if run.replacement is not None and reserved(run, snapshot.at, settings.execution)
    }
    unsupported = tuple(pod for pod in waiting if unsupported_constraints(pod, snapshot.cluster))
    left = {pod.uid for pod in unsupported}
    return Pending({pod.uid: held.get(pod.uid) for pod in waiting if pod.uid not in left}, unsupported)
