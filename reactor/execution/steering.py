"""Hints that make the pod's own scheduler prefer the planned node for a replacement."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from reactor.state.moves import Move
from reactor.state.steering import SteeringStatus

MOVE_LABEL = "rematch.io/move"
"""The policy stamps it, with the id of the move, on the pod that a hint applied to."""


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
        """Remove the hints of all other moves: what an earlier process left."""
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
