"""The journal: what survives a crash. Written before the API call that it announces, never on the binding path."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from reactor.errors import RematchError
from reactor.state.moves import Move


class JournalError(RematchError):
    """The journal could not be written, or somebody else has written it: the announced call must not be sent."""


@dataclass(frozen=True, slots=True)
class SavedState:
    """The one state object: named JSON documents, each written by its owner (`brake`, `settings`, `cooldowns`)."""

    documents: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class JournalContents:
    moves: tuple[Move, ...] = ()
    state: SavedState = SavedState()


class Journal(Protocol):
    @property
    def place(self) -> str:
        """What tells this journal from others in the same cluster."""
        ...

    async def load(self) -> JournalContents:
        """Everything that an earlier process or leader left. Also takes over: later writes of the past writer fail."""
        ...

    async def write(self, move: Move) -> None:
        """Create or update the entry of a move by compare-and-swap. Raises JournalError."""
        ...

    async def remove(self, move_id: str) -> None:
        """The move has ended and is recorded. An entry that is gone already is no error."""
        ...

    async def write_state(self, state: SavedState) -> None:
        """Raises JournalError."""
        ...


class MemoryJournal:
    """For simulations and tests: survives a restart of the controller, not of the process."""

    place = "memory"

    def __init__(self) -> None:
        self.moves: dict[str, Move] = {}
        self.state = SavedState()
        self.writes = 0

    async def load(self) -> JournalContents:
        return JournalContents(tuple(self.moves.values()), self.state)

    async def write(self, move: Move) -> None:
        self.writes += 1
        self.moves[move.id] = move

    async def remove(self, move_id: str) -> None:
        self.moves.pop(move_id, None)

    async def write_state(self, state: SavedState) -> None:
        self.writes += 1
        self.state = state
