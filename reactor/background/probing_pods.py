"""The pods whose probes are counted: one row each in a few arrays, so that very many can be counted at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from reactor.cluster.records import Pod
from reactor.signals.workloads import workload_key

SETTLED_AFTER = 60.0
"""Seconds after its start, and after the first probe, from which a pod counts: while it starts it may fail anywhere."""
NEVER = float("inf")
_BLOCK = 1024


class ProbingPods:
    """The rows of pods that are gone are used again. A row that is not used counts from `NEVER`."""

    def __init__(self) -> None:
        self.rows: dict[str, int] = {}
        self.node = np.zeros(0, np.intp)
        """By row: the number of its node, see `nodes`."""
        self.rate = np.zeros(0)
        """Probes per second."""
        self.since = np.zeros(0)
        """From when on it counts."""
        self.group = np.zeros(0, np.intp)
        """Where it is counted, see `failing_workloads`."""
        self.nodes: dict[str, int] = {}
        self._seen: dict[str, Pod] = {}
        self._free: list[int] = []
        self._workload: dict[int, str] = {}
        self._replicas: dict[str, set[int]] = {}

    def changed(self, pods: Mapping[str, Pod]) -> list[Pod]:
        """Those that `follow` has not seen as they are now. Pods that are gone are dropped."""
        seen = self._seen.get
        changed = [pod for uid, pod in pods.items() if seen(uid) is not pod]
        if len(pods) < len(self._seen) + len(changed):
            for uid in [uid for uid in self._seen if uid not in pods]:
                self._drop(uid)
        return changed

    def follow(self, pods: Iterable[Pod], managed: Callable[[Pod], bool], group_of: Callable[[str], int]) -> None:
        for pod in pods:
            self._seen[pod.uid] = pod
            self._write(pod, managed, group_of)

    def forget_all(self) -> None:
        """What counts has changed: every pod is looked at again."""
        for uid in list(self._seen):
            self._drop(uid)
        self.nodes.clear()

    def workload(self, row: int) -> str:
        return self._workload[row]

    def set_group(self, workload: str, group: int) -> None:
        for row in self._replicas.get(workload, ()):
            self.group[row] = group

    def _write(self, pod: Pod, managed: Callable[[Pod], bool], group_of: Callable[[str], int]) -> None:
        probes = [each for each in pod.containers if each.liveness is not None and each.liveness.period > 0]
        if not probes or pod.node is None:
            return
        row = self._row(pod, group_of)
        self.node[row] = self.nodes.setdefault(pod.node, len(self.nodes))
        self.rate[row] = sum(1 / each.liveness.period for each in probes if each.liveness and each.started is not None)
        counts = pod.phase == "Running" and pod.deleting is None and managed(pod)
        delay = max(each.liveness.initial_delay for each in probes if each.liveness)
        started = pod.created if pod.started is None else pod.started
        self.since[row] = started + delay + SETTLED_AFTER if counts else NEVER

    def _row(self, pod: Pod, group_of: Callable[[str], int]) -> int:
        row = self.rows.get(pod.uid)
        if row is None:
            if not self._free:
                self._grow()
            row = self.rows[pod.uid] = self._free.pop()
            workload = self._workload[row] = workload_key(pod)
            self._replicas.setdefault(workload, set()).add(row)
            self.group[row] = group_of(workload)
        return row

    def _drop(self, uid: str) -> None:
        del self._seen[uid]
        row = self.rows.pop(uid, None)
        if row is None:
            return
        self.since[row], self.node[row] = NEVER, 0
        self._free.append(row)
        workload = self._workload.pop(row)
        self._replicas[workload].discard(row)
        if not self._replicas[workload]:
            del self._replicas[workload]

    def _grow(self) -> None:
        size = len(self.rate)
        self.node, self.group = (np.concatenate([each, np.zeros(_BLOCK, np.intp)]) for each in (self.node, self.group))
        self.rate = np.concatenate([self.rate, np.zeros(_BLOCK)])
        self.since = np.concatenate([self.since, np.full(_BLOCK, NEVER)])
        self._free.extend(range(size + _BLOCK - 1, size - 1, -1))
