"""Happiness: from decayed counts of liveness probes to a probability, and the threshold that applies to a pod."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from reactor.cluster.records import Namespace, Pod
from reactor.settings.model import Happiness
from reactor.signals.probe_counts import ProbeCounts

THRESHOLD_ANNOTATION = "rematch.io/threshold"


def probability(counts: ProbeCounts, goodwill: float) -> float:
    """Pr = (m + S) / (m + S + F). A pod of which nothing is known is happy."""
    good = goodwill + counts.successes
    total = good + counts.failures
    return good / total if total > 0 else 1.0


class ThresholdSource(StrEnum):
    POD_ANNOTATION = "pod annotation"
    NAMESPACE_ANNOTATION = "namespace annotation"
    NAMESPACE_SETTINGS = "namespace settings"
    GLOBAL = "global"


@dataclass(frozen=True, slots=True)
class Threshold:
    """`problem` names annotations that were ignored because they are not a number from 0 to 1."""

    value: float
    source: ThresholdSource
    problem: str = ""


def threshold_of(pod: Pod, namespace: Namespace | None, settings: Happiness) -> Threshold:
    problems: list[str] = []
    annotated = (
        (ThresholdSource.POD_ANNOTATION, pod.annotations.get(THRESHOLD_ANNOTATION)),
        (ThresholdSource.NAMESPACE_ANNOTATION, namespace.annotations.get(THRESHOLD_ANNOTATION) if namespace else None),
    )
    for source, text in annotated:
        if text is None:
            continue
        value = _share(text)
        if value is not None:
            return Threshold(value, source, "; ".join(problems))
        problems.append(f"{source} {THRESHOLD_ANNOTATION}={text[:40]!r} is not a number from 0 to 1")
    by_settings = settings.namespaces.get(pod.namespace)
    if by_settings is not None:
        return Threshold(by_settings, ThresholdSource.NAMESPACE_SETTINGS, "; ".join(problems))
    return Threshold(settings.threshold, ThresholdSource.GLOBAL, "; ".join(problems))


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


def _share(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value <= 1 else None
