"""The border to the API server: what a connection offers, and what it answers. Tests bring their own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

Query = Mapping[str, str]
Body = Mapping[str, object]

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """One request. `deadline` is for all of it: connecting, waiting and reading the body."""

    method: str
    path: str
    query: Query | None = None
    body: Body | None = None
    content_type: str = JSON
    deadline: float = 30.0


@dataclass(frozen=True, slots=True)
class ApiResponse:
    """What the server said, whatever the code. `retry_after` is the header's, in seconds."""

    code: int
    body: bytes
    retry_after: float | None = None


class Connection(Protocol):
    async def send(self, call: ApiRequest) -> ApiResponse:
        """Raises Unreachable when no whole answer came in time; any answer, good or bad, is returned."""
        ...

    def stream(self, path: str, query: Query, idle_timeout: float) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """The lines of a long answer. Ends when the server ends it; raises our errors for everything else:
        refusals, resets, silence longer than `idle_timeout`, an end in the middle of a line."""
        ...

    async def close(self) -> None: ...
