"""Replicas of a workload are spread over nodes and zones, as by kube-scheduler's default topology spread constraints.

They concern a pod without topology spread constraints of its own that needs a node: a pending or an unhappy one. Every
other replica on a node counts as more distance than nodes can differ by, one in the zone as half of that. So a pod
shares a node with a replica only where nothing else takes it, however well it fits there. Breaking all soft constraints
of its own weighs more than one replica and less than two. Its current node costs nothing, so no pod moves for this.

Replicas are pods of one namespace and workload, without those that are being deleted. A pod sees the pods that rank
above it where they were matched to, and all others where they are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from matching.array_types import NOWHERE, Floats, Ints, Mask
from matching.constraints.soft import SoftConstraints
from matching.problem import Node, Pod

ZONE = "topology.kubernetes.io/zone"

ON_NODE, IN_ZONE = 4.0, 2.0
"""A replica on a node is in its zone as well. Rooms are between 0 and 1, so distances differ by less than 2 on up to
three axes."""
OWN_CONSTRAINTS = 7.0


class DefaultSpread:
    def __init__(
        self, replicas: dict[int, Ints], nodes: Sequence[Node], current: Ints, soft: SoftConstraints | None
    ) -> None:
        """`replicas`: by pod that is spread, all pods of its workload, itself included."""
        self._replicas, self._current, self._soft = replicas, current, soft
        self.applies: Mask = np.zeros(len(current), dtype=bool)
        """By pod."""
        self.applies[list(replicas)] = True
        zones: dict[str, int] = {}
        labels = [node.labels.get(ZONE) for node in nodes]
        self._zone_of = np.array(
            [zones.setdefault(zone, len(zones)) if zone else NOWHERE for zone in labels], dtype=np.int64
        )
        self._zones = len(zones)

    def cost(self, pod: int, where: Ints) -> Floats:
        """(placements, nodes): what it adds to the distance. `where` has a row per placement: the node of each pod at
        this one's turn."""
        on_node, in_zone = self.replicas(pod, where)
        cost: Floats = ON_NODE * on_node + IN_ZONE * in_zone
        if self._soft is not None and self._soft.has_any[pod]:
            cost += OWN_CONSTRAINTS * self._soft.unmet(pod)
        if self._current[pod] != NOWHERE:
            cost[:, self._current[pod]] = 0.0
        return cost

    def replicas(self, pod: int, where: Ints) -> tuple[Ints, Ints]:
        """(placements, nodes): how many other replicas are on the node, and how many in its zone. A node without the
        label of a zone has none."""
        others = self._replicas[pod]
        at = where[:, others[others != pod]]
        on_node = _count_numbers(at, len(self._zone_of))
        in_zone = _count_numbers(np.append(self._zone_of, NOWHERE)[at], self._zones)
        return on_node[:, :NOWHERE], in_zone[:, self._zone_of]


def _count_numbers(numbers: Ints, most: int) -> Ints:
    """(rows, most + 1): how often each number is in the row. The last column is that of NOWHERE, and 0."""
    size = most + 1
    cells = np.arange(len(numbers))[:, None] * size + numbers % size
    counts: Ints = np.bincount(cells.ravel(), minlength=len(numbers) * size).reshape(-1, size)
    counts[:, NOWHERE] = 0
    return counts


def default_spread(
    pods: Sequence[Pod], nodes: Sequence[Node], current: Ints, needs_node: Mask, soft: SoftConstraints | None
) -> DefaultSpread | None:
    """None when it concerns no pod. `needs_node`: the pending and the unhappy pods."""
    asked = [at for at in np.flatnonzero(needs_node).tolist() if _without_own_spread(pods[at])]
    workloads = {pods[at].workload for at in asked}
    members: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for at, pod in enumerate(pods):
        if pod.workload in workloads and not pod.leaving:
            members[pod.namespace, pod.workload].append(at)
    several = {key: np.array(each, dtype=np.int64) for key, each in members.items() if len(each) > 1}
    keys = {at: (pods[at].namespace, pods[at].workload) for at in asked}
    replicas = {at: several[key] for at, key in keys.items() if key in several}
    return DefaultSpread(replicas, nodes, current, soft) if replicas else None


def _without_own_spread(pod: Pod) -> bool:
    return bool(pod.workload) and not pod.rules.spread and not pod.rules.preferred.spread
