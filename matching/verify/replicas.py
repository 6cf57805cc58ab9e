"""The replicas of a workload: what they add to the distance of a node for a pod that needs one.

Of a pending or unhappy pod without topology spread of its own, each other replica on a node counts 4, each in its zone
2, and breaking all its soft constraints 7. The node that it has costs nothing.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from matching.problem import Pod
from matching.verify.placement import NO_NODE, Flags, Ints, Matrix, Placement

_ZONE = "topology.kubernetes.io/zone"


class Replicas:
    def __init__(self, placement: Placement) -> None:
        self._placement = placement
        pods = placement.pods if placement.options.soft_weight else []
        asked = [row for row, pod in enumerate(pods) if _is_spread(pod)]
        names = {pods[row].workload for row in asked}
        self._rows: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
        self._fixed: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
        """By workload: the rows of its movable pods, the nodes of the others."""
        for row, pod in enumerate(pods if names else []):
            if pod.workload in names and not pod.leaving:
                self._rows[pod.namespace, pod.workload].append(row)
        for pod, node in placement.fixed_pods if names else []:
            if pod.workload in names and not pod.leaving:
                self._fixed[pod.namespace, pod.workload].append(node)
        self.any: Flags = np.zeros(len(placement.pods), dtype=bool)
        """By row."""
        for row in asked:
            key = (pods[row].namespace, pods[row].workload)
            self.any[row] = len(self._rows[key]) + len(self._fixed[key]) > 1
        zones = [node.labels.get(_ZONE, "") for node in placement.nodes]
        self._zone: Ints = np.unique(["", *zones], return_inverse=True)[1][1:]
        """By node; 0 without the label."""

    def added(self, row: int, broken: Matrix) -> Matrix:
        """By node. `broken`: the share of its soft constraints that the pod would break there."""
        there = self._others(row)
        on_node = np.bincount(there, minlength=len(self._zone))
        in_zone = np.bincount(self._zone[there], minlength=int(self._zone.max()) + 1)
        in_zone[0] = 0
        added: Matrix = 4.0 * on_node + 2.0 * in_zone[self._zone] + 7.0 * broken
        if self._placement.current[row] != NO_NODE:
            added[self._placement.current[row]] = 0.0
        return added

    def _others(self, row: int) -> Ints:
        """The nodes of the other replicas: of those that rank above where they end, of the rest where they were."""
        pod, placement = self._placement.pods[row], self._placement
        rows = np.array([each for each in self._rows[pod.namespace, pod.workload] if each != row], dtype=int)
        at = np.where(rows < row, placement.end[rows], placement.current[rows])
        every: Ints = np.concatenate([at, np.array(self._fixed[pod.namespace, pod.workload], dtype=int)])
        there: Ints = every[every != NO_NODE]
        return there


def _is_spread(pod: Pod) -> bool:
    own = pod.rules.spread or pod.rules.preferred.spread
    return bool(pod.workload) and not own and (pod.node is None or not pod.happy)
