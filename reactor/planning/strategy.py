"""Which strategy a pod is moved by. `reactor.execution.strategies` carries them out."""

from __future__ import annotations

from dataclasses import dataclass

from matching.problem import Strategy
from reactor.cluster.records import Pod


@dataclass(frozen=True, slots=True)
class ChosenStrategy:
    strategy: Strategy
    reason: str


_EVICTION = ChosenStrategy(Strategy.EVICT, "moved by eviction: its controller creates the replacement")


def choose_strategy(_pod: Pod) -> ChosenStrategy:
    """Eviction is the only strategy, whatever the pod."""
    return _EVICTION
