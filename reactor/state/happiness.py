"""Happiness: from decayed counts of liveness probes to the probability that a pod is happy on its node."""

from __future__ import annotations

from dataclasses import dataclass

from reactor.cluster.records import Namespace, Pod
from reactor.settings.model import Happiness
from reactor.signals.probe_counts import HalfLife, ProbeCounts
from reactor.state.thresholds import Threshold, threshold_of


def half_life(settings: Happiness) -> HalfLife:
    return HalfLife(settings.half_life, settings.half_life_probes)


def probability(counts: ProbeCounts, goodwill: float) -> float:
    """Pr = (m + S) / (m + S + F). A pod of which nothing is known is happy."""
    good = goodwill + counts.successes
    total = good + counts.failures
    return good / total if total > 0 else 1.0


@dataclass(frozen=True, slots=True)
class PodHappiness:
    """The probability that a pod is happy on its node, and the threshold that applies to it."""

    counts: ProbeCounts
    probability: float
    threshold: Threshold

    @classmethod
    def of(cls, pod: Pod, namespace: Namespace | None, counts: ProbeCounts, settings: Happiness) -> PodHappiness:
        return cls(counts, probability(counts, settings.goodwill), threshold_of(pod, namespace, settings))

    @property
    def unhappy(self) -> bool:
        return self.probability < self.threshold.value

    @property
    def only_annotated(self) -> bool:
        """Unhappy by an annotation alone: by the settings it would be happy."""
        return self.threshold.only_annotated(self.probability)
