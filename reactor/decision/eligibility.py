"""Pods about which `reactor.planning.problems.why_fixed` has nothing to say, told at a glance.

In a large cluster nearly every pod is one of them, and to go through all checks for each takes longer than the plan.
Whoever is not found ordinary here is only asked in full; so a check may be missing here only if it cannot fix a pod.
"""

from __future__ import annotations

from dataclasses import dataclass

from reactor.cluster.records import Pod
from reactor.cluster.view import ClusterView
from reactor.decision.managed import Management
from reactor.decision.pdbs import why_not_evictable
from reactor.decision.protection import SYSTEM_PRIORITIES, SYSTEM_PRIORITY_VALUE, UNMOVED_OWNERS
from reactor.settings.model import Settings
from reactor.state.moves import Ongoing
from reactor.state.snapshot import Needs, Snapshot


@dataclass(frozen=True, slots=True)
class Ordinary:
    view: ClusterView
    ongoing: Ongoing
    management: Management
    scheduler_name: str
    known: frozenset[str] | None
    """Pods whose needs were measured lately; None where that does not matter."""

    @classmethod
    def of(cls, snapshot: Snapshot, settings: Settings, management: Management) -> Ordinary:
        known = snapshot.usage.known_pods() if snapshot.needs is Needs.METRICS else None
        return cls(snapshot.cluster, snapshot.ongoing, management, settings.scheduler_name, known)

    def covers(self, pods: list[Pod]) -> list[bool]:
        """One answer per pod."""
        if self.view.unread_namespaces:
            return [False] * len(pods)
        workloads = self.view.workloads
        return [
            (owner := pod.owner) is not None
            and owner.uid in workloads
            and owner.kind not in UNMOVED_OWNERS
            and not pod.annotations
            and pod.deleting is None
            and pod.phase == "Running"
            and not (pod.pvcs or pod.local_data or pod.unsupported or pod.mirror)
            and pod.priority_class not in SYSTEM_PRIORITIES
            and pod.priority < SYSTEM_PRIORITY_VALUE
            and pod.scheduler_name == self.scheduler_name
            and self._undisturbed(pod)
            for pod in pods
        ]

    def _undisturbed(self, pod: Pod) -> bool:
        """Managed and measured, and no move or budget that could concern it."""
        ongoing = self.ongoing
        return (
            (self.known is None or pod.uid in self.known)
            and pod.uid not in ongoing.lineage
            and pod.uid not in ongoing.resting
            and pod.node not in ongoing.relieved
            and (not self.view.pdbs or not why_not_evictable(pod, self.view))
            and self.management.covers(pod)
        )
