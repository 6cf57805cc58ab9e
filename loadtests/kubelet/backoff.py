"""The kubelet's pause before a restart: none the first time, then 10 s doubled up to 300 s, forgotten after 600 s."""

from __future__ import annotations

_FIRST = 10.0
_LONGEST = 300.0
_FORGET = 2 * _LONGEST


class RestartBackoff:
    """`scale` shortens all of it, for labs that have minutes instead of hours."""

    def __init__(self, scale: float) -> None:
        self._scale = scale
        self._delay = 0.0
        self._last: float | None = None

    def next_delay(self, now: float) -> float:
        if self._last is not None and now - self._last > _FORGET * self._scale:
            self._delay = 0.0
        delay = self._delay
        self._delay = min(max(_FIRST, delay * 2), _LONGEST)
        self._last = now
        return delay * self._scale
