"""Which pods we look after: `managed` in the settings."""

from __future__ import annotations

from dataclasses import dataclass

from matching.problem import Requirement
from matching.selectors import matches
from reactor.cluster.records import Pod
from reactor.settings.model import Settings
from reactor.settings.selector import parse_selector


@dataclass(frozen=True, slots=True)
class Management:
    """The parsed form of `managed`, made once per settings revision."""

    namespaces: frozenset[str]
    requirements: tuple[Requirement, ...]
    scheduler_name: str | None

    @classmethod
    def of(cls, settings: Settings) -> Management:
        managed = settings.managed
        return cls(frozenset(managed.namespaces), parse_selector(managed.label_selector), managed.scheduler_name)

    def why_not(self, pod: Pod) -> str | None:
        """None when the pod is managed, else which part of `managed` leaves it out."""
        if pod.namespace == "kube-system":
            return "kube-system is never managed"
        if self.namespaces and pod.namespace not in self.namespaces:
            return f"managed.namespaces does not name {pod.namespace}"
        if self.scheduler_name is not None and pod.scheduler_name != self.scheduler_name:
            return f"managed.schedulerName is {self.scheduler_name}, the pod's is {pod.scheduler_name}"
        if self.requirements and not matches(self.requirements, pod.labels):
            return "managed.labelSelector does not select it"
        return None

    def covers(self, pod: Pod) -> bool:
        return self.why_not(pod) is None
