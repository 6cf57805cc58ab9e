"""Who places the replacement of a moved pod in this cluster, as a value for decisions and pages."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from reactor.cluster.records import Pod
from reactor.settings.model import Settings, SteeringMode


class Way(StrEnum):
    """How the replacement of one pod is sent to its planned node."""

    POLICY = "policy"
    BINDER = "binder"
    EXTENDER = "extender"
    NOBODY = "nobody"
    """It lands where its scheduler puts it."""

    @property
    def hints(self) -> bool:
        """Whether a hint says which node it is."""
        return self in (Way.POLICY, Way.EXTENDER)


@dataclass(frozen=True, slots=True)
class SteeringStatus:
    """`policy_works` by discovery and the canary; `problem` says what is missing and the command that mends it."""

    policy_works: bool = False
    problem: str = "the MutatingAdmissionPolicy rematch-hints was not looked for yet"
    tried: bool = False
    """By the canary. Without it `policy_works` says only that everything is installed."""
    extender_problem: str = "whether kube-scheduler asks an extender of Rematch was not looked at yet"
    """Empty when it does."""

    def way(self, pod: Pod, settings: Settings) -> Way | None:
        """None when this pod cannot be steered; `why_not` says why. Pods with our schedulerName are bound by us in any
        case: nobody else would."""
        steering = settings.placement.steering
        if pod.scheduler_name == settings.scheduler_name:
            return Way.BINDER
        if steering is SteeringMode.NONE:
            return Way.NOBODY
        if steering is SteeringMode.EXTENDER:
            return None if self.extender_problem else Way.EXTENDER
        if self.policy_works and steering in (SteeringMode.AUTO, SteeringMode.POLICY):
            return Way.POLICY
        return None

    def why_not(self, pod: Pod, settings: Settings) -> str:
        """Why the pod cannot be steered and what to install or to set; empty when it can."""
        if self.way(pod, settings) is not None:
            return ""
        if settings.placement.steering is SteeringMode.BINDER:
            ours = settings.scheduler_name
            return f"placement.steering is binder, which moves only pods with schedulerName {ours}; set it to auto"
        return f"{self.problem_of(settings)}; or set placement.steering: none to evict without steering"

    def problem_of(self, settings: Settings) -> str:
        """What keeps the way of the settings from working; empty when nothing does."""
        return self.extender_problem if settings.placement.steering is SteeringMode.EXTENDER else self.problem
