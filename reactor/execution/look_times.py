"""When a move in flight is looked at: soon after the watches show a change of it, else more and more seldom.

A look reads from the API server and repeats calls, so this bounds the calls of a move: four looks per second at most,
one per second while nothing changes, one per minute while a call of it is refused.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

SHORTEST = 0.25
LONGEST = 1.0
LONGEST_REFUSED = 60.0


@dataclass(frozen=True, slots=True)
class _Look:
    at: float
    pause: float
    shown: Hashable
    refused: bool


class LookTimes:
    """`shown` is what the watches show of a move, as far as it matters for its next step."""

    def __init__(self) -> None:
        self._looks: dict[str, _Look] = {}
        self._due: dict[str, float] = {}

    def is_due(self, move: str, shown: Hashable, now: float) -> bool:
        last = self._looks.get(move)
        if last is None:
            return True
        changed = shown != last.shown and not last.refused
        self._due[move] = last.at + (SHORTEST if changed else last.pause)
        return now >= self._due[move]

    def looked(self, move: str, shown: Hashable, now: float, *, refused: bool) -> None:
        """`refused`: a call of it was refused, and it has to be repeated until somebody grants the right."""
        last = self._looks.get(move)
        if refused:
            pause = min(LONGEST_REFUSED, 2 * last.pause) if last is not None and last.refused else LONGEST
        elif last is None or last.refused or last.shown != shown:
            pause = SHORTEST
        else:
            pause = min(LONGEST, 2 * last.pause)
        self._looks[move] = _Look(now, pause, shown, refused)
        self._due[move] = now + pause

    def next_at(self, moves: Iterable[str]) -> float | None:
        """The first time at which one of these is due without a further signal."""
        return min((self._due[move] for move in moves if move in self._due), default=None)

    def forget(self, move: str) -> None:
        self._looks.pop(move, None)
        self._due.pop(move, None)

    def clear(self) -> None:
        self._looks.clear()
        self._due.clear()
