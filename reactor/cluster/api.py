"""The border to the API server: requests, responses, and the errors that failed responses become.

A `Connection` carries them. `connection.py` has the real one; tests bring their own.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol, TypeVar

import msgspec
from msgspec import Struct

from reactor.errors import ClusterError, Conflict, Expired, Forbidden, NotFound, Refused, Throttled, Unreachable

T = TypeVar("T")
Query = Mapping[str, str]
Body = Mapping[str, object]

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
"""Merges lists by their keys: conditions by their type."""

_DEFAULT_RETRY_AFTER = 1.0
"""Seconds to wait after a 429 that does not say how long."""


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """`deadline` in seconds covers the whole request: connecting, waiting and reading the body."""

    method: str
    path: str
    query: Query | None = None
    body: Body | None = None
    content_type: str = JSON
    deadline: float = 30.0


@dataclass(frozen=True, slots=True)
class ApiResponse:
    """A response with any status code. `retry_after` is the Retry-After header in seconds."""

    code: int
    body: bytes
    retry_after: float | None = None


class Connection(Protocol):
    async def send(self, request: ApiRequest) -> ApiResponse:
        """Returns the response, whatever its code. Raises Unreachable when there is no complete one in time."""
        ...

    def stream(self, path: str, query: Query, idle_timeout: float) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """The lines of a long response, until the server ends it. Raises a ClusterError for everything else:
        refusals, resets, silence longer than `idle_timeout`, an end in the middle of a line."""
        ...

    async def close(self) -> None: ...


class StatusCause(Struct, frozen=True, gc=False):
    reason: str = ""


class _Details(Struct, rename="camel", gc=False):
    causes: list[StatusCause] | None = None
    retry_after_seconds: float | None = None


class _Status(Struct, gc=False):
    message: str | None = None
    reason: str | None = None
    code: int | None = None
    details: _Details | None = None


class Status(Struct, frozen=True, gc=False):
    code: int
    message: str
    causes: tuple[StatusCause, ...] = ()
    retry_after: float | None = None

    def has_cause(self, reason: str) -> bool:
        return any(cause.reason == reason for cause in self.causes)


_STATUS = msgspec.json.Decoder(_Status)


def status_of(response: ApiResponse) -> Status:
    """Proxies respond with plain text or nothing; then only the code is known."""
    try:
        found = _STATUS.decode(response.body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        found = _Status(message=response.body[:200].decode("utf-8", "replace").strip())
    details = found.details or _Details()
    wait = response.retry_after if response.retry_after is not None else details.retry_after_seconds
    return Status(response.code, found.message or "no message", tuple(details.causes or ()), wait)


def status_in_stream(body: bytes) -> Status:
    """From the object of a watch's ERROR line, which contains the code."""
    try:
        code = _STATUS.decode(body).code
    except (msgspec.ValidationError, UnicodeDecodeError):
        code = None
    return status_of(ApiResponse(code or 500, body))


def error_of(status: Status, what: str) -> ClusterError:
    """`what` is the verb and the path, such as `GET /api/v1/pods`; it shows which permission is missing."""
    code = status.code
    message = f"{what}: {code} {status.message}"
    if code == 429:
        return Throttled(
            message, retry_after=_DEFAULT_RETRY_AFTER if status.retry_after is None else status.retry_after
        )
    if code == 401:
        return Forbidden(
            f"{message} (the credentials are not accepted: is the token or certificate expired?)", status=code
        )
    if code == 403:
        return Forbidden(f"{message} (a role that allows it is missing)", status=code)
    if code >= 500:
        return Unreachable(message, status=code)
    kinds: dict[int, type[ClusterError]] = {404: NotFound, 409: Conflict, 410: Expired}
    return kinds.get(code, Refused)(message, status=code)


def checked(response: ApiResponse, what: str) -> bytes:
    """The body of a successful response. Raises a ClusterError for any other."""
    if 200 <= response.code < 300:
        return response.body
    raise error_of(status_of(response), what)


def decoded(decoder: msgspec.json.Decoder[T], body: bytes, what: str) -> T:
    """Raises Unreachable for what the API does not specify: a proxy may have answered."""
    try:
        return decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Unreachable(f"{what}: not what the API specifies: {error}") from error
