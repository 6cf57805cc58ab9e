"""GET with watch=true: the changes of a kind as a stream of JSON lines, resumed by resourceVersion."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

import msgspec
from aiohttp import web

from loadtests.embedded.api_errors import ApiError, bad_request
from loadtests.embedded.objects import with_metadata
from loadtests.embedded.resources import Json, Resource
from loadtests.embedded.selectors import Predicate, predicate
from loadtests.embedded.store import Change, ChangeType, ObjectStore, Stored
from loadtests.embedded.tables import table_of
from loadtests.embedded.web.reading import number
from loadtests.embedded.web.requests import RequestTarget
from loadtests.embedded.web.responses import wants_table
from reactor.clock import Clock

_encode = msgspec.json.Encoder().encode
_LONGEST = 1800.0
_BOOKMARK_PERIOD = 60.0
_LAST_BOOKMARK = 2.0
"""The real server sends a bookmark this many seconds before a watch times out."""

Frame = Callable[[str, Stored], bytes]


@dataclass(frozen=True, slots=True)
class WatchOptions:
    namespace: str
    test: Predicate | None
    version: int | None
    bookmarks: bool
    initial_events: bool
    """Whether the end of the present state is marked by a bookmark (WatchList)."""
    timeout: float


def watch_options(request: web.Request, target: RequestTarget) -> WatchOptions:
    query = request.query
    fields = query.get("fieldSelector", "")
    if target.name:
        fields = f"metadata.name={target.name}"
    initial = query.get("sendInitialEvents", "") in ("true", "1")
    if initial and query.get("resourceVersionMatch") != "NotOlderThan":
        raise bad_request("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan")
    return WatchOptions(
        namespace=target.namespace,
        test=predicate(target.resource, query.get("labelSelector", ""), fields),
        version=None if initial else number(request, "resourceVersion"),
        bookmarks=query.get("allowWatchBookmarks", "") in ("true", "1"),
        initial_events=initial,
        timeout=number(request, "timeoutSeconds") or _LONGEST,
    )


class Watch:
    """One watcher: what it may see, how far it has seen, and when it ends."""

    def __init__(self, store: ObjectStore, resource: Resource, options: WatchOptions, frame: Frame) -> None:
        self._store = store
        self._resource = resource
        self._options = options
        self._frame = frame
        self._cursor = options.version or 0

    def begin(self) -> bytes:
        """The present state as ADDED when no version was given, else nothing: the changes since come by themselves."""
        if self._options.version:
            return b""
        self._cursor = self._store.version
        frames = [
            self._frame("ADDED", stored) for stored in self._store.snapshot(self._resource) if self._visible(stored)
        ]
        if self._options.initial_events:
            frames.append(self.bookmark(end_of_initial=True))
        return b"".join(frames)

    def take(self) -> bytes:
        """The frames of all changes since the last call. Raises 410 when this watcher fell behind the history."""
        changes = self._store.log(self._resource).since(self._cursor)
        if not changes:
            return b""
        self._cursor = changes[-1].version
        return b"".join(self._seen(change) for change in changes)

    def next_change(self) -> asyncio.Future[None]:
        return self._store.log(self._resource).next_change()

    def bookmark(self, *, end_of_initial: bool = False) -> bytes:
        metadata: Json = {"resourceVersion": str(max(self._cursor, self._store.version)), "creationTimestamp": None}
        if end_of_initial:
            metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
        kind, version = self._resource.kind, self._resource.api_version
        return event_line("BOOKMARK", _encode({"kind": kind, "apiVersion": version, "metadata": metadata}))

    def _visible(self, stored: Stored | None) -> bool:
        if stored is None or (self._options.namespace and stored.key[0] != self._options.namespace):
            return False
        return self._options.test is None or self._options.test(stored.obj)

    def _seen(self, change: Change) -> bytes:
        """A change as this watcher's selectors see it: an object that stops matching is deleted for it."""
        before = self._visible(change.old)
        after = change.type is not ChangeType.DELETED and self._visible(change.new)
        if before and after:
            return self._frame("MODIFIED", change.new)
        if after:
            return self._frame("ADDED", change.new)
        if not before or change.old is None:
            return b""
        if change.type is ChangeType.DELETED:
            return self._frame("DELETED", change.new)
        last_seen = with_metadata(change.old.obj, resourceVersion=str(change.version))
        return self._frame("DELETED", Stored(change.old.key, last_seen, change.version))


def event_line(kind: str, raw: bytes) -> bytes:
    return b'{"type":"%b","object":%b}\n' % (kind.encode(), raw)


def _json_frame(kind: str, stored: Stored) -> bytes:
    return event_line(kind, stored.raw)


def _table_frame(resource: Resource, clock: Clock, include: str) -> Frame:
    def frame(kind: str, stored: Stored) -> bytes:
        metadata = {"resourceVersion": stored.obj["metadata"]["resourceVersion"]}
        return event_line(kind, _encode(table_of(resource, [stored.obj], metadata, clock.now(), include)))

    return frame


async def answer_watch(
    request: web.Request, store: ObjectStore, target: RequestTarget, clock: Clock, closing: asyncio.Future[None]
) -> web.StreamResponse:
    options = watch_options(request, target)
    frame: Frame = _json_frame
    if wants_table(request):
        frame = _table_frame(target.resource, clock, request.query.get("includeObject", "Metadata"))
    watch = Watch(store, target.resource, options, frame)
    response = web.StreamResponse(headers={"Content-Type": "application/json", "Cache-Control": "no-cache, private"})
    response.enable_chunked_encoding()
    await response.prepare(request)
    try:
        await _stream(response, watch, options, closing)
        await response.write_eof()
    except ConnectionError:
        pass  # the client went away: nobody is left to tell
    return response


async def _stream(
    response: web.StreamResponse, watch: Watch, options: WatchOptions, closing: asyncio.Future[None]
) -> None:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + options.timeout
    bookmark_at = _next_bookmark(loop.time(), deadline) if options.bookmarks else deadline
    if initial := watch.begin():
        await response.write(initial)
    while not closing.done() and loop.time() < deadline:
        more = watch.next_change()
        try:
            frames = watch.take()
        except ApiError as error:
            await response.write(event_line("ERROR", _encode(error.as_status())))
            return
        if frames:
            await response.write(frames)
            continue
        if options.bookmarks and loop.time() >= bookmark_at:
            await response.write(watch.bookmark())
            bookmark_at = _next_bookmark(loop.time(), deadline)
        wait = max(0.0, min(bookmark_at, deadline) - loop.time())
        await asyncio.wait((more, closing), timeout=wait, return_when=asyncio.FIRST_COMPLETED)


def _next_bookmark(now: float, deadline: float) -> float:
    """Once a minute, and shortly before the end; after that one there is none until the deadline."""
    last = deadline - _LAST_BOOKMARK
    return min(now + _BOOKMARK_PERIOD, last if now < last else deadline)
