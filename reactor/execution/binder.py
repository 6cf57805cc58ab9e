"""Binds pending pods to nodes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

import structlog

from matching.plan import PlannedMove
from reactor.clock import Clock
from reactor.cluster.records import Pod
from reactor.cluster.view import ClusterView
from reactor.cluster.writes import Binding, BindingAnswer, ClusterWriter

log = structlog.get_logger(__name__)

CONCURRENT_BINDINGS = 16
FIRST_BACKOFF = 1.0
"""Seconds before the first repetition of a failed binding, doubled with each failure of the pod."""
LONGEST_BACKOFF = 10.0
LONGEST_BACKOFF_FORBIDDEN = 300.0
"""Of bindings that an operator has to allow first."""


@dataclass(frozen=True, slots=True)
class Bound:
    """A requested binding, and what the API answered."""

    pod: Pod
    move: PlannedMove
    answer: BindingAnswer

    @property
    def succeeded(self) -> bool:
        """Also without an answer: until the watch shows it, the room counts as taken."""
        return self.answer.outcome in (Binding.BOUND, Binding.UNKNOWN)


@dataclass(frozen=True, slots=True)
class _Failing:
    failures: int
    until: float


class Binder:
    def __init__(self, writer: ClusterWriter, clock: Clock) -> None:
        self._writer = writer
        self._clock = clock
        self._slots = asyncio.Semaphore(CONCURRENT_BINDINGS)
        self._failing: dict[str, _Failing] = {}

    @property
    def backoffs(self) -> Mapping[str, float]:
        """By the UID of a pod whose binding failed: when to try again."""
        return {uid: failing.until for uid, failing in self._failing.items()}

    async def bind(self, pod: Pod, move: PlannedMove) -> Bound:
        """A failure of any kind is an answer: the room that was taken for the pod has to be given back."""
        async with self._slots:
            try:
                answer = await self._writer.bind(pod, move.target)
            except Exception as error:
                log.exception("binding failed", pod=pod.key, node=move.target)
                answer = BindingAnswer(Binding.FAILED, f"{type(error).__name__}: {error}")
        log.info("binding", pod=pod.key, node=move.target, answer=answer.outcome, message=answer.message)
        bound = Bound(pod, move, answer)
        if bound.succeeded:
            self._failing.pop(pod.uid, None)
        else:
            self._back_off(pod, answer)
        return bound

    def forget_gone(self, view: ClusterView) -> None:
        """Pods that are gone or have a node."""
        self._failing = {
            uid: failing
            for uid, failing in self._failing.items()
            if (pod := view.pods.get(uid)) is not None and pod.node is None
        }

    def _back_off(self, pod: Pod, answer: BindingAnswer) -> None:
        before = self._failing.get(pod.uid)
        failures = 1 if before is None else before.failures + 1
        longest = LONGEST_BACKOFF_FORBIDDEN if answer.outcome is Binding.FORBIDDEN else LONGEST_BACKOFF
        pause = min(FIRST_BACKOFF * 2.0 ** min(failures - 1, 20), longest)
        self._failing[pod.uid] = _Failing(failures, self._clock.now() + max(answer.retry_after or 0.0, pause))
