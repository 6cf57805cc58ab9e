"""Serves the application at one address, and ends quickly."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from ipaddress import ip_address

from aiohttp import web

from reactor.errors import InputError

SHUTDOWN_SECONDS = 1.0


def is_loopback(host: str) -> bool:
    """Whether a server bound to `host` is reached from this machine alone."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


@asynccontextmanager
async def serving(app: web.Application, host: str, port: int) -> AsyncIterator[str]:
    """Serves while the block runs and yields the URL; port 0 takes a free one, a taken port is the user's to mend."""
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=SHUTDOWN_SECONDS)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, host, port).start()
        except OSError as error:
            raise InputError(f"cannot listen on {host}:{port}: {error.strerror}; choose another --port") from error
        bound = runner.addresses[0][1]
        yield f"http://{f'[{host}]' if ':' in host else host}:{bound}"
    finally:
        await runner.cleanup()
