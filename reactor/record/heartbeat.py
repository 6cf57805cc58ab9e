"""Whether a loop still runs."""

from __future__ import annotations

from dataclasses import dataclass, field

from reactor.clock import Clock


@dataclass(slots=True)
class Heartbeat:
    name: str
    clock: Clock
    _last: float | None = field(default=None)

    def beat(self) -> None:
        self._last = self.clock.monotonic()

    def stalled(self, limit: float) -> str:
        """Why the process should be restarted; empty while the loop runs, and before it has started: a cluster that
        does not answer is no reason to restart."""
        if self._last is None:
            return ""
        silent = self.clock.monotonic() - self._last
        return f"the {self.name} has not run for {silent:.0f} s" if silent > limit else ""
