"""plotly.js out of the Python package that ships it: compressed once, kept by browsers for good."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
from importlib.util import find_spec
from pathlib import Path

from aiohttp import web

from reactor.web.assets import has_tag

FOR_GOOD = "public, max-age=31536000, immutable"


def find_plotly() -> PlotlyScript | None:
    """Found without importing plotly, which would cost a second and many megabytes."""
    spec = find_spec("plotly")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        path = Path(folder) / "package_data" / "plotly.min.js"
        if path.is_file():
            return PlotlyScript(path)
    return None


class PlotlyScript:
    """`tag` belongs into the address, so that another version is another address."""

    def __init__(self, path: Path) -> None:
        state = path.stat()
        self._path = path
        self._packing = asyncio.Lock()
        self._packed: bytes | None = None
        self.tag = hashlib.sha256(f"{state.st_size}-{state.st_mtime_ns}".encode()).hexdigest()[:16]

    async def handle(self, request: web.Request) -> web.StreamResponse:
        headers = {"Cache-Control": FOR_GOOD, "ETag": f'"{self.tag}"', "Vary": "Accept-Encoding"}
        if has_tag(request, self.tag):
            return web.Response(status=304, headers=headers)
        headers["Content-Type"] = "text/javascript; charset=utf-8"
        if "gzip" not in request.headers.get("Accept-Encoding", ""):
            return web.Response(body=await asyncio.to_thread(self._path.read_bytes), headers=headers)
        return web.Response(body=await self._pack(), headers=headers | {"Content-Encoding": "gzip"})

    async def _pack(self) -> bytes:
        """By the first who asks, away from the event loop; the others wait for the same result."""
        async with self._packing:
            if self._packed is None:
                self._packed = await asyncio.to_thread(_compress, self._path)
            return self._packed


def _compress(path: Path) -> bytes:
    return gzip.compress(path.read_bytes(), compresslevel=9, mtime=0)
