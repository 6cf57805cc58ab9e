"""One headless Chromium for all tests; every page of it is checked for errors and for requests to other hosts."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Literal

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, ViewportSize, async_playwright, expect
from prometheus_client import CollectorRegistry

from reactor.clock import SystemClock
from reactor.web.server import build_app, listening
from tests.browser.fake_source import AlwaysHealthy, FakeSource

expect.set_options(timeout=20_000)
NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--no-sandbox",
    "--headless",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

OpenPage = Callable[..., Awaitable[Page]]


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.fail(f"no Chromium on the PATH (looked for {', '.join(NAMES)}); on Debian: apt-get install chromium")
    async with async_playwright() as playwright:
        opened = await playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        yield opened
        await opened.close()


@pytest.fixture
def source() -> FakeSource:
    return FakeSource()


@pytest_asyncio.fixture(loop_scope="session")
async def address(source: FakeSource) -> AsyncIterator[str]:
    app = build_app(source, AlwaysHealthy(), CollectorRegistry(), SystemClock())
    async with listening(app, "127.0.0.1", 0) as url:
        yield f"{url}/"


@pytest.fixture
def problems() -> list[str]:
    """Console messages of the pages, and their requests to other hosts."""
    return []


@pytest.fixture
def forgiven() -> list[str]:
    """What a test expects pages to complain of: a browser may say it long after the page shows it."""
    return []


@pytest_asyncio.fixture(loop_scope="session")
async def open_page(
    browser: Browser, address: str, problems: list[str], forgiven: list[str]
) -> AsyncIterator[OpenPage]:
    async def open_at(path: str = "", width: int = 1280, scheme: Literal["light", "dark"] = "light") -> Page:
        size = ViewportSize(width=width, height=900)
        page = await browser.new_page(viewport=size, color_scheme=scheme, reduced_motion="reduce")
        page.on(
            "console", lambda message: problems.append(message.text) if message.type in ("error", "warning") else None
        )
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("request", lambda request: None if request.url.startswith(address) else problems.append(request.url))
        page.set_default_timeout(20_000)
        await page.goto(address + path)
        return page

    yield open_at
    for context in browser.contexts:
        await context.close()
    assert [text for text in problems if not any(expected in text for expected in forgiven)] == []
