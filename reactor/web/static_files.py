"""The files of the page, read once at start, and plotly.js from the Python package that ships it."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
from importlib.util import find_spec
from pathlib import Path

from aiohttp import web
from msgspec import Struct

STATIC = Path(__file__).parent / "static"
PAGE = "index.html"
REVALIDATE = "no-cache"
KEEP_FOREVER = "public, max-age=31536000, immutable"
CONTENT_TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}


class StaticFile(Struct, frozen=True):
    body: bytes
    content_type: str
    tag: str


class StaticFiles:
    """`plotly_tag` is empty if plotly.js is not installed. The page then shows no charts."""

    def __init__(self, plotly_tag: str) -> None:
        paths = (path for path in STATIC.iterdir() if path.suffix in CONTENT_TYPES)
        self._files = {path.name: _load(path) for path in paths}
        self._page = (STATIC / PAGE).read_text("utf-8")
        self._plotly_tag = plotly_tag

    def page(self, base: str) -> web.Response:
        """The page, whose links are relative to `base`, so that it also works below a proxy's path."""
        text = self._page.replace("@BASE@", base).replace("@PLOTLY@", self._plotly_tag)
        response = web.Response(text=text, content_type="text/html", headers={"Cache-Control": REVALIDATE})
        response.enable_compression()
        return response

    async def handle(self, request: web.Request) -> web.StreamResponse:
        file = self._files.get(request.match_info["name"])
        if file is None:
            raise web.HTTPNotFound
        headers = {"Cache-Control": REVALIDATE, "ETag": f'"{file.tag}"'}
        if has_tag(request, file.tag):
            return web.Response(status=304, headers=headers)
        response = web.Response(body=file.body, content_type=file.content_type, charset="utf-8", headers=headers)
        response.enable_compression()
        return response


def has_tag(request: web.Request, tag: str) -> bool:
    """Whether the browser already holds this version."""
    return any(known.value in (tag, "*") for known in request.if_none_match or ())


def _load(path: Path) -> StaticFile:
    body = path.read_bytes()
    return StaticFile(body=body, content_type=CONTENT_TYPES[path.suffix], tag=hashlib.sha256(body).hexdigest()[:16])


def find_plotly() -> PlotlyScript | None:
    """Find the script without importing plotly, which takes a second and many megabytes."""
    spec = find_spec("plotly")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        path = Path(folder) / "package_data" / "plotly.min.js"
        if path.is_file():
            return PlotlyScript(path)
    return None


class PlotlyScript:
    """Compressed once. Browsers keep it; `tag` is part of its URL, so that another version has another URL."""

    def __init__(self, path: Path) -> None:
        state = path.stat()
        self._path = path
        self._lock = asyncio.Lock()
        self._compressed: bytes | None = None
        self.tag = hashlib.sha256(f"{state.st_size}-{state.st_mtime_ns}".encode()).hexdigest()[:16]

    async def handle(self, request: web.Request) -> web.StreamResponse:
        headers = {"Cache-Control": KEEP_FOREVER, "ETag": f'"{self.tag}"', "Vary": "Accept-Encoding"}
        if has_tag(request, self.tag):
            return web.Response(status=304, headers=headers)
        headers["Content-Type"] = "text/javascript; charset=utf-8"
        if "gzip" not in request.headers.get("Accept-Encoding", ""):
            return web.Response(body=await asyncio.to_thread(self._path.read_bytes), headers=headers)
        return web.Response(body=await self._compress(), headers=headers | {"Content-Encoding": "gzip"})

    async def _compress(self) -> bytes:
        """Compress in a thread for the first request. Others wait for the same result."""
        async with self._lock:
            if self._compressed is None:
                self._compressed = await asyncio.to_thread(_gzip, self._path)
            return self._compressed


def _gzip(path: Path) -> bytes:
    return gzip.compress(path.read_bytes(), compresslevel=9, mtime=0)
