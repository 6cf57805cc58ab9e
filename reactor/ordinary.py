"""Pods about which `reactor.planning.why_fixed` has nothing to say, told at a glance.

In a large cluster nearly every pod is one of them, and to go through all checks for each takes longer than the plan.
Whoever is not found ordinary here is only asked in full; so a check may be missing here only if it cannot fix a pod.
"""

from __future__ import annotations

from dataclasses import dataclass

from reactor.cluster.records import Pod
from reactor.execution.budgets import why_not_evictable
from reactor.management import Management
from reactor.protection import SYSTEM_PRIORITIES, SYSTEM_PRIORITY_VALUE, UNMOVED_OWNERS
from reactor.settings.model import Settings
from reactor.settings.selector import matches
from reactor.snapshot import Needs, Snapshot


@dataclass(frozen=True, slots=True)
class Ordinary:
    snapshot: Snapshot
    settings: Settings
    management: Management
    known: frozenset[str] | None
    """Pods whose needs were measured lately; None where that does not matter."""

    @classmethod
    def of(cls, snapshot: Snapshot, settings: Settings, management: Management) -> Ordinary:
        measured = snapshot.needs is Needs.METRICS
        return cls(snapshot, settings, management, snapshot.usage.known_pods() if measured else None)

    def covers(self, pods: list[Pod]) -> list[bool]:
        """One answer per pod."""
        if self.snapshot.cluster.unread_namespaces:
            return [False] * len(pods)
        return [self._plain(pod) and self._undisturbed(pod) and self._managed(pod) for pod in pods]

    def _plain(self, pod: Pod) -> bool:
        """It runs, somebody would create it again, and nothing is said about it."""
        owner = pod.owner
        return (
            owner is not None
            and not pod.annotations
            and pod.deleting is None
            and pod.phase == "Running"
            and owner.kind not in UNMOVED_OWNERS
            and owner.uid in self.snapshot.cluster.workloads
            and not (pod.claims or pod.local_data or pod.unjudged or pod.mirror)
            and pod.priority_class not in SYSTEM_PRIORITIES
            and pod.priority < SYSTEM_PRIORITY_VALUE
        )

    def _undisturbed(self, pod: Pod) -> bool:
        """Measured, and no move or budget that could concern it."""
        ongoing, view = self.snapshot.ongoing, self.snapshot.cluster
        return (
            (self.known is None or pod.uid in self.known)
            and pod.uid not in ongoing.lineage
            and pod.uid not in ongoing.resting
            and pod.node not in ongoing.relieved
            and (not view.budgets or not why_not_evictable(pod, view))
        )

    def _managed(self, pod: Pod) -> bool:
        management = self.management
        return (
            pod.namespace != "kube-system"
            and (not management.namespaces or pod.namespace in management.namespaces)
            and pod.scheduler_name == self.settings.scheduler_name
            and (management.scheduler_name is None or pod.scheduler_name == management.scheduler_name)
            and (not management.requirements or matches(management.requirements, pod.labels))
        )
