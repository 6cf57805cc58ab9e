"""What only the leader does: takes over the journal, saves the state, carries out requests. Stops with the Lease."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace

import msgspec
import structlog

from reactor.background.active_settings import ActiveSettings
from reactor.clock import Clock
from reactor.cluster.backoff import Backoff
from reactor.decision.brakes import Brakes
from reactor.decision.cooldowns import Cooldowns, DecisionMemory
from reactor.decision.saved_cooldowns import (
    BRAKE_DOCUMENT,
    brake_document,
    from_document,
    merged,
    to_document,
    with_brakes,
)
from reactor.decision.saved_cooldowns import DOCUMENT as COOLDOWNS
from reactor.execution.acting import NOT_LOADED, Acting, Pause
from reactor.execution.journal import Journal, JournalContents, JournalError, SavedState
from reactor.execution.state_documents import StateDocuments
from reactor.settings.source import SettingsRevision

log = structlog.get_logger(__name__)

PAUSE = "pause"
SETTINGS = "settings"
MAX_SETTINGS_BYTES = 16_000
_FIRST_RETRY, _RETRY_SECONDS = 0.5, 5.0
_SAVE_SECONDS = 1.0
_STRAYS_SECONDS = 10.0


class SavedSettings(msgspec.Struct, frozen=True):
    """The last accepted settings, as a document of the state object."""

    text: str
    source: str
    digest: str


@dataclass
class Leading:
    """`run` is called by the election whenever this process begins to lead, and cancelled when it loses the Lease."""

    journal: Journal
    acting: Acting
    documents: StateDocuments
    memory: DecisionMemory
    settings: ActiveSettings
    clock: Clock
    wake: Callable[[], None]
    """What may be done has changed."""
    take_over: Callable[[JournalContents], Awaitable[None]]
    """Resumes the moves of the journal."""
    drop: Callable[[], None]
    """Forgets the moves: they are another leader's now."""
    saved_state: Callable[[], Awaitable[SavedState]] | None = None
    """Where settings come from a ConfigMap: what the last leader saved."""
    strays: Callable[[], Awaitable[None]] | None = None
    """Takes over what a past leader wrote too late. Raises JournalError."""
    also: list[Callable[[], Awaitable[None]]] = field(default_factory=list)
    """Further work of a leader, until cancelled."""
    _saved: Cooldowns | None = None

    async def run(self) -> None:
        self.wake()
        try:
            await self._load()
            self.wake()
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self.documents.run(), name="state object")
                tasks.create_task(self._note_changes(), name="state")
                tasks.create_task(self._look_for_strays(), name="strays")
                for work in self.also:
                    tasks.create_task(_awaited(work))
        finally:
            await self._save_last()
            self.acting.journal_problem = self.acting.journal_problem or NOT_LOADED
            self.drop()

    async def restore_settings(self) -> None:
        """Before anything is decided: the last accepted settings, in case those of the ConfigMap are refused."""
        if self.saved_state is None:
            return
        try:
            text = (await self.saved_state()).documents.get(SETTINGS)
            if text is not None:
                saved = msgspec.json.decode(text, type=SavedSettings)
                self.settings.restore(saved.text, saved.source)
        except (JournalError, msgspec.MsgspecError) as error:
            log.warning("the settings of the last run could not be restored", error=str(error))

    async def _save_last(self) -> None:
        """On shutdown, while the Lease is still held. Without it, the write is refused at once."""
        if self.acting.journal_problem:
            return
        self._put()
        await self._flush()

    async def _flush(self) -> None:
        try:
            await self.documents.flush()
        except JournalError as error:
            log.warning("state not saved", error=str(error))

    async def pause(self, pause: Pause | None) -> None:
        """None resumes, and releases the brakes. Raises JournalError when it could not be saved; it is in force
        nevertheless."""
        self.acting.pause = pause
        if pause is None:
            self.memory.cooldowns = replace(self.memory.cooldowns, brakes=Brakes())
            self._put()
        self.wake()
        await self.documents.save(PAUSE, None if pause is None else msgspec.json.encode(pause).decode())

    async def _load(self) -> None:
        """Until it succeeds: without the journal nothing may be evicted, and moves in flight wait half-way."""
        backoff = Backoff(random.random, first=_FIRST_RETRY, cap=_RETRY_SECONDS)
        while True:
            try:
                contents = await self.journal.load()
                self._restore(contents)
            except JournalError as error:
                if str(error) != self.acting.journal_problem:
                    log.warning("nothing is evicted: the journal cannot be used", problem=str(error))
                self.acting.journal_problem = str(error)
                await self.clock.sleep(backoff.next())
            else:
                await self.take_over(contents)
                self.acting.journal_problem = ""
                return

    def _restore(self, contents: JournalContents) -> None:
        documents = contents.state.documents
        now = self.clock.now()
        try:
            saved = from_document(documents[COOLDOWNS], now) if COOLDOWNS in documents else Cooldowns()
            pause = msgspec.json.decode(documents[PAUSE], type=Pause) if PAUSE in documents else None
        except ValueError as error:
            text = "kubectl delete configmap rematch-state makes a new one and releases pause, brake and cooldowns"
            raise JournalError(f"the state object cannot be read: {error}; {text}") from error
        self.documents.restore(contents.state)
        self.memory.cooldowns = merged(saved, self.memory.cooldowns)
        if BRAKE_DOCUMENT in documents:
            self.memory.cooldowns = with_brakes(self.memory.cooldowns, documents[BRAKE_DOCUMENT], now)
        self.acting.pause = pause
        self._saved = None
        self.settings.announce_refused()

    async def _note_changes(self) -> None:
        """A new brake is saved at once: a crash must not release it."""
        while True:
            held = () if self._saved is None else self._saved.brakes.held
            self._put()
            if {brake.key for brake in self.memory.cooldowns.brakes.held} - {brake.key for brake in held}:
                await self._flush()
            await self.clock.sleep(_SAVE_SECONDS)

    async def _look_for_strays(self) -> None:
        while self.strays is not None:
            await self.clock.sleep(_STRAYS_SECONDS)
            try:
                await self.strays()
            except JournalError as error:
                log.warning("the journal could not be read again", error=str(error))

    def _put(self) -> None:
        if self.memory.cooldowns != self._saved:
            self._saved = self.memory.cooldowns
            text, dropped = to_document(self._saved, self.clock.now())
            if dropped:
                log.warning("the oldest cooldowns are not saved: the state object would be too large", dropped=dropped)
            self.documents.put(COOLDOWNS, text)
            self.documents.put(BRAKE_DOCUMENT, brake_document(self._saved, self.clock.now()))
        if self.acting.pause is not None and self.acting.paused is None:
            self.acting.pause = None
            self.documents.put(PAUSE, None)
            log.info("the time of the pause is up")
        self._put_settings(self.settings.source.current)

    def _put_settings(self, current: SettingsRevision) -> None:
        """The defaults are nobody's decision and not worth restoring."""
        if not current.text:
            return
        text = msgspec.json.encode(SavedSettings(current.text, current.source, current.digest)).decode()
        if len(text.encode()) <= MAX_SETTINGS_BYTES:
            self.documents.put(SETTINGS, text)
        elif self.documents.get(SETTINGS) is not None:
            log.warning("the settings are too large to be saved: a restart will not restore them")
            self.documents.put(SETTINGS, None)


async def _awaited(work: Callable[[], Awaitable[None]]) -> None:
    await work()
