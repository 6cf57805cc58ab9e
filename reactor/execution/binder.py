"""Binds pending pods to nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial

import structlog

from matching.plan import PlannedMove
from reactor.cluster.records import Pod
from reactor.cluster.view import ClusterView
from reactor.cluster.writes import Binding, BindingAnswer, ClusterWriter
from reactor.execution.some_at_once import WRITES_AT_ONCE, some_at_once

log = structlog.get_logger(__name__)

BINDING_BACKOFF = 5.0
"""Seconds before a failed binding is tried again, unless the API server asks for more."""


@dataclass(frozen=True, slots=True)
class Bound:
    """A binding that was asked for, and what the API answered."""

    pod: Pod
    move: PlannedMove
    answer: BindingAnswer

    @property
    def succeeded(self) -> bool:
        """Also without an answer: until the watch shows it, the room counts as taken."""
        return self.answer.outcome in (Binding.BOUND, Binding.UNKNOWN)


class Binder:
    def __init__(self, writer: ClusterWriter) -> None:
        self._writer = writer
        self._backoffs: dict[str, float] = {}

    @property
    def backoffs(self) -> Mapping[str, float]:
        """By the UID of a pod whose binding failed: when to try again."""
        return dict(self._backoffs)

    async def bind(self, moves: Iterable[PlannedMove], view: ClusterView, now: float) -> list[Bound]:
        calls = [partial(self._bind, move, view.pods[move.uid], now) for move in moves]
        return await some_at_once(calls, WRITES_AT_ONCE)

    def drop_expired(self, view: ClusterView, now: float) -> None:
        self._backoffs = {uid: until for uid, until in self._backoffs.items() if uid in view.pods and now < until}

    async def _bind(self, move: PlannedMove, pod: Pod, now: float) -> Bound:
        answer = await self._writer.bind(pod, move.target)
        log.info("binding", pod=pod.key, node=move.target, answer=answer.outcome, message=answer.message)
        bound = Bound(pod, move, answer)
        if not bound.succeeded:
            self._backoffs[pod.uid] = now + max(answer.retry_after or 0.0, BINDING_BACKOFF)
        return bound
