"""The documents of the state object: kept here, written in batches."""

from __future__ import annotations

import asyncio

import structlog

from reactor.clock import Clock
from reactor.execution.journal import Journal, JournalError, SavedState

log = structlog.get_logger(__name__)

BATCH_SECONDS = 10.0
_LOOK_SECONDS = 1.0


class StateDocuments:
    """Documents that nobody here knows (a newer version's) are kept as they are."""

    def __init__(self, journal: Journal, clock: Clock) -> None:
        self._journal = journal
        self._clock = clock
        self._documents: dict[str, str] = {}
        self._changed = False
        self._written = float("-inf")
        self._writing = asyncio.Lock()
        self.problem = ""

    def restore(self, state: SavedState) -> None:
        self._documents, self._changed = dict(state.documents), False

    def get(self, name: str) -> str | None:
        return self._documents.get(name)

    def put(self, name: str, text: str | None) -> None:
        """Written with the next batch; None removes it."""
        if self._documents.get(name) == text:
            return
        if text is None:
            del self._documents[name]
        else:
            self._documents[name] = text
        self._changed = True

    async def save(self, name: str, text: str | None) -> None:
        """At once: for what must not be lost, such as a pause or a brake. Raises JournalError."""
        self.put(name, text)
        await self.flush()

    async def flush(self) -> None:
        """One at a time: a write that loses against a later one is sent again, and would undo it."""
        async with self._writing:
            if not self._changed:
                return
            self._changed = False
            try:
                await self._journal.write_state(SavedState(dict(self._documents)))
            except BaseException as error:
                self._changed = True
                self.problem = str(error) if isinstance(error, JournalError) else self.problem
                raise
            self._written, self.problem = self._clock.monotonic(), ""

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await self._clock.sleep(_LOOK_SECONDS)
            if self._clock.monotonic() < self._written + BATCH_SECONDS:
                continue
            try:
                await self.flush()
            except JournalError as error:
                self._written = self._clock.monotonic()
                log.warning("state not saved", error=str(error))
