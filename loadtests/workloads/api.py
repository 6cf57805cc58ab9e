"""The lab's thin HTTP client of the API server, for kubelets and the load generator.

Not the controller's reader on purpose: the lab must not share its bugs with what it tests.
"""

from __future__ import annotations

import random
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

from reactor.clock import Clock
from reactor.cluster.backoff import Backoff
from reactor.errors import ClusterError, Conflict, Expired, NotFound, Refused, Unreachable

Json = dict[str, Any]

STRATEGIC = "application/strategic-merge-patch+json"
_BY_STATUS: dict[int, type[ClusterError]] = {404: NotFound, 409: Conflict, 410: Expired}
_MAX_BACKOFF = 5.0
_BETWEEN_WATCHES = 0.05
_SILENCE = 300.0
"""A watch without a byte for so long is taken for dead and resumed."""


@dataclass(frozen=True, slots=True)
class Listed:
    """Everything there is, after the first and every further list."""

    items: tuple[Json, ...]


@dataclass(frozen=True, slots=True)
class Changed:
    """`kind` is ADDED, MODIFIED or DELETED."""

    kind: str
    item: Json


class _WatchEvent(msgspec.Struct):
    type: str
    object: Json


class LabApi:
    def __init__(
        self, url: str, clock: Clock, timeout: float = 10.0, *, token: str = "", ca: Path | None = None
    ) -> None:
        """`token` and `ca` are for a real API server: who we are, and who signed for it."""
        self._url = url.rstrip("/")
        self._clock = clock
        self._timeout = aiohttp.ClientTimeout(total=timeout)
        trust = ssl.create_default_context(cafile=ca) if ca is not None else True
        connector = aiohttp.TCPConnector(limit=0, ssl=trust)
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._session = aiohttp.ClientSession(connector=connector, timeout=self._timeout, headers=headers)

    async def close(self) -> None:
        await self._session.close()

    async def ready(self) -> bool:
        """Whether /readyz answers 200."""
        try:
            async with self._session.get(f"{self._url}/readyz") as response:
                return response.status == 200
        except (aiohttp.ClientError, TimeoutError):
            return False

    async def get(self, path: str, params: Mapping[str, str] | None = None) -> Json:
        return await self._call("GET", path, params=params)

    async def create(self, path: str, body: Json) -> Json:
        return await self._call("POST", path, body=body)

    async def patch(self, path: str, body: Json) -> Json:
        return await self._call("PATCH", path, body=body, content_type=STRATEGIC)

    async def delete(self, path: str, body: Json) -> Json:
        return await self._call("DELETE", path, body=body)

    async def follow(self, path: str, params: Mapping[str, str], see: Callable[[Listed | Changed], None]) -> None:
        """List, then watch, until cancelled; a broken watch resumes, an expired one lists again."""
        version: str | None = None
        backoff = Backoff(random.random, cap=_MAX_BACKOFF)
        while True:
            try:
                if version is None:
                    listed = await self.get(path, params)
                    version = str(listed["metadata"]["resourceVersion"])
                    see(Listed(tuple(listed.get("items") or ())))
                async for kind, item in self._watch(path, params, version):
                    version = str(item["metadata"]["resourceVersion"])
                    backoff.reset()
                    if kind != "BOOKMARK":
                        see(Changed(kind, item))
                await self._clock.sleep(_BETWEEN_WATCHES)
            except Expired:
                version = None
            except ClusterError:
                await self._clock.sleep(backoff.next())

    async def _watch(self, path: str, params: Mapping[str, str], version: str) -> AsyncIterator[tuple[str, Json]]:
        query = {**params, "watch": "true", "allowWatchBookmarks": "true", "resourceVersion": version}
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=self._timeout.total, sock_read=_SILENCE)
        try:
            async with self._session.get(self._url + path, params=query, timeout=timeout) as response:
                if response.status != 200:
                    raise _error(response.status, await response.read())
                async for line in _lines(response.content):
                    event = msgspec.json.decode(line, type=_WatchEvent)
                    if event.type == "ERROR":
                        raise _BY_STATUS.get(event.object.get("code", 0), Unreachable)(str(event.object.get("message")))
                    yield event.type, event.object
        except (aiohttp.ClientError, TimeoutError, msgspec.MsgspecError) as error:
            raise Unreachable(f"watch of {path} broke: {error!r}") from error

    async def _call(
        self,
        method: str,
        path: str,
        *,
        body: Json | None = None,
        params: Mapping[str, str] | None = None,
        content_type: str = "application/json",
    ) -> Json:
        data = None if body is None else msgspec.json.encode(body)
        try:
            async with self._session.request(
                method, self._url + path, data=data, params=params, headers={"Content-Type": content_type}
            ) as response:
                answer = await response.read()
                if response.status >= 400:
                    raise _error(response.status, answer)
                return msgspec.json.decode(answer, type=Json)
        except (aiohttp.ClientError, TimeoutError, msgspec.MsgspecError) as error:
            raise Unreachable(f"{method} {path}: {error!r}") from error


def _error(status: int, body: bytes) -> ClusterError:
    kind = _BY_STATUS.get(status) or (Unreachable if status >= 500 or status == 429 else Refused)
    return kind(f"{status}: {body[:300].decode(errors='replace')}", status=status)


async def _lines(content: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    """One JSON object per line, however long: aiohttp's own line reader has a limit that pods exceed."""
    rest = b""
    while chunk := await content.readany():
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            if line.strip():
                yield line


def has_condition(item: Mapping[str, Any], kind: str, status: str = "True") -> bool:
    """Of a pod or a node as the API server gives it, which may have no status yet."""
    conditions = (item.get("status") or {}).get("conditions") or ()
    return any(each["type"] == kind and each["status"] == status for each in conditions)
