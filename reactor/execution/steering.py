"""Hints that make the pod's own scheduler prefer the planned node for a replacement."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Protocol

from reactor.cluster.hints import MOVE_LABEL, Hint, HintRefused, Hints, HintWriter
from reactor.cluster.steering_policy import CANARY_MOVE
from reactor.errors import NotFound
from reactor.settings.model import Mode
from reactor.state.moves import Move
from reactor.state.steering import SteeringStatus

__all__ = ["MOVE_LABEL", "HintSteering", "NoSteering", "Steering"]


class Steering(Protocol):
    @property
    def status(self) -> SteeringStatus: ...

    async def hint(self, move: Move, *, hard: bool = False) -> None:
        """Write the hint for the next pod of the move's owner, before the call that makes the owner create one.

        Raises a ClusterError when it could not be written; then the move must not start.
        """
        ...

    async def withdraw(self, move_ids: Collection[str]) -> None:
        """Remove the hints of these moves; those that are gone already are no error."""
        ...

    async def withdraw_others(self, move_ids: Collection[str]) -> None:
        """Remove the hints of all other moves: what an earlier process left. Its writes that come late are refused."""
        ...

    def doubt(self) -> None:
        """The replacement of a hinted move came without the stamp: try the policy again."""
        ...


class NoSteering:
    """Where there is no policy: pods with our schedulerName are bound by the binder."""

    status = SteeringStatus(problem="this controller has no connection for hints")

    async def hint(self, move: Move, *, hard: bool = False) -> None:
        """Nothing to write."""

    async def withdraw(self, move_ids: Collection[str]) -> None:
        """Nothing to remove."""

    async def withdraw_others(self, move_ids: Collection[str]) -> None:
        """Nothing to remove."""

    def doubt(self) -> None:
        """Nothing to try."""


class HintSteering:
    """Implements Steering by the PlacementHint object, which a policy or an extender reads. `background.steering_check`
    finds out whether that works."""

    def __init__(self, writer: HintWriter, hostname_of: Callable[[str], str | None], mode: Callable[[], Mode]) -> None:
        """`hostname_of` gives the value of a node's label `kubernetes.io/hostname`."""
        self._writer = writer
        self._hostname_of = hostname_of
        self._mode = mode
        self.missing: str | None = None
        """What has to be installed; empty when everything is there, None before the first look."""
        self.canary: str | None = None
        """What the last canary found; empty when its pod was stamped, None before the first one."""
        self.doubted = asyncio.Event()
        self.extender_problem = SteeringStatus().extender_problem

    @property
    def status(self) -> SteeringStatus:
        return replace(self._policy_status(), extender_problem=self.extender_problem)

    def _policy_status(self) -> SteeringStatus:
        if self.missing is None:
            return SteeringStatus()
        if self.missing:
            return SteeringStatus(problem=self.missing)
        if self.canary is not None:
            return SteeringStatus(not self.canary, self.canary, tried=True)
        untried = (
            "the policy rematch-hints is installed; whether it works is tried by a canary in mode act, where"
            " managed.anySchedulerNamespaces names a namespace"
        )
        return SteeringStatus(self._mode() is not Mode.ACT, untried)

    async def hint(self, move: Move, *, hard: bool = False) -> None:
        owner, hint = move.owner, self._hint(move, hard)
        if owner is None:
            raise HintRefused(f"{move.pod.key} has no owner, so nothing can be said about its next pod")

        def change(hints: Hints) -> dict[str, Hint]:
            known = hints.get(owner.uid)
            if known is not None and known.move != move.id:
                raise HintRefused(f"{owner.kind} {owner.name} has a hint of the move {known.move} already")
            return {} if known == hint else {owner.uid: hint}

        await self._writer.change(change)
        await self._writer.until_seen()

    async def withdraw(self, move_ids: Collection[str]) -> None:
        await self._remove(lambda hint: hint.move in move_ids)

    async def withdraw_others(self, move_ids: Collection[str]) -> None:
        await self._remove(lambda hint: hint.move not in move_ids, writer=secrets.token_hex(8))

    async def sweep(self, move_ids: Callable[[], Collection[str]]) -> None:
        """As `withdraw_others` within one process: what a failed `withdraw` left. The ids are asked for after the hints
        are read: a hint is written after its move is known."""
        await self._remove(lambda hint: hint.move not in move_ids())

    def doubt(self) -> None:
        self.doubted.set()

    def _hint(self, move: Move, hard: bool) -> Hint:
        hostname = self._hostname_of(move.target)
        if not hostname:
            raise HintRefused(f"{move.target} has no label kubernetes.io/hostname, so no hint can name it")
        stateful = move.owner is not None and move.owner.kind == "StatefulSet"
        pod = move.pod.name if stateful else None
        return Hint(move.id, hostname, pod, hard, self._hostname_of(move.source) or None)

    async def _remove(self, unwanted: Callable[[Hint], bool], writer: str | None = None) -> None:
        def change(hints: Hints) -> dict[str, None]:
            return {
                uid: None for uid, hint in hints.items() if unwanted(hint) and not hint.move.startswith(CANARY_MOVE)
            }

        try:
            await self._writer.change(change, writer=writer)
        except NotFound:
            return  # without the CRD there is no hint
