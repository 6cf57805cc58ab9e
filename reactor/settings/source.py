"""The settings in force, and how a new revision from a file or a ConfigMap replaces them or is refused."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from reactor.clock import Clock
from reactor.errors import FieldError, SettingsError
from reactor.settings.document import read_file
from reactor.settings.load import parse_settings
from reactor.settings.model import Settings

POLL_SECONDS = 0.5
"""A change is seen at the next poll and in force at the one after it: within 2 s."""


@dataclass(frozen=True, slots=True)
class SettingsRevision:
    settings: Settings
    digest: str
    source: str
    at: float
    text: str


@dataclass(frozen=True, slots=True)
class RefusedRevision:
    """Also for a file or ConfigMap that is gone: then text and digest are empty."""

    problems: tuple[FieldError, ...]
    digest: str
    source: str
    at: float
    text: str


OnAccepted = Callable[[SettingsRevision, SettingsRevision], None]
"""Called with the old and the new revision in force."""

OnRefused = Callable[[RefusedRevision], None]


class SettingsSource:
    """`current` is always complete and valid. `refused` is the last revision if it was refused."""

    def __init__(
        self,
        first: SettingsRevision,
        clock: Clock,
        on_accepted: OnAccepted,
        on_refused: OnRefused,
        planner_function: str = "",
    ) -> None:
        self._current = first
        self._planner_function = planner_function
        self._refused: RefusedRevision | None = None
        self._clock = clock
        self._on_accepted = on_accepted
        self._on_refused = on_refused

    @classmethod
    def from_file(
        cls, path: Path, clock: Clock, on_accepted: OnAccepted, on_refused: OnRefused, planner_function: str = ""
    ) -> Self:
        """Raises SettingsError when the file is invalid: nothing must run with other settings than the given ones."""
        first = _revision(read_file(path), str(path), clock.now(), planner_function)
        return cls(first, clock, on_accepted, on_refused, planner_function)

    @classmethod
    def from_defaults(
        cls, clock: Clock, on_accepted: OnAccepted, on_refused: OnRefused, planner_function: str = ""
    ) -> Self:
        """For a ConfigMap, which may be created later. The defaults only observe."""
        first = _revision("", "defaults", clock.now(), planner_function)
        return cls(first, clock, on_accepted, on_refused, planner_function)

    @property
    def current(self) -> SettingsRevision:
        return self._current

    @property
    def refused(self) -> RefusedRevision | None:
        return self._refused

    def offer(self, text: str, source: str) -> bool:
        """True when the text is in force now. The same text again changes and reports nothing."""
        digest = _digest(text)
        if digest == self._current.digest:
            self._refused = None
            return True
        if self._refused is not None and self._refused.digest == digest:
            return False
        try:
            accepted = _revision(text, source, self._clock.now(), self._planner_function)
        except SettingsError as error:
            self._refuse(RefusedRevision(tuple(error.problems), digest, source, self._clock.now(), text))
            return False
        old, self._current, self._refused = self._current, accepted, None
        self._on_accepted(old, accepted)
        return True

    def lost(self, source: str, reason: str) -> None:
        """The file or ConfigMap is gone or unreadable: the current settings stay in force; this is reported once."""
        problems = (FieldError("", f"{reason}; the settings read before stay in force"),)
        if self._refused is None or self._refused.problems != problems:
            self._refuse(RefusedRevision(problems, "", source, self._clock.now(), ""))

    def _refuse(self, revision: RefusedRevision) -> None:
        self._refused = revision
        self._on_refused(revision)


def _revision(text: str, source: str, at: float, planner_function: str) -> SettingsRevision:
    return SettingsRevision(parse_settings(text, source, planner_function), _digest(text), source, at, text)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True)
class _FileState:
    text: str | None
    problem: str = ""


async def watch_file(path: Path, settings: SettingsSource, clock: Clock) -> None:
    """Polls the file until cancelled: this also sees a rename, and the symlink swap of a mounted ConfigMap.

    Content that differs between two polls is still being written and is not used yet.
    """
    previous: _FileState | None = None
    while True:
        await clock.sleep(POLL_SECONDS)
        state = await asyncio.to_thread(_read_state, path)
        if state == previous:
            _apply(state, path, settings)
        previous = state


def _read_state(path: Path) -> _FileState:
    try:
        return _FileState(read_file(path))
    except SettingsError as error:
        return _FileState(None, error.problems[0][1])


def _apply(state: _FileState, path: Path, settings: SettingsSource) -> None:
    if state.text is None:
        settings.lost(str(path), state.problem)
    else:
        settings.offer(state.text, str(path))
