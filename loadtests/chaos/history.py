"""When a pod was bound, Ready, asked to go and gone: what invariants about moments need."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from loadtests.workloads.api import has_condition

Json = dict[str, Any]


@dataclass(slots=True)
class PodHistory:
    """Times are the observer's, in seconds since 1970."""

    uid: str
    namespace: str
    name: str
    workload: str
    scheduler: str
    seen: float
    bound: float | None = None
    ended: float | None = None
    """Asked to go, or gone."""
    fitted: bool = True
    """Nobody said that it fits nowhere."""
    ready: list[tuple[float, bool]] = field(default_factory=list)
    """From each of these times on: was it Ready, and not on its way out?"""

    @classmethod
    def of(cls, pod: Json, now: float) -> PodHistory:
        meta = pod["metadata"]
        workload = meta.get("labels", {}).get("app", "")
        return cls(meta["uid"], meta["namespace"], meta["name"], workload, pod["spec"].get("schedulerName", ""), now)

    def note(self, pod: Json, now: float) -> None:
        going = "deletionTimestamp" in pod["metadata"]
        if pod["spec"].get("nodeName") and self.bound is None:
            self.bound = now
        if going and self.ended is None:
            self.ended = now
        ready = has_condition(pod, "Ready") and not going
        if not self.ready or self.ready[-1][1] != ready:
            self.ready.append((now, ready))

    def gone(self, now: float) -> None:
        self.ended = self.ended or now
        if self.ready and self.ready[-1][1]:
            self.ready.append((now, False))

    def ready_at(self, moment: float) -> bool:
        state = False
        for at, ready in self.ready:
            if at > moment:
                break
            state = ready
        return state

    def ready_within(self, start: float, end: float) -> bool:
        """At some moment of it: what somebody with news as old as that could have seen."""
        return self.ready_at(start) or any(ready for at, ready in self.ready if start <= at <= end)


def ready_replicas(histories: Iterable[PodHistory], workload: str, start: float, end: float) -> int:
    return sum(each.workload == workload and each.ready_within(start, end) for each in histories)
