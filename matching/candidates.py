"""Where a pod may run at all, whatever else is there: rules, readiness, fresh metrics, and where it is now."""

from __future__ import annotations

from collections import Counter

import numpy as np

from matching.arrays import NOWHERE, Arrays, Ints, Mask
from matching.constraints.classes import Verdicts

NOT_MEASURED = "no fresh metrics of the node"


class Candidates:
    """A running pod may stay where it is whatever the rules say now, unless a NoExecute taint drives it out."""

    def __init__(self, arrays: Arrays, verdicts: Verdicts) -> None:
        self._arrays = arrays
        self._verdicts = verdicts

    def of(self, pod: int) -> Mask:
        home = self._arrays.home[pod]
        allowed = self._verdicts.admits(pod)
        if home != NOWHERE:
            allowed = allowed & self._arrays.measured
            allowed[home] = not self._verdicts.leaving(pod, home)
        return allowed

    def rows(self, pods: Ints) -> Mask:
        """The same for several pods, one row each."""
        allowed = self._verdicts.admits_each(pods)
        running = np.flatnonzero(self._arrays.home[pods] != NOWHERE)
        home = self._arrays.home[pods[running]]
        allowed[running] &= self._arrays.measured
        allowed[running, home] = self._verdicts.may_stay(pods[running], home)
        return allowed

    def table(self, pods: Ints) -> tuple[Ints, Mask, Mask]:
        """For those pods: which row each has, the rows (whether each node admits newcomers), and by pod whether it may
        stay where it is. All but the rows are by pod, for every pod."""
        number = len(self._arrays.pods)
        running = self._arrays.home[pods] != NOWHERE
        looks, place = np.unique(self._verdicts.pod_class[pods] * 2 + running, return_inverse=True)
        known: dict[bytes, int] = {}
        rows = [self._row(look) for look in looks.tolist()]
        same = np.array([known.setdefault(row.tobytes(), len(known)) for row in rows], dtype=np.int64)
        masks = [np.frombuffer(row, dtype=bool) for row in known]
        distinct = np.array(masks, dtype=bool).reshape(-1, len(self._arrays.nodes))
        row_of_pod, may_stay = np.zeros(number, dtype=np.int64), np.zeros(number, dtype=bool)
        row_of_pod[pods] = same[place]
        at_home = pods[running]
        may_stay[at_home] = self._verdicts.may_stay(at_home, self._arrays.home[at_home])
        return row_of_pod, distinct, may_stay

    def numbers(self, pods: Ints) -> Ints:
        """How many nodes each of those pods may use."""
        row, rows, may_stay = self.table(pods)
        numbers: Ints = rows.sum(axis=1, dtype=np.int64)[row[pods]]
        home = self._arrays.home[pods]
        running = home != NOWHERE
        numbers[running] += may_stay[pods[running]].astype(np.int64) - rows[row[pods[running]], home[running]]
        return numbers

    def _row(self, look: int) -> Mask:
        pod_class, running = divmod(look, 2)
        admitted = self._verdicts.row(pod_class).admitted
        return admitted & self._arrays.measured if running else admitted

    def why_not(self, pod: int, node: int) -> str:
        """Empty when the pod may run there."""
        home = self._arrays.home[pod]
        if node == home:
            return self._verdicts.leaving(pod, node)
        reason = self._verdicts.reason(pod, node)
        if not reason and home != NOWHERE and not self._arrays.measured[node]:
            return NOT_MEASURED
        return reason

    def refusals(self, pod: int, nodes: Ints) -> Counter[str]:
        """How often each reason occurs among nodes that the pod may not use."""
        alike = self._verdicts.groups(pod)[nodes] * 2 + self._arrays.measured[nodes]
        _, firsts, numbers = np.unique(alike, return_index=True, return_counts=True)
        counts: Counter[str] = Counter()
        for first, number in zip(firsts.tolist(), numbers.tolist(), strict=True):
            counts[self.why_not(pod, int(nodes[first]))] += number
        return counts
