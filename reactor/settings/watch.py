"""Follows a settings file by looking at it: that also sees a rename, and the symlink swap of a mounted ConfigMap."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

from reactor.clock import Clock
from reactor.errors import SettingsError
from reactor.settings.file import read_file
from reactor.settings.source import SettingsSource

POLL_SECONDS = 0.5
"""A change is seen at the next look and in force at the one after it: within 2 s."""


@dataclass(frozen=True, slots=True)
class _Look:
    text: str | None
    trouble: str = ""


async def watch_file(path: Path, settings: SettingsSource, clock: Clock) -> None:
    """Ends only by cancellation. What looks different from look to look is still being written, and waits."""
    previous: _Look | None = None
    while True:
        await clock.sleep(POLL_SECONDS)
        look = await asyncio.to_thread(_look, path)
        if look == previous:
            _hand_over(look, path, settings)
        previous = look


def _look(path: Path) -> _Look:
    try:
        return _Look(read_file(path))
    except SettingsError as error:
        return _Look(None, error.problems[0][1])


def _hand_over(look: _Look, path: Path, settings: SettingsSource) -> None:
    if look.text is None:
        settings.lost(str(path), look.trouble)
    else:
        settings.offer(look.text, str(path))
