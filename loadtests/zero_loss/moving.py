"""What each way of moving pods does: a round of moves, and what became of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Landed:
    """One move: where the pod was, where it was to go, and where its replacement is. Times since the epoch."""

    app: str
    source: str
    target: str
    """Empty where nobody planned one."""
    node: str
    strategy: str
    asked: float
    """When the round began that the move is of."""
    began: float
    retiring: float | None
    """When the replacement of a surge was available, so that the old pod could go."""
    ended: float

    @property
    def seconds(self) -> float:
        return self.ended - self.began


class Mover(Protocol):
    @property
    def problems(self) -> list[str]:
        """Moves that were refused or failed, in words."""
        ...

    async def round(self, wanted: Mapping[str, int]) -> list[Landed]:
        """Move the pods of these apps, each pod at most once and of each app at most so many. Ends when the old pods
        are gone and all others Ready."""
        ...
