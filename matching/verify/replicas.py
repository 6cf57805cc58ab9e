"""The replicas of a workload: what they add to the distance of a node for a pod that needs one.

Of a pending or unhappy pod without topology spread of its own, each other replica on a node counts 4, each in its zone
2, and breaking all its soft constraints 7. The node that it has costs nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import numpy as np

from matching.problem import Pod
from matching.verify.placement import NO_NODE, Flags, Ints, Matrix, Placement

_ZONE = "topology.kubernetes.io/zone"
_NONE: Ints = np.zeros(0, dtype=int)


class Replicas:
    def __init__(self, placement: Placement) -> None:
        self._placement = placement
        pods = placement.pods if placement.options.soft_weight else []
        asked = [row for row, pod in enumerate(pods) if _is_spread(pod)]
        names = {pods[row].workload for row in asked}
        self._rows = _by_workload(names, enumerate(pods))
        self._fixed = _by_workload(names, ((node, pod) for pod, node in placement.fixed_pods()))
        """By workload: the rows of its movable pods, the nodes of the others."""
        self.any: Flags = np.zeros(len(placement.pods), dtype=bool)
        """By row."""
        for row in asked:
            self.any[row] = len(_found(self._rows, pods[row])) + len(_found(self._fixed, pods[row])) > 1
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
        rows = _found(self._rows, pod)
        rows = rows[rows != row]
        at = np.where(rows < row, placement.end[rows], placement.current[rows])
        every: Ints = np.concatenate([at, _found(self._fixed, pod)])
        there: Ints = every[every != NO_NODE]
        return there


def _by_workload(names: set[str], numbered: Iterable[tuple[int, Pod]]) -> dict[tuple[str, str], Ints]:
    """The numbers of the pods that are not being deleted, of workloads with those names."""
    numbers: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for number, pod in numbered if names else ():
        if pod.workload in names and not pod.leaving:
            numbers[pod.namespace, pod.workload].append(number)
    return {key: np.array(each, dtype=int) for key, each in numbers.items()}


def _found(by_workload: dict[tuple[str, str], Ints], pod: Pod) -> Ints:
    return by_workload.get((pod.namespace, pod.workload), _NONE)


def _is_spread(pod: Pod) -> bool:
    needs_node = pod.node is None or not pod.happy
    return needs_node and bool(pod.workload) and not (pod.rules.spread or pod.rules.preferred.spread)
