"""Whether this process may act now, and why not: leader, journal, pause. It limits the mode of the settings."""

from __future__ import annotations

from dataclasses import dataclass

from msgspec import Struct

from reactor.clock import Clock, rfc3339
from reactor.execution.leader import AlwaysLeader, Leadership
from reactor.settings.model import Mode, Settings

NOT_LOADED = "the journal was not loaded yet"


class Pause(Struct, frozen=True, omit_defaults=True):
    """The emergency stop: nothing is evicted, pods are still bound. A document of the state object."""

    since: float
    until: float | None = None
    """None lasts until it is resumed."""
    reason: str = ""

    def describe(self) -> str:
        end = f"until {rfc3339(self.until)}" if self.until is not None else "until `rematch resume`"
        return f"paused since {rfc3339(self.since)} {end}" + (f": {self.reason}" if self.reason else "")


@dataclass(slots=True)
class Acting:
    """Its owner is `background.leading`; everybody else reads it."""

    clock: Clock
    leadership: Leadership
    journal_problem: str = NOT_LOADED
    """Empty when the journal is loaded and can be written."""
    pause: Pause | None = None

    @classmethod
    def always(cls, clock: Clock) -> Acting:
        """For simulations and tests."""
        return cls(clock, AlwaysLeader(), "")

    @property
    def paused(self) -> Pause | None:
        """None when the time of the pause is up."""
        pause = self.pause
        return None if pause is None or (pause.until is not None and self.clock.now() >= pause.until) else pause

    @property
    def hindrance(self) -> str:
        """Why nothing is evicted although the settings say `mode: act`; empty when it is."""
        if not self.leadership.leads:
            return self.leadership.problem or "this process does not lead"
        if self.journal_problem:
            return f"nothing is evicted without a journal: {self.journal_problem}"
        return self.paused.describe() if self.paused is not None else ""

    def limited(self, settings: Settings) -> Settings:
        """With the mode that may be used now: without the Lease observe, without journal or in a pause bind."""
        if settings.mode is Mode.OBSERVE or (settings.mode is Mode.ACT and not self.hindrance):
            return settings
        mode = Mode.BIND if self.leadership.may_bind else Mode.OBSERVE
        return settings if settings.mode is mode else settings.model_copy(update={"mode": mode})
