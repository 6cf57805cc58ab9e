"""The page's own files, read once at start and served from memory."""

from __future__ import annotations

import hashlib
from pathlib import Path

from aiohttp import web
from msgspec import Struct

STATIC = Path(__file__).parent / "static"
SHELL = "index.html"
REVALIDATE = "no-cache"
CONTENT_TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}


class Asset(Struct, frozen=True):
    body: bytes
    content_type: str
    tag: str


class Assets:
    """`plotly_tag` is empty when the script is missing; the page then shows its numbers without charts."""

    def __init__(self, plotly_tag: str) -> None:
        paths = (path for path in STATIC.iterdir() if path.suffix in CONTENT_TYPES)
        self._files = {path.name: _load(path) for path in paths}
        self._shell = (STATIC / SHELL).read_text("utf-8")
        self._plotly_tag = plotly_tag

    def shell(self, base: str) -> web.Response:
        """The page, whose links are relative to `base`, so that it also works below a proxy's path."""
        text = self._shell.replace("@BASE@", base).replace("@PLOTLY@", self._plotly_tag)
        response = web.Response(text=text, content_type="text/html", headers={"Cache-Control": REVALIDATE})
        response.enable_compression()
        return response

    async def handle(self, request: web.Request) -> web.StreamResponse:
        asset = self._files.get(request.match_info["name"])
        if asset is None:
            raise web.HTTPNotFound
        headers = {"Cache-Control": REVALIDATE, "ETag": f'"{asset.tag}"'}
        if has_tag(request, asset.tag):
            return web.Response(status=304, headers=headers)
        response = web.Response(body=asset.body, content_type=asset.content_type, charset="utf-8", headers=headers)
        response.enable_compression()
        return response


def has_tag(request: web.Request, tag: str) -> bool:
    """Whether the browser already holds this version."""
    return any(known.value in (tag, "*") for known in request.if_none_match or ())


def _load(path: Path) -> Asset:
    body = path.read_bytes()
    return Asset(body=body, content_type=CONTENT_TYPES[path.suffix], tag=hashlib.sha256(body).hexdigest()[:16])
