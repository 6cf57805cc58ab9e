"""One frozen view of everything a decision may read, taken at one instant."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from reactor.cluster.records import Namespace, Pod
from reactor.cluster.view import ClusterView
from reactor.settings.model import Happiness
from reactor.signals.probe_counts import Counts
from reactor.signals.usage import UsageView
from reactor.state.happiness import Threshold, probability, threshold_of
from reactor.state.moves import Ongoing


class Needs(StrEnum):
    """What a pod is taken to need: what was measured, or its requests (a file without metrics, or on request)."""

    METRICS = "metrics"
    REQUESTS = "requests"


@dataclass(frozen=True, slots=True)
class PodHappiness:
    """How happy a pod is where it is, and the threshold that applies to it."""

    counts: Counts
    probability: float
    threshold: Threshold

    @classmethod
    def of(cls, pod: Pod, namespace: Namespace | None, counts: Counts, settings: Happiness) -> PodHappiness:
        return cls(counts, probability(counts, settings.goodwill), threshold_of(pod, namespace, settings))

    @property
    def unhappy(self) -> bool:
        return self.probability < self.threshold.value


@dataclass(frozen=True, slots=True)
class Snapshot:
    at: float
    cluster: ClusterView
    usage: UsageView
    happiness: Mapping[str, PodHappiness]
    """By pod UID; only pods with a failed probe on their account can be unhappy, so only they are here."""
    ongoing: Ongoing
    needs: Needs = Needs.METRICS

    def unhappy_pods(self) -> list[Pod]:
        pods = (self.cluster.pods.get(uid) for uid, mood in self.happiness.items() if mood.unhappy)
        return sorted((pod for pod in pods if pod is not None and pod.deleting is None), key=lambda pod: pod.key)
