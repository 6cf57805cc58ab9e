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
    NOBODY = "nobody"
    """It lands where its scheduler puts it."""


@dataclass(frozen=True, slots=True)
class SteeringStatus:
    """`policy_works` by discovery and the canary; `problem` says what is missing and the command that mends it."""

    policy_works: bool = False
    problem: str = "the MutatingAdmissionPolicy rematch-hints was not looked for yet"

    def way(self, pod: Pod, settings: Settings) -> Way | None:
        """None when this pod cannot be steered; then `problem` is the reason."""
        steering = settings.placement.steering
        if self.policy_works and steering in (SteeringMode.AUTO, SteeringMode.POLICY):
            return Way.POLICY
        if steering is SteeringMode.NONE:
            return Way.NOBODY
        if pod.scheduler_name == settings.scheduler_name and steering is not SteeringMode.POLICY:
            return Way.BINDER
        return None
