"""The happiness threshold of a pod: its annotation, else its namespace's, else the settings."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from reactor.cluster.records import Namespace, Pod
from reactor.settings.model import Happiness

THRESHOLD_ANNOTATION = "rematch.io/threshold"


class ThresholdSource(StrEnum):
    POD_ANNOTATION = "pod annotation"
    NAMESPACE_ANNOTATION = "namespace annotation"
    NAMESPACE_SETTINGS = "namespace settings"
    GLOBAL = "global"


_ANNOTATED = (ThresholdSource.POD_ANNOTATION, ThresholdSource.NAMESPACE_ANNOTATION)


@dataclass(frozen=True, slots=True)
class Threshold:
    """`problem` names annotations that are not as they should be."""

    value: float
    source: ThresholdSource
    problem: str = ""
    by_settings: float | None = None
    """What would apply without annotations; None where there is none."""

    def only_annotated(self, probability: float) -> bool:
        """Whether a pod is unhappy by an annotation of its tenant alone."""
        if self.source not in _ANNOTATED or self.by_settings is None:
            return False
        return self.by_settings <= probability < self.value


def threshold_of(pod: Pod, namespace: Namespace | None, settings: Happiness) -> Threshold:
    problems: list[str] = []
    by_settings, source = _by_settings(pod, settings)
    annotated = (
        (ThresholdSource.POD_ANNOTATION, pod.annotations.get(THRESHOLD_ANNOTATION)),
        (ThresholdSource.NAMESPACE_ANNOTATION, namespace.annotations.get(THRESHOLD_ANNOTATION) if namespace else None),
    )
    for annotation, text in annotated:
        if text is None:
            continue
        value = _share(text)
        if value is not None:
            bounded = settings.annotation_bounds.clamp(value)
            if bounded != value:
                problems.append(f"{annotation} says {value:g}, happiness.annotationBounds allows {bounded:g}")
            return Threshold(bounded, annotation, "; ".join(problems), by_settings)
        problems.append(f"{annotation} {THRESHOLD_ANNOTATION}={text[:40]!r} is not a number from 0 to 1")
    return Threshold(by_settings, source, "; ".join(problems))


def _by_settings(pod: Pod, settings: Happiness) -> tuple[float, ThresholdSource]:
    of_namespace = settings.namespaces.get(pod.namespace)
    if of_namespace is not None:
        return of_namespace, ThresholdSource.NAMESPACE_SETTINGS
    return settings.threshold, ThresholdSource.GLOBAL


def _share(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value <= 1 else None
