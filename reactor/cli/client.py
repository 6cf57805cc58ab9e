"""The client of a running controller's HTTP API."""

from __future__ import annotations

import asyncio
import os
import re
from typing import TypeVar
from urllib.parse import urlencode

import aiohttp
import msgspec

from reactor.errors import InputError

T = TypeVar("T")

DEADLINE = 10.0
TOKEN_VARIABLE = "REMATCH_TOKEN"
"""Of the environment: the bearer token for a controller that wants one. Not an option, which other users could see."""


def fetch(server: str, path: str, answer: type[T], **query: str) -> T | None:
    """The decoded answer; None for 404."""
    if not re.match(r"https?://[^/]", server):
        raise InputError(f"--server: {server!r} is no URL; write http://HOST:PORT")
    url = f"{server.rstrip('/')}/api/v1/{path}" + (f"?{urlencode(query)}" if query else "")
    body = asyncio.run(_get(url, server))
    if body is None:
        return None
    try:
        return msgspec.json.decode(body, type=answer)
    except msgspec.DecodeError as error:
        raise InputError(f"{url}: not the answer of a Rematch controller: {error}") from error


async def _get(url: str, server: str) -> bytes | None:
    token = os.environ.get(TOKEN_VARIABLE, "")
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=DEADLINE)) as session,
            session.get(url, headers=headers, allow_redirects=False) as response,
        ):
            if response.status == 404:
                return None
            body = await response.read()
            if response.status != 200:
                raise InputError(f"{url}: {response.status} {body[:200].decode(errors='replace')}")
            return body
    except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
        reason = str(error) or "no answer in time"
        raise InputError(
            f"no controller answers at {server} ({reason}); start one, or name it with --server"
        ) from error
