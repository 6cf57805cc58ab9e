"""What the API server says when it refuses: a Status, and which of our errors it amounts to."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from reactor.cluster.api import ApiResponse
from reactor.errors import ClusterError, Conflict, Expired, Forbidden, NotFound, Refused, Throttled, Unreachable

_PATIENCE = 1.0
"""Seconds to wait after a 429 that does not say how long."""


class Cause(Struct, frozen=True, gc=False):
    reason: str = ""
    message: str = ""


class _Details(Struct, rename="camel", gc=False):
    causes: list[Cause] | None = None
    retry_after_seconds: float | None = None


class _Status(Struct, gc=False):
    message: str | None = None
    reason: str | None = None
    code: int | None = None
    details: _Details | None = None


class Status(Struct, frozen=True, gc=False):
    code: int
    message: str
    causes: tuple[Cause, ...] = ()
    retry_after: float | None = None

    def has_cause(self, reason: str) -> bool:
        return any(cause.reason == reason for cause in self.causes)


_STATUS = msgspec.json.Decoder(_Status)


def status_of(answer: ApiResponse) -> Status:
    """Proxies on the way answer with plain text or nothing: then the code has to do."""
    try:
        found = _STATUS.decode(answer.body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        found = _Status(message=answer.body[:200].decode("utf-8", "replace").strip())
    details = found.details or _Details()
    wait = answer.retry_after if answer.retry_after is not None else details.retry_after_seconds
    return Status(answer.code, found.message or "no message", tuple(details.causes or ()), wait)


def status_in_stream(body: bytes) -> Status:
    """The object of a watch's ERROR line: the code is inside."""
    try:
        code = _STATUS.decode(body).code
    except (msgspec.ValidationError, UnicodeDecodeError):
        code = None
    return status_of(ApiResponse(code or 500, body))


def error_of(status: Status, what: str) -> ClusterError:
    """`what` is the verb and the place, such as `GET /api/v1/pods`: so a missing permission can be named."""
    code = status.code
    message = f"{what}: {code} {status.message}"
    if code == 429:
        return Throttled(message, retry_after=_PATIENCE if status.retry_after is None else status.retry_after)
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


def checked(answer: ApiResponse, what: str) -> bytes:
    """The body of a success; anything else raises."""
    if 200 <= answer.code < 300:
        return answer.body
    raise error_of(status_of(answer), what)
