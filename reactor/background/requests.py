"""Carries out what users ask of the leader: pause, resume, moves. Each request once, also across leaders."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

import structlog

from matching.problem import ProblemError
from reactor.background.carry_out import carry_out
from reactor.background.leading import Leading
from reactor.clock import Clock
from reactor.cluster.records import Pod
from reactor.cluster.requests import (
    Action,
    MoveResult,
    Request,
    RequestedMove,
    RequestObjects,
    RequestState,
    RequestStatus,
)
from reactor.cycle import CycleParts
from reactor.errors import ClusterError, Conflict, InputError
from reactor.execution.acting import Acting, Pause
from reactor.execution.cycle_outcome import Outcome, Rematch
from reactor.execution.journal import JournalError
from reactor.planning.requested_moves import plan_requested
from reactor.settings.duration import parse_duration
from reactor.settings.model import Mode, Settings
from reactor.state.moves import Move, MoveState

log = structlog.get_logger(__name__)

POLL_SECONDS = 2.0
KEPT_SECONDS = 3600.0
"""How long a request that has ended can be read."""
TOO_OLD_SECONDS = 600.0
"""Moves that nobody took for so long are not made any more. A pause or resume is never too old."""
_LONGEST_TEXT = 200
_EMERGENCY = frozenset({Action.PAUSE, Action.RESUME})
_SUPERSEDED = RequestStatus(RequestState.DONE, "a later pause or resume counts")


@dataclass
class Requests:
    """`run` is part of what a leader does."""

    objects: RequestObjects
    identity: str
    leading: Leading
    acting: Acting
    parts: CycleParts
    settings: Callable[[], Settings]
    """As configured, whatever may be done now."""
    exclusive: asyncio.Lock
    """Held while a cycle runs."""
    clock: Clock
    problem: str = ""
    _unwritten: dict[str, RequestStatus] = field(default_factory=dict)
    """By UID: what became of requests whose last status could not be written yet. They are not carried out again."""

    async def run(self) -> None:
        """Until cancelled. A pause takes effect while moves of another request are under way."""
        moving: asyncio.Task[None] | None = None
        async with asyncio.TaskGroup() as tasks:
            while True:
                listed = await self._listed()
                for request in [each for each in listed if not each.ended]:
                    if _is_superseded(request, listed):
                        self._unwritten.setdefault(request.metadata.uid, _by(_SUPERSEDED, self.identity))
                    if request.spec.action in _EMERGENCY:
                        await self._handled(request, self._pause_or_resume)
                    elif moving is None or moving.done():
                        moving = tasks.create_task(self._handled(request, self._move))
                await self.clock.sleep(POLL_SECONDS)

    async def _listed(self) -> list[Request]:
        """Old ones that have ended are deleted. One that cannot be deleted holds up none."""
        found: list[Request] = []
        problem = ""
        try:
            found = await self.objects.list_all()
            for request in found:
                if request.ended and self._age(request) > KEPT_SECONDS:
                    await self.objects.delete(request)
        except ClusterError as error:
            problem = str(error)
            if self.problem != problem:
                log.warning("requests could not be read or deleted", error=problem)
        self.problem = problem
        if not problem:
            open_ones = {request.metadata.uid for request in found if not request.ended}
            self._unwritten = {uid: status for uid, status in self._unwritten.items() if uid in open_ones}
        return found

    async def _handled(self, request: Request, carry: Callable[[Request], Awaitable[RequestStatus]]) -> None:
        """Accepted by compare-and-swap before anything is done, so that nobody else carries it out, too."""
        uid, last = request.metadata.uid, request
        try:
            if uid not in self._unwritten:
                accepted = await self._accepted(request)
                if accepted is None:
                    return
                last = accepted
                self._unwritten[uid] = _by(await self._carried_out(request, carry), self.identity)
            await self.objects.write_status(last, self._unwritten[uid])
            self._unwritten.pop(uid, None)
        except ClusterError as error:
            log.warning("request not finished", name=request.metadata.name, error=str(error))

    async def _carried_out(
        self, request: Request, carry: Callable[[Request], Awaitable[RequestStatus]]
    ) -> RequestStatus:
        """`request` as it was before it was accepted."""
        try:
            status = await carry(request)
        except (InputError, ProblemError, JournalError) as error:
            status = RequestStatus(RequestState.FAILED, str(error))
        except Exception as error:
            log.exception("request failed", name=request.metadata.name)
            status = RequestStatus(RequestState.FAILED, f"{type(error).__name__}: {error}; see the log")
        log.info("request", name=request.metadata.name, action=request.spec.action, message=status.message)
        return status

    async def _accepted(self, request: Request) -> Request | None:
        moves = request.spec.action in (Action.MOVE, Action.APPLY)
        refusal = ""
        if request.status.state == RequestState.ACCEPTED and moves:
            refusal = "the leader changed meanwhile; moves that had started go on (kubectl get moves)"
        elif moves and self._age(request) > TOO_OLD_SECONDS:
            refusal = f"nobody took it within {TOO_OLD_SECONDS:g} s: ask again"
        state = RequestState.FAILED if refusal else RequestState.ACCEPTED
        try:
            written = await self.objects.write_status(request, RequestStatus(state, refusal, self.identity))
        except Conflict:
            return None
        return None if refusal else written

    async def _pause_or_resume(self, request: Request) -> RequestStatus:
        if request.spec.action is Action.RESUME:
            await self.leading.pause(None)
            return RequestStatus(RequestState.DONE, "resumed")
        in_force, earlier = self.acting.paused, request.status.state == RequestState.ACCEPTED
        if earlier and in_force is not None and in_force.reason == request.spec.reason:
            return RequestStatus(RequestState.DONE, in_force.describe())  # an earlier leader has carried it out
        now = self.clock.now()
        until = None if not request.spec.duration else now + _seconds(request.spec.duration)
        pause = Pause(now, until, request.spec.reason)
        await self.leading.pause(pause)
        return RequestStatus(RequestState.DONE, f"{pause.describe()}; pods are still bound, no move starts")

    async def _move(self, request: Request) -> RequestStatus:
        """In any mode: somebody with the right to it asks for it. Not in a pause."""
        if self.acting.hindrance:
            raise InputError(self.acting.hindrance)
        parts = replace(self.parts, settings=self._acting_settings)
        async with self.exclusive:
            await carry_out(parts, None, self.clock, lambda _outcome: None)
            snapshot = parts.state.freeze(parts.executor.active_moves())
            cooldowns, by = self.parts.memory.cooldowns, f"request {request.metadata.name}"
            planned = plan_requested(request.spec.moves, snapshot, cooldowns, parts.settings(), by)
            ends: dict[str, Move] = {}

            def seen(outcome: Outcome) -> None:
                ends.update({move.pod.uid: move for move in outcome.moves})

            if planned.plan.moves:
                await carry_out(parts, Rematch(secrets.token_hex(6), planned.plan, planned.problem), self.clock, seen)
        refusals = planned.refusals(request.spec.moves)
        results = tuple(_result(asked, planned.pods[asked.pod], refusals, ends) for asked in request.spec.moves)
        done = sum(result.state == MoveState.DONE for result in results)
        state = RequestState.DONE if done == len(results) else RequestState.FAILED
        return RequestStatus(state, f"{done} of {len(results)} pods moved", moves=results)

    def _acting_settings(self) -> Settings:
        return self.acting.limited(self.settings().model_copy(update={"mode": Mode.ACT}))

    def _age(self, request: Request) -> float:
        try:
            created = datetime.fromisoformat(request.metadata.creation_timestamp).timestamp()
        except ValueError:
            return 0.0
        return self.clock.now() - created


def _is_superseded(request: Request, listed: Sequence[Request]) -> bool:
    """A later pause or resume was carried out: the earlier one, which may have been, too, must not undo it."""
    return request.spec.action in _EMERGENCY and any(
        other.ended
        and other.spec.action in _EMERGENCY
        and other.metadata.creation_timestamp > request.metadata.creation_timestamp
        for other in listed
    )


def _seconds(text: str) -> float:
    try:
        seconds = parse_duration(text)
    except ValueError as error:
        raise InputError(f"spec.for: {error}") from error
    if not isinstance(seconds, float) or seconds <= 0:
        raise InputError(f"spec.for: {text!r} must be longer than 0s")
    return seconds


def _result(asked: RequestedMove, pod: Pod, refusals: Mapping[str, str], ends: Mapping[str, Move]) -> MoveResult:
    move = ends.get(pod.uid)
    if move is not None:
        return MoveResult(asked.pod, asked.to, move.state, move.outcome[:_LONGEST_TEXT])
    if pod.node == asked.to:
        return MoveResult(asked.pod, asked.to, MoveState.DONE, "it is there already")
    pending = "it is pending: the binder places it" if pod.node is None else "it may not move"
    return MoveResult(asked.pod, asked.to, "refused", refusals.get(asked.pod, pending)[:_LONGEST_TEXT])


def _by(status: RequestStatus, leader: str) -> RequestStatus:
    return RequestStatus(status.state, status.message, leader, status.moves)
