"""Our Kubernetes Events: what they say, and the queue that writes them in the background."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import structlog

from reactor.clock import Clock
from reactor.cluster.kinds import ObjectName
from reactor.cluster.pod_constraints import unsupported_constraints
from reactor.cluster.records import ConfigMap, Node, Pod
from reactor.cluster.writes import Announcement
from reactor.decision.decide import Unhappy, Wait
from reactor.errors import ClusterError, NotFound, format_errors
from reactor.execution.cycle_outcome import Placement, Rematch
from reactor.state.moves import Move, MoveState, PodRef
from reactor.state.snapshot import Snapshot

log = structlog.get_logger(__name__)

REPEAT_AFTER = 300.0
"""The same Event is written at most once in so many seconds. In between it is only counted."""
REMEMBERED_EVENTS = 10_000
QUEUE_LENGTH = 1_000


class WritesEvents(Protocol):
    async def create_event(self, announcement: Announcement) -> ObjectName: ...

    async def count_event(self, event: ObjectName, count: int) -> None: ...


@dataclass(slots=True)
class _Written:
    count: int = 0
    last: float | None = None
    event: ObjectName | None = None


class EventQueue:
    """A bounded queue: `add` never waits and never fails. Without a writer no Event is written."""

    def __init__(
        self,
        writer: WritesEvents | None,
        clock: Clock,
        lost: Callable[[], None] = lambda: None,
        leads: Callable[[], bool] = lambda: True,
    ) -> None:
        """`lost` is called for every Event that is not written. Whoever does not lead leaves them to the leader."""
        self._writer = writer
        self._clock = clock
        self._lost = lost
        self._leads = leads
        self._queue: asyncio.Queue[Announcement] = asyncio.Queue(QUEUE_LENGTH)
        self._written: OrderedDict[Announcement, _Written] = OrderedDict()
        self.problem = ""
        """Why the last Event was not written; empty if it was."""

    def add(self, event: Announcement) -> None:
        if self._writer is None or not self._leads():
            return
        written = self._written.setdefault(event, _Written())
        self._written.move_to_end(event)
        if len(self._written) > REMEMBERED_EVENTS:
            self._written.popitem(last=False)
        written.count += 1
        now = self._clock.now()
        if written.last is not None and now - written.last < REPEAT_AFTER:
            return
        try:
            self._queue.put_nowait(event)
        except asyncio.QueueFull:
            self._lost()
        else:
            written.last = now

    async def run(self) -> None:
        """Write Events until cancelled. An Event that the API refuses is logged, counted and dropped."""
        while self._writer is not None:
            event = await self._queue.get()
            try:
                await self._write(self._writer, event, self._written.get(event, _Written(1)))
                self.problem = ""
            except ClusterError as error:
                self._lost()
                self.problem = str(error)
                log.warning("event not written", about=event.name, reason=event.reason, error=str(error))

    @staticmethod
    async def _write(writer: WritesEvents, event: Announcement, written: _Written) -> None:
        if written.event is not None:
            try:
                return await writer.count_event(written.event, written.count)
            except NotFound:
                written.event = None
        written.event = await writer.create_event(event)
        return None


def pod_event(pod: Pod | PodRef, reason: str, message: str, *, warning: bool = False) -> Announcement:
    kind = "Warning" if warning else "Normal"
    return Announcement("Pod", pod.namespace, pod.name, pod.uid, reason, message, kind)


def wait_event(pod: Pod, wait: Wait) -> Announcement:
    return pod_event(pod, "RematchWaits", f"{wait.reason}: {wait.text}")


def unhappy_event(pod: Pod, one: Unhappy, rematch: Rematch | None) -> Announcement:
    happiness = f"happiness {one.happiness.probability:.2f} is below {one.happiness.threshold.value:g}"
    return pod_event(pod, "Unhappy", f"{happiness}; {one.cause}; {_plan_for(one, rematch)}", warning=True)


def suspected_node_event(node: Node, one: Unhappy) -> Announcement:
    """Not its load makes the pods of this node fail."""
    text = f"pods of several workloads fail here and their replicas elsewhere do not, as {one.pod}; look at the node"
    return Announcement("Node", "", node.name, node.uid, "NodeSuspected", text, "Warning")


def _plan_for(one: Unhappy, rematch: Rematch | None) -> str:
    if rematch is not None:
        for move in rematch.plan.moves:
            if move.uid == one.uid:
                return f"plan {rematch.plan_id} moves it to {move.target}"
        if any(left.uid == one.uid for left in rematch.plan.dumped):
            return f"plan {rematch.plan_id} dumps it"
    return "no plan moves it now"


def move_event(move: Move, snapshot: Snapshot) -> Announcement | None:
    """On the replacement if there is one, else on the pod that moves."""
    replacement = snapshot.cluster.pods.get(move.replacement or "", move.pod)
    if move.state is MoveState.EVICTED and move.replacement is None:
        return pod_event(
            move.pod, "Moving", f"evicted from {move.source} to move to {move.target} (plan {move.plan_id})"
        )
    if move.state is MoveState.SURGED and move.replacement is None:
        text = f"a replacement is started on {move.target} before this pod on {move.source} ends (plan {move.plan_id})"
        return pod_event(move.pod, "Moving", text)
    if move.state is MoveState.UNDONE:
        return pod_event(move.pod, "MoveUndone", move.outcome, warning=True)
    if move.state is MoveState.DONE and move.dumps:
        return pod_event(move.pod, "Dumped", f"{move.outcome} (plan {move.plan_id})", warning=True)
    if move.state is MoveState.DONE:
        return pod_event(replacement, "Moved", f"replaces {move.pod.key} of {move.source}: {move.outcome}")
    if move.state is MoveState.LATE:
        text = "not Ready by its deadline; no further move is started"
        return pod_event(replacement, "MoveLate", text, warning=True)
    if move.state in (MoveState.FAILED, MoveState.SKIPPED):
        failed = move.state is MoveState.FAILED
        return pod_event(move.pod, f"Move{move.state.capitalize()}", move.outcome, warning=failed)
    return None


def refused_event(move: Move) -> Announcement:
    text = f"half-way from {move.source} to {move.target}, {move.refused}; it is tried again (rematch doctor)"
    return pod_event(move.pod, "MoveRefused", text, warning=True)


def placement_events(placement: Placement, snapshot: Snapshot) -> Iterator[Announcement]:
    pods = snapshot.cluster.pods
    for pod in placement.unsupported:
        unsupported = ", ".join(unsupported_constraints(pod, snapshot.cluster))
        yield pod_event(pod, "FailedScheduling", f"unsupported {unsupported}", warning=True)
    for left in placement.plan.unplaced if placement.plan is not None else ():
        yield pod_event(pods[left.uid], "FailedScheduling", left.reason, warning=True)
    for one in placement.bound:
        if one.succeeded:
            yield pod_event(one.pod, "Scheduled", f"Successfully assigned {one.pod.key} to {one.move.target}")
        else:
            text = f"binding to {one.move.target} failed ({one.answer.outcome}): {one.answer.message}"
            yield pod_event(one.pod, "FailedBinding", text, warning=True)
    tried = {one.pod.uid for one in placement.bound}
    for move in placement.moves if placement.observed else ():
        if move.uid not in tried:
            yield pod_event(pods[move.uid], "WouldBind", f"mode is observe: would bind to {move.target}")


def refused_settings_event(config_map: ConfigMap, problems: Sequence[tuple[str, str]]) -> Announcement:
    text = f"the last good settings stay in force: {format_errors(problems)}"
    return controller_event(config_map, "SettingsRefused", text)


def controller_event(config_map: ConfigMap, reason: str, message: str) -> Announcement:
    """A Warning about the controller as a whole, on its ConfigMap."""
    of = config_map
    return Announcement("ConfigMap", of.namespace, of.name, of.uid, reason, message[:1000], "Warning")
