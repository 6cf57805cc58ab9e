"""How answers look: JSON that nobody caches, and errors that say what is wrong."""

from __future__ import annotations

from html import escape

import msgspec
from aiohttp import web

_encoder = msgspec.json.Encoder()
WORTH_COMPRESSING = 2048

ERROR_PAGE = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    "<title>{title}</title><h1>{title}</h1><p>{message}</p>"
)


def json_answer(value: object) -> web.Response:
    body = _encoder.encode(value)
    response = web.Response(body=body, content_type="application/json", headers={"Cache-Control": "no-store"})
    if len(body) > WORTH_COMPRESSING:
        response.enable_compression()
    return response


def text_answer(text: str, status: int = 200) -> web.Response:
    return web.Response(text=text, status=status, headers={"Cache-Control": "no-store"})


def error_answer(request: web.Request, status: int, message: str, parameter: str | None = None) -> web.Response:
    """JSON for programs; a plain page for a browser that asked for one outside the API."""
    if "text/html" in request.headers.get("Accept", "") and not request.path.startswith("/api/"):
        text = ERROR_PAGE.format(title=f"{status}", message=escape(message))
        return web.Response(text=text, content_type="text/html", status=status, headers={"Cache-Control": "no-store"})
    error = {"status": status, "message": message} | ({"parameter": parameter} if parameter is not None else {})
    body = _encoder.encode({"error": error})
    headers = {"Cache-Control": "no-store"}
    return web.Response(body=body, content_type="application/json", status=status, headers=headers)
