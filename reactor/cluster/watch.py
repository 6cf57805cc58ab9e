"""Watches: each kind is listed and watched until cancelled, whatever the server does."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Callable, Collection
from contextlib import aclosing
from dataclasses import dataclass
from typing import Protocol

from reactor.clock import Clock
from reactor.cluster.backoff import Backoff
from reactor.cluster.decoding.decoder import MalformedObject
from reactor.cluster.kinds import OPTIONAL_KINDS, Kind
from reactor.cluster.reads import Bookmark, Change, ClusterReader, Page, Remove, Skipped, Unreadable, Upsert
from reactor.cluster.records import Record
from reactor.errors import ClusterError, Expired, Forbidden, NotFound, Throttled

GIVE_UP_RESUMING = 3
"""Failed watches in a row before the kind is listed again: the server may not have our version (restored from a
backup), or the next change may be undecodable."""

_LONGEST_RETRY_AFTER = 300.0
_UNAVAILABLE_RETRY = 300.0
"""An optional kind that may not be read, or does not exist, is tried again: a role or an API may be added. At first
soon: an API server that has just started refuses everything until it has read the roles."""


class ListWatcher(Protocol):
    """The part of ClusterReader that a watcher needs."""

    async def list_all(self, kind: Kind) -> Page: ...

    def watch(
        self, kind: Kind, resource_version: str, *, timeout: float, idle_timeout: float
    ) -> AsyncGenerator[Change, None]: ...


class RecordSink(Protocol):
    """Receives the records: the mirror."""

    def replaced(self, kind: Kind, records: Collection[Record], unreadable: Collection[str]) -> None: ...

    def upsert(self, kind: Kind, record: Record) -> None: ...

    def remove(self, kind: Kind, key: str) -> None: ...

    def unavailable(self, kind: Kind) -> None: ...


class WatchReporter(Protocol):
    """Receives what is logged and counted in metrics."""

    def malformed(self, malformed: MalformedObject) -> None: ...

    def trouble(self, kind: Kind, error: ClusterError, delay: float) -> None: ...


@dataclass(frozen=True, slots=True)
class WatchTiming:
    """The timing of watchers in seconds. `draw` returns random numbers in [0, 1)."""

    clock: Clock
    draw: Callable[[], float] = random.random
    watch: float = 60.0
    """Requested duration of a watch: from this to twice this, so that watches do not end together."""
    grace: float = 15.0
    """A watch that is silent for this much longer is considered dead."""
    first_delay: float = 0.2
    longest_delay: float = 30.0
    settled: float = 60.0
    """After a watch of this duration the backoff starts again with the first delay."""

    def backoff(self) -> Backoff:
        return Backoff(self.draw, self.first_delay, self.longest_delay)


@dataclass(frozen=True, slots=True)
class WatchState:
    """For /readyz and metrics."""

    kind: Kind
    lists: int
    last_error: str
    """Empty once it works again."""
    denied: bool
    """The last error was a missing permission or rejected credentials, and the kind is needed."""
    age: float
    """Seconds since the server last answered: a list, a change, a bookmark or the end of a watch, which comes after two
    minutes at most."""


class Watcher:
    def __init__(
        self, kind: Kind, source: ListWatcher, sink: RecordSink, reporter: WatchReporter, timing: WatchTiming
    ) -> None:
        self._kind = kind
        self._source = source
        self._sink = sink
        self._reporter = reporter
        self._timing = timing
        self._clock = timing.clock
        self._reconnects = timing.backoff()
        self._relists = timing.backoff()
        self._absences = Backoff(timing.draw, first=1.0, cap=_UNAVAILABLE_RETRY)
        self._version: str | None = None
        self._listed_at = 0.0
        self._heard_at = self._clock.monotonic()
        self._failed_watches = 0
        self._lists = 0
        self._last_error = ""
        self._denied = False
        self._unavailable = False

    @property
    def state(self) -> WatchState:
        return WatchState(
            kind=self._kind,
            lists=self._lists,
            last_error=self._last_error,
            denied=self._denied,
            age=0.0 if self._unavailable else self._clock.monotonic() - self._heard_at,
        )

    async def run(self) -> None:
        """Runs until cancelled. It pauses after every watch, so this is never a hot loop."""
        while True:
            await self._clock.sleep(await self._list_and_watch())

    async def _list_and_watch(self) -> float:
        """One watch, after a list where needed. Returns the seconds to wait before the next one."""
        began = self._clock.monotonic()
        try:
            if self._version is None:
                await self._list()
            await self._watch(self._version or "")
        except Expired as error:
            return self._list_again(error)
        except ClusterError as error:
            return self._after_error(error)
        self._contact()
        if self._clock.monotonic() - began >= self._timing.settled:
            self._reconnects.reset()
        return self._reconnects.next()

    async def _list(self) -> None:
        page = await self._source.list_all(self._kind)
        for malformed in page.malformed:
            self._reporter.malformed(malformed)
        self._sink.replaced(self._kind, page.records, {malformed.key for malformed in page.malformed})
        self._version = page.resource_version
        self._listed_at = self._clock.monotonic()
        self._lists += 1
        self._unavailable = False
        self._absences.reset()
        self._contact()

    async def _watch(self, version: str) -> None:
        timeout = self._timing.watch * (1.0 + self._timing.draw())
        changes = self._source.watch(self._kind, version, timeout=timeout, idle_timeout=timeout + self._timing.grace)
        async with aclosing(changes):
            async for change in changes:
                self._apply(change)
                self._contact()
                self._reconnects.reset()

    def _apply(self, change: Change) -> None:
        match change:
            case Upsert(record):
                self._sink.upsert(self._kind, record)
                self._advance(record.resource_version)
            case Remove(key, version):
                self._sink.remove(self._kind, key)
                self._advance(version)
            case Bookmark(version):
                self._advance(version)
            case Skipped(malformed):
                self._reporter.malformed(malformed)

    def _advance(self, version: str) -> None:
        if version:
            self._version = version
            self._failed_watches = 0

    def _contact(self) -> None:
        self._heard_at = self._clock.monotonic()
        self._last_error = ""
        self._denied = False

    def _list_again(self, error: Expired) -> float:
        """Expiry is normal after a long silence; the pauses grow only when it repeats."""
        self._version = None
        if self._clock.monotonic() - self._listed_at >= self._timing.settled:
            self._relists.reset()
        return self._report(error, self._relists.next())

    def _after_error(self, error: ClusterError) -> float:
        if self._kind in OPTIONAL_KINDS and error.status in (403, 404):
            return self._do_without(error)
        if error.status is not None or isinstance(error, Unreadable):
            self._failed_watches += 1
            if self._failed_watches >= GIVE_UP_RESUMING:
                self._failed_watches = 0
                self._version = None
        delay = self._reconnects.next()
        if isinstance(error, Throttled):
            delay = max(delay, min(error.retry_after, _LONGEST_RETRY_AFTER))
        return self._report(error, delay)

    def _do_without(self, error: ClusterError) -> float:
        """Said once, not at every try."""
        self._last_error = f"{error}; Rematch goes on without it"
        self._version = None
        delay = self._absences.next()
        if not self._unavailable:
            self._unavailable = True
            self._reporter.trouble(self._kind, error, delay)
        if isinstance(error, NotFound):
            self._sink.replaced(self._kind, (), ())
        else:
            self._sink.unavailable(self._kind)
        return delay

    def _report(self, error: ClusterError, delay: float) -> float:
        self._last_error = str(error)
        self._denied = isinstance(error, Forbidden)
        self._reporter.trouble(self._kind, error, delay)
        return delay


class ClusterWatch:
    """The watchers of all kinds, which keep the mirror up to date while `run` runs."""

    def __init__(self, reader: ClusterReader, sink: RecordSink, reporter: WatchReporter, timing: WatchTiming) -> None:
        self._watchers = [Watcher(kind, reader, sink, reporter, timing) for kind in reader.kinds]

    @property
    def states(self) -> tuple[WatchState, ...]:
        return tuple(watcher.state for watcher in self._watchers)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            for watcher in self._watchers:
                tasks.create_task(watcher.run())
