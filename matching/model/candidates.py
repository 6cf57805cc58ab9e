"""The nodes a pod may use at all, whatever runs there: node rules, fresh metrics, cordons, and its current
node."""

from __future__ import annotations

from collections import Counter

import numpy as np

from matching.array_types import NOWHERE, Ints, Mask
from matching.constraints.node_rules import NodeRules
from matching.constraints.taints import cordoned, removal_taint
from matching.model.arrays import Arrays

NOT_MEASURED = "no fresh metrics of the node"
CORDONED = "cordoned: no running pod is moved there"


class Candidates:
    """A running pod may stay whatever its rules say now, unless a NoExecute taint evicts it."""

    def __init__(self, arrays: Arrays, rules: NodeRules) -> None:
        self._arrays = arrays
        self._rules = rules

    def of(self, pod: int) -> Mask:
        current = self._arrays.current[pod]
        allowed = self._rules.admits(pod)
        if current != NOWHERE:
            allowed = allowed & self._arrays.open_to_moves
            allowed[current] = not self._rules.eviction_reason(pod, current)
        return allowed

    def rows(self, pods: Ints) -> Mask:
        """The same for several pods, one row each."""
        allowed = self._rules.admits_each(pods)
        running = np.flatnonzero(self._arrays.current[pods] != NOWHERE)
        current = self._arrays.current[pods[running]]
        allowed[running] &= self._arrays.open_to_moves
        allowed[running, current] = self._rules.may_stay(pods[running], current)
        return allowed

    def table(self, pods: Ints) -> tuple[Ints, Mask, Mask]:
        """The row of each pod, the rows (whether each node admits new pods), and whether each pod may stay. All but the
        rows are by pod, for every pod."""
        number = len(self._arrays.pods)
        running = self._arrays.current[pods] != NOWHERE
        variants, index = np.unique(self._rules.pod_class[pods] * 2 + running, return_inverse=True)
        known: dict[bytes, int] = {}
        rows = [self._row(variant) for variant in variants.tolist()]
        same = np.array([known.setdefault(row.tobytes(), len(known)) for row in rows], dtype=np.int64)
        masks = [np.frombuffer(row, dtype=bool) for row in known]
        distinct = np.array(masks, dtype=bool).reshape(-1, len(self._arrays.nodes))
        row_of_pod, may_stay = np.zeros(number, dtype=np.int64), np.zeros(number, dtype=bool)
        row_of_pod[pods] = same[index]
        running_pods = pods[running]
        may_stay[running_pods] = self._rules.may_stay(running_pods, self._arrays.current[running_pods])
        return row_of_pod, distinct, may_stay

    def numbers(self, pods: Ints) -> Ints:
        """How many nodes each of those pods may use."""
        row, rows, may_stay = self.table(pods)
        numbers: Ints = rows.sum(axis=1, dtype=np.int64)[row[pods]]
        current = self._arrays.current[pods]
        running = current != NOWHERE
        numbers[running] += may_stay[pods[running]].astype(np.int64) - rows[row[pods[running]], current[running]]
        return numbers

    def _row(self, variant: int) -> Mask:
        pod_class, running = divmod(variant, 2)
        admitted = self._rules.row(pod_class).admitted
        return admitted & self._arrays.open_to_moves if running else admitted

    def why_not(self, pod: int, node: int) -> str:
        """Empty when the pod may run there."""
        current = self._arrays.current[pod]
        if node == current:
            return self._rules.eviction_reason(pod, node)
        reason = self._rules.reason(pod, node)
        if not reason and current != NOWHERE and not self._arrays.open_to_moves[node]:
            if removed := removal_taint(self._arrays.nodes[node].taints):
                return f"an autoscaler is about to remove it ({removed})"
            return CORDONED if cordoned(self._arrays.nodes[node]) else NOT_MEASURED
        return reason

    def refusals(self, pod: int, nodes: Ints) -> Counter[str]:
        """How often each reason occurs among nodes that the pod may not use."""
        groups = self._rules.groups(pod)[nodes] * 2 + self._arrays.open_to_moves[nodes]
        _, firsts, numbers = np.unique(groups, return_index=True, return_counts=True)
        counts: Counter[str] = Counter()
        for first, number in zip(firsts.tolist(), numbers.tolist(), strict=True):
            counts[self.why_not(pod, int(nodes[first]))] += number
        return counts
