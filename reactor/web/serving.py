"""The dashboard, API and probes of one controller, served for as long as the context lasts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from reactor.app import LiveController
from reactor.web.app import build_app
from reactor.web.live import LiveView
from reactor.web.server import is_loopback, serving


@asynccontextmanager
async def serve(live: LiveController, host: str, port: int) -> AsyncIterator[str]:
    """Yields the URL."""
    view = LiveView(live, live.connection.server.partition("://")[2])
    controller = live.controller
    app = build_app(view, view, controller.instruments.registry, controller.clock, loopback=is_loopback(host))
    async with serving(app, host, port) as url:
        sampling = asyncio.create_task(view.keep_sampling())
        try:
            yield url
        finally:
            sampling.cancel()
            await asyncio.gather(sampling, return_exceptions=True)
