"""A plain HTTP client for any API server, embedded or real, for the contract suite."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from loadtests.embedded.resources import Json

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"

_JSON = "application/json"
_DEADLINE = 15.0


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: Json
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def version(self) -> str:
        return str(self.body["metadata"]["resourceVersion"])

    @property
    def names(self) -> list[str]:
        return [item["metadata"]["name"] for item in self.body["items"]]


@dataclass(frozen=True, slots=True)
class PlainClient:
    """`namespace` is the one that the paths of `here` are in."""

    url: str
    session: aiohttp.ClientSession
    namespace: str

    def here(self, plural: str, name: str = "", group: str = "api/v1") -> str:
        path = f"/{group}/namespaces/{self.namespace}/{plural}"
        return f"{path}/{name}" if name else path

    async def call(self, method: str, path: str, body: Any = None, kind: str = _JSON, **query: str | int) -> Answer:
        data = None if body is None else io.BytesIO(body if isinstance(body, bytes) else json.dumps(body).encode())
        headers = {"Content-Type": kind, "Accept": "application/json"}
        timeout = aiohttp.ClientTimeout(total=_DEADLINE)
        async with self.session.request(
            method, self.url + path, data=data, headers=headers, params=query, timeout=timeout
        ) as response:
            text = await response.text()
            answer = json.loads(text) if text.startswith("{") else {"text": text}
            return Answer(response.status, answer, dict(response.headers))

    async def get(self, path: str, **query: str | int) -> Answer:
        return await self.call("GET", path, None, _JSON, **query)

    async def post(self, path: str, body: Any) -> Answer:
        return await self.call("POST", path, body)

    async def put(self, path: str, body: Any) -> Answer:
        return await self.call("PUT", path, body)

    async def patch(self, path: str, body: Any, kind: str = MERGE) -> Answer:
        return await self.call("PATCH", path, body, kind)

    async def delete(self, path: str, body: Any = None, **query: str | int) -> Answer:
        return await self.call("DELETE", path, body, _JSON, **query)

    async def watch(self, path: str, **query: str | int) -> AsyncIterator[Json]:
        """The events of one watch until it ends; `timeoutSeconds` bounds it."""
        bounded = {"watch": "1", "timeoutSeconds": 5, **query}
        timeout = aiohttp.ClientTimeout(total=float(bounded["timeoutSeconds"]) + _DEADLINE)
        async with self.session.get(self.url + path, params=bounded, timeout=timeout) as response:
            response.raise_for_status()
            async for line in response.content:
                yield json.loads(line)

    async def eventually(self, read: Callable[[], Awaitable[Answer]], holds: Callable[[Answer], bool]) -> Answer:
        """Reads again until it holds: controllers need their moment, on a real cluster a longer one."""
        deadline = asyncio.get_running_loop().time() + _DEADLINE
        answer = await read()
        while not holds(answer):
            if asyncio.get_running_loop().time() > deadline:
                raise TimeoutError(f"still not so after {_DEADLINE:.0f} s: {json.dumps(answer.body)[:800]}")
            await asyncio.sleep(0.02)
            answer = await read()
        return answer
