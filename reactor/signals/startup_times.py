"""Start-up times: how long the pods of a workload took from their binding to Ready."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from statistics import median_high
from types import MappingProxyType

from reactor.cluster.records import Pod
from reactor.signals.workloads import workload_key
from storage.rows import StartupRow

REMEMBERED = 20_000
"""Workloads. Those that started last are kept."""
STARTS_KEPT = 9
"""Starts per workload. Their median is the estimate: a start with a slow image pull does not count."""
LONGEST = 3600.0
"""Seconds. A clock that was set can make a start seem longer."""


class StartupTimes:
    """Only starts that were seen from the beginning count: a pod that becomes Ready again has not started then."""

    def __init__(self) -> None:
        self._starts: OrderedDict[str, tuple[float, ...]] = OrderedDict()
        self._starting: set[str] = set()
        self._changed: set[str] = set()
        self._frozen: Mapping[str, float] | None = None

    def observe_pod(self, old: Pod | None, new: Pod | None, now: float) -> None:
        if new is None:
            if old is not None:
                self._starting.discard(old.uid)
        elif new.phase == "Pending":
            self._starting.add(new.uid)
        elif new.uid in self._starting and (new.ready or new.finished):
            self._starting.discard(new.uid)
            if new.ready:
                self._note(new, now)

    def freeze(self) -> Mapping[str, float]:
        """Seconds by workload. Never changes afterwards."""
        if self._frozen is None:
            seconds = {workload: median_high(starts) for workload, starts in self._starts.items()}
            self._frozen = MappingProxyType(seconds)
        return self._frozen

    def restore(self, rows: Iterable[StartupRow]) -> None:
        """Oldest first."""
        for row in rows:
            valid = tuple(each for each in row.seconds if 0 <= each <= LONGEST)
            if valid:
                self._keep(row.workload, valid)

    def export(self, now: float) -> list[StartupRow]:
        """Rows to store: the workloads with new starts since the last call."""
        changed, self._changed = self._changed, set()
        return [StartupRow(key, now, self._starts[key]) for key in changed if key in self._starts]

    def _note(self, pod: Pod, now: float) -> None:
        """A pod without an owner does not start again, and those of a Job have all different work."""
        if pod.owner is None or pod.owner.kind == "Job":
            return
        begin = pod.created if pod.scheduled is None else pod.scheduled
        end = now if pod.ready_since is None else pod.ready_since
        seconds = max(0.0, end - begin)
        if seconds <= LONGEST:
            key = workload_key(pod)
            self._keep(key, (*self._starts.get(key, ()), seconds))
            self._changed.add(key)

    def _keep(self, workload: str, starts: tuple[float, ...]) -> None:
        self._starts[workload] = starts[-STARTS_KEPT:]
        self._starts.move_to_end(workload)
        if len(self._starts) > REMEMBERED:
            self._starts.popitem(last=False)
        self._frozen = None
