"""The ways of moving a pod. A problem names the strategy of each pod, a plan that of each move.

To add one: a value of `matching.problem.Strategy`, a class here, and its choice in `planning/problem_builder.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

import structlog

from matching.problem import Strategy
from reactor.cluster.records import Pod
from reactor.cluster.view import ClusterView
from reactor.cluster.writes import ClusterWriter
from reactor.execution.move_states import after_eviction, ended, followed
from reactor.settings.model import Execution
from reactor.state.moves import Move, MoveState

log = structlog.get_logger(__name__)


class MoveStrategy(Protocol):
    """Each step takes a move and returns it in its next state. `reason` says why a pod is moved in this way."""

    reason: str

    async def start(self, move: Move, pod: Pod, now: float) -> Move:
        """Start a planned move of this pod."""
        ...

    def follow(self, move: Move, view: ClusterView, now: float, settings: Execution, excluded: Collection[str]) -> Move:
        """Bring a move up to what the cluster shows; the pods `excluded` (by UID) are not its replacement."""
        ...

    async def undo(self, move: Move, now: float, reason: str) -> Move:
        """Give the move up as far as that is possible."""
        ...


class Evict:
    """Eviction API with a UID precondition. The owner creates the replacement, our binder binds it."""

    reason = "moved by eviction: its controller creates the replacement"

    def __init__(self, writer: ClusterWriter) -> None:
        self._writer = writer

    async def start(self, move: Move, pod: Pod, now: float) -> Move:
        answer = await self._writer.evict(pod)
        log.info("eviction", pod=pod.key, node=pod.node, target=move.target, answer=answer.outcome)
        return after_eviction(move, answer, now)

    def follow(self, move: Move, view: ClusterView, now: float, settings: Execution, excluded: Collection[str]) -> Move:
        return followed(move, view, now, settings, excluded)

    async def undo(self, move: Move, now: float, reason: str) -> Move:
        """An eviction cannot be taken back: a move in flight is followed to its end."""
        return move if move.in_flight else ended(move, MoveState.SKIPPED, now, reason)


def strategies(writer: ClusterWriter) -> Mapping[Strategy, MoveStrategy]:
    return {Strategy.EVICT: Evict(writer)}
