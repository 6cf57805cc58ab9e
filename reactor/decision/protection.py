"""Which pods are never moved, whatever their happiness: the first veto that applies, with its evidence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from reactor.cluster.pod_constraints import bound_pvs
from reactor.cluster.records import Pod
from reactor.cluster.view import ClusterView
from reactor.settings.model import Settings

DO_NOT_MOVE = "rematch.io/do-not-move"

_FOREIGN_MARKS = {
    "cluster-autoscaler.kubernetes.io/safe-to-evict": ("false",),
    "karpenter.sh/do-not-disrupt": ("true",),
}
_DESCHEDULER_MARK = "descheduler.alpha.kubernetes.io/prefer-no-eviction"
SYSTEM_PRIORITIES = ("system-cluster-critical", "system-node-critical")
SYSTEM_PRIORITY_VALUE = 2_000_000_000
UNMOVED_OWNERS = frozenset({"DaemonSet", "Job", "Node"})
"""Kinds of owners whose pods are never moved, whether the owner is known or not."""


class Veto(StrEnum):
    """Why a pod is never moved, named so that it reads well after `protected:`."""

    TERMINATING = "terminating"
    FINISHED = "finished"
    MIRROR = "mirrorPod"
    KUBE_SYSTEM = "kubeSystem"
    SYSTEM_CRITICAL = "systemCritical"
    NO_CONTROLLER = "noController"
    CONTROLLER_GONE = "controllerGone"
    DAEMON_SET = "daemonSet"
    JOB = "job"
    ANNOTATION = "annotation"
    LOCAL_DATA = "localData"


@dataclass(frozen=True, slots=True)
class Protection:
    veto: Veto
    evidence: str


def protection(pod: Pod, view: ClusterView, settings: Settings) -> Protection | None:
    """The first reason that this pod must stay where it is, or None."""
    for check in _CHECKS:
        found = check(pod, view, settings)
        if found is not None:
            return found
    return None


def _end_of_life(pod: Pod, _view: ClusterView, _settings: Settings) -> Protection | None:
    if pod.deleting is not None:
        return Protection(Veto.TERMINATING, "the pod is being deleted")
    if pod.finished:
        return Protection(Veto.FINISHED, f"its phase is {pod.phase}")
    return None


def _system(pod: Pod, _view: ClusterView, _settings: Settings) -> Protection | None:
    if pod.mirror:
        return Protection(Veto.MIRROR, "a static pod belongs to its kubelet")
    if pod.namespace == "kube-system":
        return Protection(Veto.KUBE_SYSTEM, "kube-system is never touched")
    if pod.priority_class in SYSTEM_PRIORITIES or pod.priority >= SYSTEM_PRIORITY_VALUE:
        return Protection(Veto.SYSTEM_CRITICAL, f"its priority is {pod.priority_class or pod.priority}")
    return None


def _owner(pod: Pod, view: ClusterView, _settings: Settings) -> Protection | None:
    if pod.owner is None:
        return Protection(Veto.NO_CONTROLLER, "nobody would create it again")
    if pod.owner.kind == "DaemonSet":
        return Protection(Veto.DAEMON_SET, f"DaemonSet {pod.owner.name} wants it on this node")
    if pod.owner.kind == "Job":
        return Protection(Veto.JOB, f"Job {pod.owner.name} would lose its work")
    if pod.owner.kind == "Node":
        return Protection(Veto.MIRROR, "a static pod belongs to its kubelet")
    if pod.owner.uid not in view.workloads:
        text = f"its {pod.owner.kind} {pod.owner.name} is gone, or of a kind that is not watched"
        return Protection(Veto.CONTROLLER_GONE, text)
    return None


def _annotations(pod: Pod, _view: ClusterView, _settings: Settings) -> Protection | None:
    own = pod.annotations.get(DO_NOT_MOVE)
    if own is not None and own.lower() != "false":
        return Protection(Veto.ANNOTATION, f"{DO_NOT_MOVE}: {own}")
    if _DESCHEDULER_MARK in pod.annotations:
        return Protection(Veto.ANNOTATION, _DESCHEDULER_MARK)
    for key, values in _FOREIGN_MARKS.items():
        value = pod.annotations.get(key)
        if value is not None and value.lower() in values:
            return Protection(Veto.ANNOTATION, f"{key}: {value}")
    return None


def _local_data(pod: Pod, view: ClusterView, settings: Settings) -> Protection | None:
    if settings.execution.allow_local_data or not (pod.local_data or pod.pvcs):
        return None
    local = [f"local volume {volume.name}" for volume in bound_pvs(pod, view) if volume.local]
    found = (*pod.local_data, *local)
    return Protection(Veto.LOCAL_DATA, f"{', '.join(found)} (execution.allowLocalData lifts this)") if found else None


_CHECKS: tuple[Callable[[Pod, ClusterView, Settings], Protection | None], ...] = (
    _end_of_life,
    _system,
    _owner,
    _annotations,
    _local_data,
)
