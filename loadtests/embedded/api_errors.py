"""Errors of the API: each becomes a `Status` object with reason, code and details."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from loadtests.embedded.resources import Resource


@dataclass(frozen=True, slots=True)
class StatusCause:
    type: str
    message: str
    field: str = ""

    def as_json(self) -> dict[str, str]:
        cause = {"reason": self.type, "message": self.message}
        return {**cause, "field": self.field} if self.field else cause


@dataclass(frozen=True, slots=True)
class Details:
    name: str = ""
    group: str = ""
    kind: str = ""
    uid: str = ""
    causes: tuple[StatusCause, ...] = ()
    retry_after: int = 0

    def as_json(self) -> dict[str, Any]:
        plain = {"name": self.name, "group": self.group, "kind": self.kind, "uid": self.uid}
        details: dict[str, Any] = {key: value for key, value in plain.items() if value}
        if self.causes:
            details["causes"] = [cause.as_json() for cause in self.causes]
        if self.retry_after:
            details["retryAfterSeconds"] = self.retry_after
        return details


@dataclass(eq=False)
class ApiError(Exception):
    code: int
    reason: str
    message: str
    details: Details | None = None

    def __str__(self) -> str:
        return self.message

    def as_status(self) -> dict[str, Any]:
        status: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            status["reason"] = self.reason
        if self.details is not None:
            status["details"] = self.details.as_json()
        return {**status, "code": self.code}


def bad_request(message: str) -> ApiError:
    return ApiError(400, "BadRequest", message)


def unauthorized() -> ApiError:
    return ApiError(401, "Unauthorized", "Unauthorized")


def forbidden(resource: Resource, name: str, why: str) -> ApiError:
    return ApiError(
        403,
        "Forbidden",
        f'{resource.qualified} "{name}" is forbidden: {why}',
        Details(name=name, group=resource.group, kind=resource.plural),
    )


def not_found(resource: Resource, name: str) -> ApiError:
    return ApiError(
        404,
        "NotFound",
        f'{resource.qualified} "{name}" not found',
        Details(name=name, group=resource.group, kind=resource.plural),
    )


def no_such_path() -> ApiError:
    return ApiError(404, "NotFound", "the server could not find the requested resource", Details())


def method_not_allowed() -> ApiError:
    message = "the server does not allow this method on the requested resource"
    return ApiError(405, "MethodNotAllowed", message, Details())


def not_acceptable() -> ApiError:
    return ApiError(406, "NotAcceptable", "only the following media types are accepted: application/json", Details())


def already_exists(resource: Resource, name: str) -> ApiError:
    return ApiError(
        409,
        "AlreadyExists",
        f'{resource.qualified} "{name}" already exists',
        Details(name=name, group=resource.group, kind=resource.plural),
    )


def conflict(what: str, group: str, name: str, why: str) -> ApiError:
    """`what` is a plural, a plural with subresource, or (for deletion preconditions) a kind, as the server words it."""
    qualified = f"{what}.{group}" if group else what
    message = f'Operation cannot be fulfilled on {qualified} "{name}": {why}'
    return ApiError(409, "Conflict", message, Details(name=name, group=group, kind=what))


def stale(resource: Resource, name: str) -> ApiError:
    why = "the object has been modified; please apply your changes to the latest version and try again"
    return conflict(resource.plural, resource.group, name, why)


def expired(message: str) -> ApiError:
    return ApiError(410, "Expired", message)


def too_large(limit: int) -> ApiError:
    return ApiError(413, "RequestEntityTooLarge", f"limit is {limit}")


def unsupported_media_type(message: str) -> ApiError:
    return ApiError(415, "UnsupportedMediaType", message, Details())


def invalid(kind: str, group: str, name: str, causes: Sequence[StatusCause]) -> ApiError:
    listed = [f"{cause.field}: {cause.message}" for cause in causes]
    text = listed[0] if len(listed) == 1 else f"[{', '.join(listed)}]"
    qualified = f"{kind}.{group}" if group else kind
    details = Details(name=name, group=group, kind=kind, causes=tuple(causes))
    return ApiError(422, "Invalid", f'{qualified} "{name}" is invalid: {text}', details)


def too_many_requests(message: str, cause: StatusCause, retry_after: int) -> ApiError:
    return ApiError(429, "TooManyRequests", message, Details(causes=(cause,), retry_after=retry_after))


def version_too_large(asked: int, current: int) -> ApiError:
    cause = StatusCause("ResourceVersionTooLarge", "Too large resource version")
    message = f"Timeout: Too large resource version: {asked}, current: {current}"
    return ApiError(504, "Timeout", message, Details(causes=(cause,), retry_after=1))
