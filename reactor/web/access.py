"""Who may see the dashboard where it is not on loopback: the users of the cluster, by their bearer tokens."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass

from aiohttp import web

from reactor.clock import Clock
from reactor.cluster.access_review import SERVICE, AccessReview
from reactor.web.middleware import Handler, error_response

_ALLOWED_FOR = 30.0
_DENIED_FOR = 5.0
_REMEMBERED = 1000
_AT_ONCE = 4
"""Reviews at once: anyone who reaches the port may send tokens, and the API server has other work."""
_LONGEST = 8192


@dataclass(frozen=True, slots=True)
class _Verdict:
    status: int
    """200, 401 or 403."""
    until: float


class TokenAccess:
    """Verdicts are kept for seconds, so that a page of ten requests is one review; tokens are kept as digests."""

    def __init__(self, review: AccessReview, clock: Clock) -> None:
        self._review = review
        self._clock = clock
        self._verdicts: dict[bytes, _Verdict] = {}
        self._reviewing = asyncio.Semaphore(_AT_ONCE)

    @web.middleware
    async def only_users(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        kind, _, token = request.headers.get("Authorization", "").partition(" ")
        token = token.strip()
        if kind.lower() != "bearer" or not token or len(token) > _LONGEST:
            return _unknown(request)
        status = await self._status(token)
        if status == 403:
            service = f"{self._review.namespace}/{SERVICE}"
            return error_response(request, 403, f"you may not `get services/proxy` of the Service {service}")
        return await handler(request) if status == 200 else _unknown(request)

    async def _status(self, token: str) -> int:
        key = hashlib.sha256(token.encode(errors="surrogateescape")).digest()
        known = self._verdicts.get(key)
        if known is not None and self._clock.monotonic() < known.until:
            return known.status
        async with self._reviewing:
            known = self._verdicts.get(key)
            if known is None or self._clock.monotonic() >= known.until:
                known = await self._judge(token)
                self._remember(key, known)
        return known.status

    async def _judge(self, token: str) -> _Verdict:
        """A ClusterError is a 503: without the API server nobody is let in."""
        user = await self._review.user_of(token)
        status = 401 if user is None else 200 if await self._review.may_look(user) else 403
        return _Verdict(status, self._clock.monotonic() + (_ALLOWED_FOR if status == 200 else _DENIED_FOR))

    def _remember(self, key: bytes, verdict: _Verdict) -> None:
        self._verdicts.pop(key, None)
        if len(self._verdicts) >= _REMEMBERED:
            del self._verdicts[next(iter(self._verdicts))]
        self._verdicts[key] = verdict


def _unknown(request: web.Request) -> web.Response:
    response = error_response(request, 401, "send a bearer token of this cluster, such as of `kubectl create token`")
    response.headers["WWW-Authenticate"] = "Bearer"
    return response
