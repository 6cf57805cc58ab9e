"""Our Events on the objects concerned: written in the background, repeats only counted, never too many."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import structlog

from reactor.clock import Clock
from reactor.cluster.kinds import ObjectName
from reactor.cluster.writes import Announcement
from reactor.errors import ClusterError, NotFound

log = structlog.get_logger(__name__)

REPEAT_AFTER = 300.0
"""The same news of the same object is written at most so often; in between it is only counted."""
REMEMBERED = 10_000
WAITING = 1_000


class Writer(Protocol):
    async def create_event(self, announcement: Announcement) -> ObjectName: ...

    async def count_event(self, event: ObjectName, count: int) -> None: ...


@dataclass(slots=True)
class _Said:
    count: int = 0
    last: float | None = None
    event: ObjectName | None = None


class Notes:
    """A bounded queue before the API: adding never waits and never fails a cycle. Without a writer nothing is said."""

    def __init__(self, writer: Writer | None, clock: Clock, lost: Callable[[], None] = lambda: None) -> None:
        """`lost` is called for every Event that will not be written."""
        self._writer = writer
        self._clock = clock
        self._lost = lost
        self._queue: asyncio.Queue[Announcement] = asyncio.Queue(WAITING)
        self._said: OrderedDict[Announcement, _Said] = OrderedDict()
        self.problem = ""
        """Why the last Event was not written; empty when it was."""

    def add(self, note: Announcement) -> None:
        if self._writer is None:
            return
        said = self._said.setdefault(note, _Said())
        self._said.move_to_end(note)
        if len(self._said) > REMEMBERED:
            self._said.popitem(last=False)
        said.count += 1
        now = self._clock.now()
        if said.last is not None and now - said.last < REPEAT_AFTER:
            return
        try:
            self._queue.put_nowait(note)
        except asyncio.QueueFull:
            self._lost()
        else:
            said.last = now

    async def run(self) -> None:
        """Until cancelled. An Event that the API does not take is logged and counted, then forgotten."""
        while self._writer is not None:
            note = await self._queue.get()
            try:
                await self._write(self._writer, note, self._said.get(note, _Said(1)))
                self.problem = ""
            except ClusterError as error:
                self._lost()
                self.problem = str(error)
                log.warning("event not written", about=note.name, reason=note.reason, error=str(error))

    @staticmethod
    async def _write(writer: Writer, note: Announcement, said: _Said) -> None:
        if said.event is not None:
            try:
                return await writer.count_event(said.event, said.count)
            except NotFound:
                said.event = None
        said.event = await writer.create_event(note)
        return None
