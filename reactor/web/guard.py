"""What every request passes: who may ask, by which method, and what each answer tells the browser."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from aiohttp import web

from reactor.errors import RematchError
from reactor.web.answers import error_answer
from reactor.web.parameters import ParameterError

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

LOOPBACK_NAMES = frozenset({"127.0.0.1", "localhost", "[::1]"})
METHODS = ("GET", "HEAD")
ANSWER_DEADLINE = 20.0
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


async def add_headers(_request: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(HEADERS)


@web.middleware
async def explain_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Every refusal in one form; what is not expected is left to aiohttp, which logs it and answers 500."""
    try:
        async with asyncio.timeout(None if request.path == STREAM_PATH else ANSWER_DEADLINE):
            return await handler(request)
    except ParameterError as error:
        return error_answer(request, 400, str(error), error.parameter)
    except RematchError as error:
        return error_answer(request, 503, str(error))
    except TimeoutError:
        return error_answer(request, 503, f"no answer within {ANSWER_DEADLINE:g} s; try again")
    except web.HTTPNotFound:
        return error_answer(request, 404, f"nothing is served at {request.path[:200]}")
    except web.HTTPServiceUnavailable as error:
        answer = error_answer(request, 503, error.text or error.reason)
        answer.headers["Retry-After"] = error.headers.get("Retry-After", "10")
        return answer


@web.middleware
async def only_reading(request: web.Request, handler: Handler) -> web.StreamResponse:
    if request.method in METHODS:
        return await handler(request)
    answer = error_answer(request, 405, f"{request.method} is not offered: this server only tells, by GET and HEAD")
    answer.headers["Allow"] = ", ".join(METHODS)
    return answer


@web.middleware
async def only_loopback_names(request: web.Request, handler: Handler) -> web.StreamResponse:
    """A foreign page whose name was re-bound to 127.0.0.1 still sends its own name as Host."""
    host = request.headers.get("Host", "")
    name = host if host.endswith("]") else host.rpartition(":")[0] or host
    if name.lower() in LOOPBACK_NAMES:
        return await handler(request)
    return error_answer(request, 421, f"not served under the name {name[:200]!r}; use 127.0.0.1 or localhost")
