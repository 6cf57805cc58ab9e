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


def _share(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value <= 1 else None
