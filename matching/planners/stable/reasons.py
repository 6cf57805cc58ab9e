"""Why pods move, or stay, in a plan that makes unhappy pods happy with few moves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from matching.array_types import NOWHERE, Floats, Ints
from matching.model.arrays import Arrays
from matching.model.ledger import Ledger
from matching.planning.expectation import usual_loads
from matching.planning.outcome import Choice
from matching.planning.prepared import PreparedProblem
from matching.planning.reasons.obstacles import some
from matching.planning.reasons.wording import PENDING, degraded, percent, unhappy_on


@dataclass(frozen=True, slots=True)
class _Loads:
    """Of the nodes with one placement."""

    usual: Floats
    """What moves are weighed by."""
    at_peak: Floats

    @classmethod
    def of(cls, arrays: Arrays, at: Ints) -> _Loads:
        return cls(usual_loads(arrays, at), Ledger(arrays, at).shares().max(axis=0, initial=0.0))

    def shown(self, node: int) -> str:
        usual, at_peak = percent(float(self.usual[node])), percent(float(self.at_peak[node]))
        return f"{usual} ({at_peak} at peak)" if usual != at_peak else f"{usual} at peak"


@dataclass(frozen=True, slots=True)
class RematchReasons:
    """Other nodes are compared by how loaded they would end."""

    prepared: PreparedProblem
    choice: Choice
    left: frozenset[int]
    """Unhappy pods that no move was found for."""
    before: _Loads
    after: _Loads

    @classmethod
    def of(cls, prepared: PreparedProblem, choice: Choice, left: Iterable[int]) -> RematchReasons:
        before, after = (_Loads.of(prepared.arrays, at) for at in (prepared.arrays.current, choice.at))
        return cls(prepared, choice, frozenset(left), before, after)

    def rank(self, pod: int) -> int:
        costs = self.costs(pod)
        allowed = self.prepared.candidates.of(pod)
        return int((costs[allowed] < costs[self.choice.at[pod]]).sum()) + 1

    def why_moved(self, pod: int) -> tuple[str, ...]:
        target = int(self.choice.at[pod])
        where = f"{self.prepared.arrays.nodes[target].name} will end at {self.after.shown(target)}"
        if pod not in self.choice.headroom:
            return self._why_pod(pod), where
        less = degraded(self.choice.headroom[pod], self.prepared.arrays.options.headroom)
        return self._why_pod(pod), where, less

    def why_stayed(self, pods: Ints) -> Sequence[str]:
        texts = np.full(len(self.prepared.arrays.pods), "happy, and it does not have to make room", dtype=object)
        texts[self.prepared.arrays.unhappy] = "unhappy, but pods that leave relieve its node enough"
        texts[list(self.left)] = "unhappy, but no move was found that helps it and harms no other pod"
        found: Sequence[str] = texts[pods].tolist()
        return found

    def costs(self, pod: int) -> Floats:
        elsewhere = self.choice.at.copy()
        elsewhere[pod] = NOWHERE
        costs: Floats = Ledger(self.prepared.arrays, elsewhere).shares_with(pod).max(axis=0, initial=0.0)
        return costs

    def describe_cost(self, cost: float) -> str:
        return f"would end at {percent(cost)} at peak"

    def _why_pod(self, pod: int) -> str:
        arrays, current = self.prepared.arrays, int(self.prepared.arrays.current[pod])
        if current == NOWHERE:
            return PENDING
        name = arrays.nodes[current].name
        if arrays.unhappy[pod]:
            return unhappy_on(name, self.before.shown(current))
        arriving = np.flatnonzero(
            (self.choice.at == current) & (arrays.current != current) & (arrays.current != NOWHERE)
        ).tolist()
        if arriving:
            return f"happy, but makes room on {name} for {some(arrays.pods[other].key for other in arriving)}"
        staying = np.flatnonzero((self.choice.at == current) & arrays.unhappy).tolist()
        if not staying:
            return f"happy, but {name} is at {self.before.shown(current)}"
        return f"happy, but its leaving relieves {some(arrays.pods[other].key for other in staying)} on {name}"
