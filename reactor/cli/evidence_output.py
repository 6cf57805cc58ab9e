"""How likely it was that a pod fails because of where it is, and what that is made of, as text."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from reactor.cli.output import table
from reactor.record.unhappy_pods import EvidencePart, UnhappyPod


def evidence_of_one(likely: float, parts: Sequence[EvidencePart]) -> str:
    """The odds are the product of the ratios."""
    odds = math.prod(part.ratio for part in parts)
    factors = " x ".join(_ratio(part) for part in parts)
    rows = [(part.name, _ratio(part), part.text) for part in parts]
    found = table(("evidence", "ratio", "what is known"), rows)
    return f"{likely:.0%} likely the cause; odds {odds:.3g} = {factors}\n{found}"


def evidence_of_all(pods: Iterable[UnhappyPod]) -> str:
    """Empty without any."""
    rows = [(one.pod, part.name, _ratio(part), part.text) for one in pods for part in one.evidence]
    return table(("unhappy", "evidence", "ratio", "what is known"), rows) if rows else ""


def _ratio(part: EvidencePart) -> str:
    return f"{part.ratio:.3g}"
