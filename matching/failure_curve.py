"""How likely a liveness probe fails, as a function of the load of the pod's node.

Decisions and plans use the same curve: how likely is it that a pod fails because of where it is, and how much would
another node help? The default is a cautious prior. `predictors` fits the parameters to recorded probes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from matching.array_types import Floats


@dataclass(frozen=True, slots=True)
class FailureCurve:
    """A logistic curve from `floor` (an idle node) to `ceiling` (a node far beyond its capacity). The load is a share
    of what the node can give, on its worst axis; above 1 the pods want more than there is."""

    floor: float = 0.0005
    ceiling: float = 0.6
    midpoint: float = 1.02
    """The load at which half of the rise is done."""
    width: float = 0.03
    """The load over which the odds rise by a factor of e."""

    def __post_init__(self) -> None:
        values = (self.floor, self.ceiling, self.midpoint, self.width)
        if not all(map(math.isfinite, values)) or not 0 <= self.floor <= self.ceiling <= 1 or self.width <= 0:
            raise ValueError(f"a failure curve needs 0 <= floor <= ceiling <= 1 and a positive width, not {values}")

    def probabilities(self, load: Floats) -> Floats:
        exponent = np.clip((self.midpoint - load) / self.width, -60.0, 60.0)
        risen: Floats = self.floor + (self.ceiling - self.floor) / (1.0 + np.exp(exponent))
        return risen

    def probability(self, load: float) -> float:
        return float(self.probabilities(np.array(load)))
