"""Says on pods that fit nowhere that they are unschedulable. Cluster-autoscaler and Karpenter add nodes only for pods
with the condition PodScheduled=False, reason Unschedulable. Binding a pod sets it to True."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import structlog

from reactor.clock import Clock
from reactor.cluster.pod_constraints import unsupported_constraints
from reactor.cluster.records import Pod
from reactor.cluster.writes import ClusterWriter, gather_limited
from reactor.execution.cycle_outcome import Placement
from reactor.state.snapshot import Snapshot

log = structlog.get_logger(__name__)

UNSCHEDULABLE = "Unschedulable"
SCHEDULER_ERROR = "SchedulerError"
"""Another node would not help: we do not support what the pod wants."""
AGAIN_AFTER = 60.0
"""Seconds before the message of a pod is written again because it has changed, or because that failed."""
_CONCURRENT = 4


@dataclass(frozen=True, slots=True)
class _Written:
    reason: str
    message: str
    at: float
    succeeded: bool


class UnschedulablePods:
    def __init__(self, writer: ClusterWriter, clock: Clock) -> None:
        self._writer = writer
        self._clock = clock
        self._written: dict[str, _Written] = {}
        self._logged = ""

    async def write(self, placement: Placement, snapshot: Snapshot) -> None:
        """Pods whose condition is new or has changed, not all at every pass."""
        pods = snapshot.cluster.pods
        self._written = {uid: kept for uid, kept in self._written.items() if uid in pods and pods[uid].node is None}
        new = [each for each in _conditions(placement, snapshot) if self._to_write(*each)]
        await gather_limited([partial(self._write, *each) for each in new], _CONCURRENT)

    def _to_write(self, pod: Pod, reason: str, message: str) -> bool:
        written = self._written.get(pod.uid)
        if written is None:
            return True
        same = (written.reason, written.message, written.succeeded) == (reason, message, True)
        return not same and self._clock.monotonic() - written.at >= AGAIN_AFTER

    async def _write(self, pod: Pod, reason: str, message: str) -> None:
        problem = await self._writer.mark_unschedulable(pod, reason, message)
        self._written[pod.uid] = _Written(reason, message, self._clock.monotonic(), not problem)
        if problem and problem != self._logged:
            log.warning("the condition of a pod that fits nowhere is not written", pod=pod.key, problem=problem)
        self._logged = problem


def _conditions(placement: Placement, snapshot: Snapshot) -> Iterator[tuple[Pod, str, str]]:
    for left in placement.plan.unplaced if placement.plan is not None else ():
        yield snapshot.cluster.pods[left.uid], UNSCHEDULABLE, left.reason
    for pod in placement.unsupported:
        yield pod, SCHEDULER_ERROR, f"unsupported {', '.join(unsupported_constraints(pod, snapshot.cluster))}"
