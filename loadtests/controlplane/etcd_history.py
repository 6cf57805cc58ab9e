"""Makes etcd forget: what the API server does every five minutes, when a test needs it now."""

from __future__ import annotations

import base64

import aiohttp

_DEADLINE = aiohttp.ClientTimeout(total=10.0)
_ANY_KEY = base64.b64encode(b"compact_rev_key").decode()


async def compact(url: str) -> None:
    """Drops every version before the present one."""
    async with aiohttp.ClientSession(timeout=_DEADLINE, raise_for_status=True) as session:
        async with session.post(f"{url}/v3/kv/range", json={"key": _ANY_KEY}) as answer:
            revision = int((await answer.json())["header"]["revision"])
        async with session.post(f"{url}/v3/kv/compaction", json={"revision": revision, "physical": True}):
            pass
