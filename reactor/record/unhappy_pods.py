"""The unhappy pods that a plan is for, each with its evidence: stored with the plan, and shown afterwards."""

from __future__ import annotations

from collections.abc import Collection

from msgspec import Struct

from reactor.decision.decide import Decision, Unhappy
from reactor.decision.evidence import Evidence

UNHAPPY = "unhappy"
"""Their key in the document of a stored plan."""
MOST_THAT_STAY = 10
"""Pods stored for a plan that does not move them."""


class EvidencePart(Struct, frozen=True, rename="camel"):
    """One part of how likely it is that a pod fails because of where it is. A ratio above 1 speaks for the place."""

    name: str
    ratio: float
    text: str


class UnhappyPod(Struct, frozen=True, rename="camel"):
    """A pod that a rematch is started for, and why a move can help it."""

    pod: str
    uid: str
    happiness: float
    threshold: float
    cause: str
    placement_probability: float | None = None
    """How likely the pod fails because of where it is; null where the decision did not depend on it. The odds are the
    product of the ratios of `evidence`."""
    evidence: tuple[EvidencePart, ...] = ()


def unhappy_pods(decision: Decision) -> tuple[UnhappyPod, ...]:
    return tuple(map(_unhappy_pod, decision.unhappy))


def stored_pods(decision: Decision, moved: Collection[str]) -> tuple[UnhappyPod, ...]:
    """`moved`: the UIDs of the pods that the plan moves. In a large cluster hundreds of others may be unhappy."""
    others = [one.uid for one in decision.unhappy if one.uid not in moved][:MOST_THAT_STAY]
    return tuple(_unhappy_pod(one) for one in decision.unhappy if one.uid in moved or one.uid in others)


def evidence_parts(evidence: Evidence | None) -> tuple[EvidencePart, ...]:
    parts = () if evidence is None else evidence.parts
    return tuple(EvidencePart(part.name, float(f"{part.ratio:.4g}"), part.text) for part in parts)


def _unhappy_pod(one: Unhappy) -> UnhappyPod:
    return UnhappyPod(
        pod=one.pod,
        uid=one.uid,
        happiness=round(one.happiness.probability, 4),
        threshold=one.happiness.threshold.value,
        cause=one.cause,
        placement_probability=None if one.evidence is None else round(one.evidence.probability, 4),
        evidence=evidence_parts(one.evidence),
    )
