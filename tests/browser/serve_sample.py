"""Serves the sample cluster by hand, changing every 2 s: `python -m tests.browser.serve_sample [port]`."""

from __future__ import annotations

import asyncio
import sys

from prometheus_client import CollectorRegistry

from reactor.clock import SystemClock
from reactor.web.server import build_app, listening
from tests.browser.fake_source import AlwaysHealthy, FakeSource


async def serve(port: int) -> None:
    source = FakeSource()
    app = build_app(source, AlwaysHealthy(), CollectorRegistry(), SystemClock())
    async with listening(app, "127.0.0.1", port) as address:
        print(address, flush=True)
        for step in range(2, 1_000_000, 2):
            await asyncio.sleep(2)
            await source.step(step)


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]) if len(sys.argv) > 1 else 0))
