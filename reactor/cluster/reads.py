"""Reading the cluster: lists and watches as records, other paths as bytes."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from dataclasses import dataclass

import msgspec
from msgspec import Raw, Struct

from reactor.cluster.api import ApiRequest, Connection, checked, error_of, status_in_stream
from reactor.cluster.decoding.decoder import Decoder, MalformedObject
from reactor.cluster.kinds import CLUSTER_KINDS, Kind, Listing, ObjectName, config_map_listing, listing_of
from reactor.cluster.records import Record
from reactor.errors import Expired, Unreachable

PAGE_SIZE = 500
_PAGE_DEADLINE = 60.0
_RESTARTS = 3
"""How often a list starts again because its pages expired before the last one was read."""
_UNDECODABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


@dataclass(frozen=True, slots=True)
class Upsert:
    """A new or changed object."""

    record: Record


@dataclass(frozen=True, slots=True)
class Remove:
    """A deleted object; `key` as in `key_of`."""

    key: str
    resource_version: str


@dataclass(frozen=True, slots=True)
class Bookmark:
    """There are no changes up to this version."""

    resource_version: str


@dataclass(frozen=True, slots=True)
class Skipped:
    """An object that could not be decoded; its last known record stays."""

    malformed: MalformedObject


Change = Upsert | Remove | Bookmark | Skipped


class Unreadable(Unreachable):
    """The response is not what the API specifies."""


class _ListMeta(Struct, rename={"resource_version": "resourceVersion", "token": "continue"}, gc=False):
    resource_version: str = ""
    token: str | None = None


class _List(Struct, gc=False):
    metadata: _ListMeta
    items: list[Raw] | None = None


class _Line(Struct, gc=False):
    type: str
    object: Raw


class _VersionMeta(Struct, rename="camel", gc=False):
    resource_version: str = ""


class _Versioned(Struct, gc=False):
    metadata: _VersionMeta


_LIST = msgspec.json.Decoder(_List)
_LINE = msgspec.json.Decoder(_Line)
_VERSIONED = msgspec.json.Decoder(_Versioned)


@dataclass(frozen=True, slots=True)
class Page:
    records: list[Record]
    malformed: tuple[MalformedObject, ...]
    resource_version: str


class ClusterReader:
    """Use one per cluster: its decoder shares equal parts of the records."""

    def __init__(
        self, connection: Connection, config_map: ObjectName | None = None, kinds: Iterable[Kind] = CLUSTER_KINDS
    ) -> None:
        self._connection = connection
        self._decoder = Decoder()
        self._listings: dict[Kind, Listing] = {kind: listing_of(kind) for kind in kinds}
        if config_map is not None:
            self._listings[Kind.CONFIG_MAPS] = config_map_listing(config_map)

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """All kinds to watch."""
        return tuple(self._listings)

    async def list_pages(self, kind: Kind) -> AsyncGenerator[Page, None]:
        """Raises Expired when the list became too old between two pages: then the pages before are void."""
        listing = self._listings[kind]
        token: str | None = ""
        while token is not None:
            query = {"limit": str(PAGE_SIZE)} | _selection(listing) | ({"continue": token} if token else {})
            body = await self._get(listing.path, query, _PAGE_DEADLINE)
            page, token = self._page(kind, body, listing.path)
            yield page

    async def list_all(self, kind: Kind) -> Page:
        """All pages as one. Starts again when they expire in between."""
        for _ in range(_RESTARTS):
            try:
                return await self._all_pages(kind)
            except Expired:
                continue
        return await self._all_pages(kind)

    async def watch(
        self, kind: Kind, resource_version: str, *, timeout: float, idle_timeout: float
    ) -> AsyncGenerator[Change, None]:
        """Changes after `resource_version`, until the server ends the watch (`timeout` is requested from it)."""
        listing = self._listings[kind]
        query = _selection(listing) | {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(int(timeout)),
        }
        async with self._connection.stream(listing.path, query, idle_timeout) as lines:
            async for line in lines:
                change = self._change(kind, line)
                if change is not None:
                    yield change

    async def get_raw(self, path: str, deadline: float = 30.0) -> bytes:
        """For resources that are not watched, such as metrics.k8s.io."""
        return await self._get(path, {}, deadline)

    async def _get(self, path: str, query: dict[str, str], deadline: float) -> bytes:
        response = await self._connection.send(ApiRequest("GET", path, query, deadline=deadline))
        return checked(response, f"GET {path}")

    async def _all_pages(self, kind: Kind) -> Page:
        records: list[Record] = []
        malformed: list[MalformedObject] = []
        version = ""
        async with aclosing(self.list_pages(kind)) as pages:
            async for page in pages:
                records += page.records
                malformed += page.malformed
                version = page.resource_version
        return Page(records, tuple(malformed), version)

    def _page(self, kind: Kind, body: bytes, path: str) -> tuple[Page, str | None]:
        try:
            found = _LIST.decode(body)
        except _UNDECODABLE as error:
            raise Unreadable(f"GET {path}: not a list: {error}") from error
        records: list[Record] = []
        malformed: list[MalformedObject] = []
        for item in found.items or ():
            record = self._decoder.decode(kind, item)
            if isinstance(record, MalformedObject):
                malformed.append(record)
            else:
                records.append(record)
        return Page(records, tuple(malformed), found.metadata.resource_version), found.metadata.token or None

    def _change(self, kind: Kind, text: bytes) -> Change | None:
        """None for types of watch events that we do not know."""
        what = f"watch of {kind.value}"
        try:
            line = _LINE.decode(text)
        except _UNDECODABLE as error:
            raise Unreadable(f"{what}: not a watch event: {error}") from error
        if line.type in ("ADDED", "MODIFIED"):
            record = self._decoder.decode(kind, line.object)
            return Skipped(record) if isinstance(record, MalformedObject) else Upsert(record)
        if line.type == "DELETED":
            return Remove(self._decoder.key(kind, line.object), _version(line.object))
        if line.type == "BOOKMARK":
            return Bookmark(_version(line.object))
        if line.type == "ERROR":
            raise error_of(status_in_stream(bytes(line.object)), what)
        return None


def _selection(listing: Listing) -> dict[str, str]:
    return {"fieldSelector": listing.field_selector} if listing.field_selector else {}


def _version(text: Raw) -> str:
    """Empty when it cannot be decoded; then the last known version stays."""
    try:
        return _VERSIONED.decode(text).metadata.resource_version
    except (msgspec.ValidationError, UnicodeDecodeError):
        return ""
