"""Exponential backoff with jitter."""

from __future__ import annotations

from collections.abc import Callable


class Backoff:
    """Doubles from `first` to `cap` seconds; each delay is random between half of this and all of it.

    `draw` returns a number in [0, 1), such as random.random.
    """

    def __init__(self, draw: Callable[[], float], first: float = 0.2, cap: float = 30.0) -> None:
        self._draw = draw
        self._first = first
        self._cap = cap
        self._failures = 0

    def next(self) -> float:
        exponent = min(self._failures, 32)
        self._failures += 1
        longest = min(self._cap, self._first * 2.0**exponent)
        return longest * (0.5 + 0.5 * self._draw())

    def reset(self) -> None:
        self._failures = 0
