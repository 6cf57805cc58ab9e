"""Checks at the start of a surge, and whether its second try may be a hard hint.

`reactor.decision.strategies` chooses the strategy of a pod from what the watches show. A surge changes its owner, so
that is read once more before the first call.
"""

from __future__ import annotations

from matching.feasibility import removal_taint
from reactor.cluster.records import Pod, Workload
from reactor.cluster.surge_writes import OwnerNow
from reactor.cluster.view import ClusterView
from reactor.execution.surge_marks import is_marked
from reactor.settings.model import Settings
from reactor.state.steering import SteeringStatus, Way

_AUTOSCALER_LABEL = "karpenter.sh/"


def scaled_object(pod: Pod, view: ClusterView) -> Workload | None:
    """The object whose `replicas` count: the Deployment of the pod's ReplicaSet, or a ReplicaSet without one."""
    workload = view.workload_of(pod)
    return workload if workload is not None and workload.kind in ("Deployment", "ReplicaSet") else None


def why_no_surge(pod: Pod, view: ClusterView, owner: OwnerNow | None, journal: str) -> str:
    """Why a surge cannot start now; empty when it can. `owner` is the scaled object as the API server has it.

    A hint is meant for one pod, so nothing else may be making pods of this owner.
    """
    scaled = scaled_object(pod, view)
    if scaled is not None and is_marked(scaled, journal):
        return "an earlier surge of its owner has not been taken back yet"
    replica_set = view.workloads.get(pod.owner.uid) if pod.owner is not None else None
    if replica_set is None or owner is None:
        return "its owner is gone"
    if owner.paused:
        return "its Deployment is paused"
    existing = sum(each.active for each in view.pods_of(replica_set.uid))
    if not owner.settled or not existing == replica_set.replicas == owner.replicas:
        return "its owner is rolled out or scaled right now"
    return ""


def may_pin(pod: Pod | None, view: ClusterView, settings: Settings, steering: SteeringStatus) -> bool:
    """By policy a nodeSelector for life: not with DoNotSchedule spread, which then counts one node only, and beside a
    node autoscaler only where the settings allow it. What an extender filters holds for one decision only."""
    way = None if pod is None else steering.way(pod, settings)
    if way is Way.EXTENDER:
        return True
    if pod is None or pod.rules.spread or way is not Way.POLICY:
        return False
    autoscaled = any(
        any(label.startswith(_AUTOSCALER_LABEL) for label in node.labels) or removal_taint(node.taints)
        for node in view.nodes.values()
    )
    return settings.placement.pins_beside_autoscaler or not autoscaled
