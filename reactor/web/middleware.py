"""What all requests have in common: how responses look, which requests are refused, security headers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from html import escape

import msgspec
from aiohttp import web
from aiohttp.typedefs import Middleware
from msgspec import UNSET, Struct, UnsetType

from reactor.errors import RematchError
from reactor.web.query import ParameterError
from storage import StorageError

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


LOOPBACK_NAMES = frozenset({"127.0.0.1", "localhost", "[::1]"})
METHODS = ("GET", "HEAD")
RESPONSE_DEADLINE = 20.0
STREAM_PATH = "/api/v1/stream"

# Scripts come from here alone; plotly.js writes style elements and attributes, so those may be inline.
POLICY = "; ".join(
    (
        "default-src 'self'",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data:",
        "object-src 'none'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class ErrorDetails(Struct, frozen=True):
    status: int
    message: str
    parameter: str | UnsetType = UNSET
    """The query parameter that is wrong, if one is."""


class ErrorAnswer(Struct, frozen=True):
    error: ErrorDetails


_encoder = msgspec.json.Encoder()
WORTH_COMPRESSING = 2048
ERROR_PAGE = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    "<title>{title}</title><h1>{title}</h1><p>{message}</p>"
)


def json_response(value: object, status: int = 200) -> web.Response:
    body = _encoder.encode(value)
    headers = {"Cache-Control": "no-store"}
    response = web.Response(
        body=body,
        content_type="application/json",
        status=status,
        headers=headers,
        zlib_executor_size=WORTH_COMPRESSING,
    )
    if len(body) > WORTH_COMPRESSING:
        response.enable_compression()
    return response


def text_response(text: str, status: int = 200) -> web.Response:
    return web.Response(text=text, status=status, headers={"Cache-Control": "no-store"})


def error_response(request: web.Request, status: int, message: str, parameter: str | None = None) -> web.Response:
    """JSON, or a plain page for a browser that asks for one outside of the API."""
    if "text/html" in request.headers.get("Accept", "") and not request.path.startswith("/api/"):
        text = ERROR_PAGE.format(title=status, message=escape(message))
        return web.Response(text=text, content_type="text/html", status=status, headers={"Cache-Control": "no-store"})
    return json_response(ErrorAnswer(ErrorDetails(status, message, UNSET if parameter is None else parameter)), status)


async def add_headers(_request: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(HEADERS)


@web.middleware
async def explain_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """All errors have one form. aiohttp logs what is not expected and answers 500."""
    try:
        async with asyncio.timeout(None if request.path == STREAM_PATH else RESPONSE_DEADLINE):
            return await handler(request)
    except ParameterError as error:
        return error_response(request, 400, str(error), error.parameter)
    except (RematchError, StorageError) as error:
        return error_response(request, 503, str(error))
    except TimeoutError:
        return error_response(request, 503, f"no answer within {RESPONSE_DEADLINE:g} s; try again")
    except web.HTTPNotFound:
        return error_response(request, 404, f"nothing is served at {request.path[:200]}")
    except web.HTTPServiceUnavailable as error:
        response = error_response(request, 503, error.text or error.reason)
        response.headers["Retry-After"] = error.headers.get("Retry-After", "10")
        return response


@web.middleware
async def read_only(request: web.Request, handler: Handler) -> web.StreamResponse:
    if request.method in METHODS:
        return await handler(request)
    response = error_response(
        request, 405, f"{request.method} is not allowed: this server is read-only, use GET or HEAD"
    )
    response.headers["Allow"] = ", ".join(METHODS)
    return response


def only_names(names: Collection[str]) -> Middleware:
    """Against DNS rebinding: a page of another site whose name resolves to 127.0.0.1 sends that name as Host."""

    served = ", ".join(sorted(names))

    @web.middleware
    async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
        host = request.headers.get("Host", "")
        name = host if host.endswith("]") else host.rpartition(":")[0] or host
        if name.lower() in names:
            return await handler(request)
        return error_response(request, 421, f"not served under the name {name[:200]!r}; use one of {served}")

    return check
