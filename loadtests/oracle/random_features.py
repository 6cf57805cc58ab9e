"""Which features of Kubernetes a random cluster uses.

With all features in every cluster nearly every pod is refused everywhere, by the first of many reasons. So each cluster
uses a few of them, often.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from loadtests.same_plans.draw import Draw

_SHARE_OF_CLUSTERS = 0.2


class Feature(StrEnum):
    TAINTS = "taints"
    NODE_AFFINITY = "node affinity"
    ODD_NUMBERS = "odd numbers"
    """Values of Gt and Lt, and labels compared with them, that Go or Python read differently or not at all."""
    HOST_PORTS = "host ports"
    SPREAD = "topology spread"
    POD_AFFINITY = "pod affinity"
    NAMESPACE_SELECTOR = "namespace selectors"
    BOUND_VOLUMES = "bound volumes"
    UNBOUND_CLAIMS = "unbound claims"
    EPHEMERAL_VOLUMES = "ephemeral volumes"
    VOLUME_LIMITS = "volume limits"
    RESIZE = "resize"
    NOMINATED = "nominated nodes"
    POD_RESOURCES = "pod-level resources"
    INIT_CONTAINERS = "init containers"
    EXTENDED_RESOURCES = "extended resources"
    NO_POD_COUNT = "no pod count"
    HUGE_NODES = "huge nodes"
    FULL_NODES = "full nodes"
    """Pods of few sizes that fill nodes to the last byte, and some that are a byte too big."""
    CORDONED = "cordoned nodes"
    TERMINATING = "terminating pods"
    DECLARED_FEATURES = "declared features"
    OTHER_VOLUMES = "other volumes"


@dataclass(frozen=True, slots=True)
class Features:
    draw: Draw
    used: frozenset[Feature]

    @classmethod
    def random(cls, draw: Draw) -> Features:
        return cls(draw, frozenset(feature for feature in Feature if draw.chance(_SHARE_OF_CLUSTERS)))

    def chance(self, feature: Feature, probability: float) -> bool:
        """Whether this object uses it; never in a cluster without it."""
        return self.draw.chance(probability) and feature in self.used
