"""The journal in the cluster: one `Move` object per move in flight, and the ConfigMap `rematch-state`.

Every write names the version that it replaces. A leader takes over by raising the epoch in every object, so that each
later write of its predecessor is a conflict, and an object with our epoch was written by us.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from typing import Any

import msgspec
import structlog
from msgspec import Raw, Struct

from reactor.cluster.api import Connection
from reactor.cluster.kinds import Kind
from reactor.cluster.objects import Collection, ObjectMeta
from reactor.cluster.rights import INSTALL
from reactor.errors import ClusterError, Conflict, Forbidden, NotFound, NotLeader, Unreachable
from reactor.execution.journal import JournalContents, JournalError, SavedState
from reactor.state.moves import Move

log = structlog.get_logger(__name__)

API_VERSION = "rematch.io/v1alpha1"
VERSION = 1
READABLE_BY = 1
"""The oldest version of the format whose readers understand what this version writes."""
STATE_OBJECT = "rematch-state"
MAX_MOVE_BYTES = 4096
MAX_STATE_BYTES = 65536
_HEADER = "journal"
"""The key of the state object that holds version and epoch; the others are documents."""
_ATTEMPTS = 3
_LONGEST_REASON = 200
_MOVE_FIELDS = frozenset(field.name for field in fields(Move))


class _MoveSpec(Struct, rename="camel", gc=False):
    version: int
    readable_by: int
    move: Raw
    epoch: int = 0


class _MoveObject(Struct, gc=False):
    metadata: ObjectMeta
    spec: Raw


class _StateObject(Struct, gc=False):
    metadata: ObjectMeta
    data: dict[str, str] = {}


class _Header(Struct, rename="camel", gc=False):
    version: int
    readable_by: int
    epoch: int = 0
    writer: str = ""


@dataclass(frozen=True, slots=True)
class _Entry:
    """The object of a move as it was last read or written, with what it holds of the move."""

    meta: ObjectMeta
    document: Mapping[str, Any]


class ClusterJournal:
    """Implements `journal.Journal`. `writer` names this process in the state object."""

    def __init__(self, connection: Connection, namespace: str, writer: str) -> None:
        self._namespace = namespace
        self._writer = writer
        self._moves = _moves(connection, namespace)
        self._states = _states(connection, namespace)
        self._entries: dict[str, _Entry] = {}
        self._creating: set[str] = set()
        self._state: _StateObject | None = None
        self._epoch = 0

    @property
    def place(self) -> str:
        return self._namespace

    async def load(self) -> JournalContents:
        """Nothing is written before everything was read and understood."""
        try:
            objects = await self._moves.list_all()
            state = await self._states.find(STATE_OBJECT)
            specs = [_spec_of(found) for found in objects]
            moves = tuple(_move_in(spec, found) for spec, found in zip(specs, objects, strict=True))
            header = _header_of(state)
            seen = [header.epoch if header else 0, self._epoch, *(spec.epoch for spec in specs)]
            self._epoch = max(seen) + 1
            self._state = await self._take_state(state)
            entries = [await self._take_move(found) for found in objects]
        except ClusterError as error:
            raise self._explained(error) from error
        self._entries = {move.id: entry for move, entry in zip(moves, entries, strict=True)}
        return JournalContents(moves, SavedState(_documents(self._state)))

    async def read_state(self) -> SavedState:
        """What the last leader saved, without taking anything over."""
        try:
            state = await self._states.find(STATE_OBJECT)
        except ClusterError as error:
            raise self._explained(error) from error
        _header_of(state)
        return SavedState() if state is None else SavedState(_documents(state))

    async def take_strays(self) -> tuple[Move, ...]:
        """Entries that a past leader created after we took over. Raises JournalError.

        One of ours that we do not know was held back on its way and came after its move had ended: it is removed.
        """
        try:
            unknown = [found for found in await self._moves.list_all() if not self._knows(found.metadata.name)]
            strays = [found for found in unknown if _spec_of(found).epoch < self._epoch]
            moves = tuple(_move_in(_spec_of(found), found) for found in strays)
            for move, found in zip(moves, strays, strict=True):
                self._entries[move.id] = await self._take_move(found)
            for found in unknown:
                if _spec_of(found).epoch == self._epoch:
                    await self._moves.delete(found.metadata)
        except ClusterError as error:
            raise self._explained(error) from error
        return moves

    def _knows(self, move_id: str) -> bool:
        return move_id in self._entries or move_id in self._creating

    async def write(self, move: Move) -> None:
        self._creating.add(move.id)
        try:
            await self._write(move)
        finally:
            self._creating.discard(move.id)

    async def _write(self, move: Move) -> None:
        if self._state is None:
            raise JournalError("the journal was not loaded")
        document = _document(move)
        spec = self._spec(move)
        body = {
            "apiVersion": API_VERSION,
            "kind": "Move",
            "metadata": {"name": move.id, "namespace": self._namespace},
            "spec": spec | {"move": document},
        }
        size = len(msgspec.json.encode(body))
        if size > MAX_MOVE_BYTES:
            raise JournalError(f"move {move.id} of {move.pod.key} takes {size} bytes, more than {MAX_MOVE_BYTES}")
        entry = self._entries.get(move.id)
        cause: ClusterError | None = None
        for _ in range(_ATTEMPTS):
            try:
                if entry is None:
                    written = await self._moves.create(body)
                else:
                    change = spec | {"move": _replacing(entry.document, document)}
                    written = await self._moves.patch(entry.meta, {"spec": change})
                self._entries[move.id] = _Entry(written.metadata, document)
            except (Conflict, NotFound, Unreachable) as error:
                if entry is None and isinstance(error, NotFound):
                    raise self._explained(error) from error
                cause, before = error, entry
                entry = await self._ours(move.id, error)
                if entry is None and before is not None:
                    await self._our_state(error)  # somebody deleted it: it is written again while we lead
                elif entry is not None and _decoded(entry.document) == move:
                    self._entries[move.id] = entry
                    return
            except ClusterError as error:
                raise self._explained(error) from error
            else:
                return
        raise JournalError(f"move {move.id} of {move.pod.key} could not be written: {cause}")

    async def remove(self, move_id: str) -> None:
        entry = self._entries.get(move_id)
        if entry is None:
            return
        for _ in range(_ATTEMPTS):
            try:
                await self._moves.delete(entry.meta)
            except (Conflict, Unreachable) as error:
                found = await self._ours(move_id, error)
                if found is not None:
                    entry = found
                    continue
            except ClusterError as error:
                raise self._explained(error) from error
            self._entries.pop(move_id, None)  # they may have been loaded again meanwhile
            return
        raise JournalError(f"the entry of move {move_id} could not be removed from {self._moves.path}")

    async def write_state(self, state: SavedState) -> None:
        if self._state is None:
            raise JournalError("the journal was not loaded")
        data: dict[str, str | None] = {_HEADER: self._header(), **state.documents}
        size = sum(len(name.encode()) + len(text.encode()) for name, text in data.items() if text is not None)
        if size > MAX_STATE_BYTES:
            raise JournalError(f"the state takes {size} bytes, more than {MAX_STATE_BYTES}")
        gone = dict.fromkeys(name for name in self._state.data if name not in data)
        cause: ClusterError | None = None
        for _ in range(_ATTEMPTS):
            try:
                self._state = await self._states.patch(self._state.metadata, {"data": data | gone})
            except (Conflict, Unreachable) as error:
                cause = error
                self._state = await self._our_state(error)
                if self._state.data == data:
                    return
            except NotFound as error:
                cause = error
                self._state = await self._made_again(error)
            except ClusterError as error:
                raise self._explained(error) from error
            else:
                return
        raise JournalError(f"the state could not be written: {cause}")

    async def _take_state(self, state: _StateObject | None) -> _StateObject:
        if state is not None:
            return await self._states.patch(state.metadata, {"data": {_HEADER: self._header()}})
        labels = {"app.kubernetes.io/name": "rematch"}
        metadata = {"name": STATE_OBJECT, "namespace": self._namespace, "labels": labels}
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {_HEADER: self._header()}}
        return await self._states.create(body)

    async def _made_again(self, cause: ClusterError) -> _StateObject:
        """Somebody deleted the state object; another leader may have made its own."""
        try:
            return await self._take_state(None)
        except Conflict:
            return await self._our_state(cause)
        except ClusterError as error:
            raise self._explained(error) from error

    async def _take_move(self, found: _MoveObject) -> _Entry:
        taken = await self._moves.patch(found.metadata, {"spec": {"epoch": self._epoch}})
        return _Entry(taken.metadata, msgspec.json.decode(_spec_of(taken).move))

    async def _ours(self, name: str, cause: ClusterError) -> _Entry | None:
        """The object after a conflict or an answer that was lost; raises when another leader has it."""
        try:
            found = await self._moves.find(name)
        except ClusterError as error:
            raise JournalError(f"{cause}; and reading it back: {error}") from error
        if found is None:
            return None
        spec = _spec_of(found)
        if spec.epoch != self._epoch:
            raise JournalError(f"move {name} was taken over by another leader (epoch {spec.epoch}): {cause}")
        return _Entry(found.metadata, msgspec.json.decode(spec.move))

    async def _our_state(self, cause: ClusterError) -> _StateObject:
        try:
            found = await self._states.find(STATE_OBJECT)
        except ClusterError as error:
            raise JournalError(f"{cause}; and reading it back: {error}") from error
        header = _header_of(found)
        if found is None or header is None or header.epoch != self._epoch:
            raise JournalError(f"the state object was taken over by another leader, or is gone: {cause}")
        return found

    def _spec(self, move: Move) -> dict[str, Any]:
        return {
            "version": VERSION,
            "readableBy": READABLE_BY,
            "epoch": self._epoch,
            "pod": move.pod.key,
            "from": move.source,
            "to": move.target,
            "strategy": move.strategy.value,
            "state": move.state.value,
            "reason": (move.outcome or (move.reasons[0] if move.reasons else ""))[:_LONGEST_REASON],
        }

    def _header(self) -> str:
        return msgspec.json.encode(_Header(VERSION, READABLE_BY, self._epoch, self._writer)).decode()

    def _explained(self, error: ClusterError) -> JournalError:
        """With the command that mends it."""
        if isinstance(error, NotLeader):
            return JournalError(str(error))
        if isinstance(error, Forbidden):
            return JournalError(f"{error}; mend it with: {INSTALL}")
        if isinstance(error, NotFound) and "namespaces" in str(error).partition("404")[2]:
            return JournalError(f"{error}; mend it with: kubectl create namespace {self._namespace}")
        if isinstance(error, NotFound) and self._moves.path in str(error) and 'moves.rematch.io "' not in str(error):
            return JournalError(f"the CRD moves.rematch.io is missing; mend it with: {INSTALL} ({error})")
        return JournalError(str(error))


class StoredJournal:
    """The journal as objects, for whoever ends or removes it without leading."""

    def __init__(self, connection: Connection, namespace: str) -> None:
        self._moves = _moves(connection, namespace)
        self._states = _states(connection, namespace)

    async def moves(self) -> list[str]:
        """Names of the moves in flight; none where the definition is not installed."""
        try:
            return [found.metadata.name for found in await self._moves.list_all()]
        except NotFound:
            return []

    async def delete_state(self) -> None:
        """Whatever a leader may write meanwhile."""
        for _ in range(_ATTEMPTS):
            state = await self._states.find(STATE_OBJECT)
            if state is None:
                return
            with suppress(Conflict):
                await self._states.delete(state.metadata)


def _moves(connection: Connection, namespace: str) -> Collection[_MoveObject]:
    return Collection(connection, f"/apis/{API_VERSION}/namespaces/{namespace}/moves", _MoveObject)


def _states(connection: Connection, namespace: str) -> Collection[_StateObject]:
    return Collection(connection, Kind.CONFIG_MAPS.path(namespace), _StateObject)


def _spec_of(found: _MoveObject) -> _MoveSpec:
    name = found.metadata.name
    try:
        spec = msgspec.json.decode(found.spec, type=_MoveSpec)
    except msgspec.MsgspecError as error:
        raise _incompatible(f"Move {name} cannot be read ({error})", f"moves.rematch.io {name}") from error
    if spec.readable_by > VERSION:
        raise _incompatible(
            f"Move {name} is of version {spec.version} of the journal, this controller reads {VERSION}",
            f"moves.rematch.io {name}",
        )
    return spec


def _move_in(spec: _MoveSpec, found: _MoveObject) -> Move:
    try:
        return msgspec.json.decode(spec.move, type=Move)
    except msgspec.MsgspecError as error:
        name = found.metadata.name
        raise _incompatible(f"Move {name} cannot be read ({error})", f"moves.rematch.io {name}") from error


def _header_of(state: _StateObject | None) -> _Header | None:
    if state is None or _HEADER not in state.data:
        return None
    try:
        header = msgspec.json.decode(state.data[_HEADER], type=_Header)
    except msgspec.MsgspecError as error:
        text = f"the key {_HEADER} of ConfigMap {STATE_OBJECT} cannot be read ({error})"
        raise _incompatible(text, f"configmap {STATE_OBJECT}") from error
    if header.readable_by > VERSION:
        text = f"ConfigMap {STATE_OBJECT} is of version {header.version}, this controller reads {VERSION}"
        raise _incompatible(text, f"configmap {STATE_OBJECT}")
    return header


def _incompatible(what: str, name: str) -> JournalError:
    return JournalError(f"{what}: it is left alone; run the version that wrote it, or: kubectl delete {name}")


def _documents(state: _StateObject) -> dict[str, str]:
    return {name: text for name, text in state.data.items() if name != _HEADER}


def _document(move: Move) -> dict[str, Any]:
    document: dict[str, Any] = _without_nulls(msgspec.json.decode(msgspec.json.encode(move)))
    return document


def _without_nulls(value: Any) -> Any:
    """The API server drops them from an object, and takes them in a merge patch as "remove"."""
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return value


def _decoded(document: Mapping[str, Any]) -> Move:
    return msgspec.convert(document, Move)


def _replacing(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """A merge patch from the old document to the new one. Fields that only a newer version knows stay."""
    changed = dict.fromkeys(name for name in _MOVE_FIELDS if name in old) | dict(new)
    for key, value in new.items():
        before = old.get(key)
        if isinstance(value, dict) and isinstance(before, dict):
            changed[key] = dict.fromkeys(name for name in before if name not in value) | value
    return changed
