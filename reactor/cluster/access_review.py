"""Who a bearer token belongs to, and whether this user may see the dashboard: TokenReview and SubjectAccessReview."""

from __future__ import annotations

from typing import TypeVar

import msgspec
from msgspec import Struct

from reactor.cluster.api import ApiRequest, Body, Connection, checked, decoded

_DEADLINE = 5.0
_TOKEN_REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
_ACCESS_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
SERVICE = "rematch"
T = TypeVar("T")


class User(Struct, frozen=True, gc=False):
    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, list[str]] = {}


class _TokenStatus(Struct, frozen=True, gc=False):
    authenticated: bool = False
    user: User = User()


class _TokenReview(Struct, gc=False):
    status: _TokenStatus = _TokenStatus()


class _AccessStatus(Struct, frozen=True, gc=False):
    allowed: bool = False


class _AccessReview(Struct, gc=False):
    status: _AccessStatus = _AccessStatus()


_TOKEN = msgspec.json.Decoder(_TokenReview)
_ACCESS = msgspec.json.Decoder(_AccessReview)


class AccessReview:
    """Who may `get services/proxy` of the Service `rematch` could reach the dashboard through the API server, too."""

    def __init__(self, connection: Connection, namespace: str) -> None:
        self._connection = connection
        self.namespace = namespace

    async def user_of(self, token: str) -> User | None:
        """None for a token that the API server does not know. Raises a ClusterError where that cannot be found out."""
        review = await self._ask(_TOKEN_REVIEWS, {"spec": {"token": token}}, _TOKEN)
        return review.status.user if review.status.authenticated and review.status.user.username else None

    async def may_look(self, user: User) -> bool:
        asked = {
            "verb": "get",
            "group": "",
            "resource": "services",
            "subresource": "proxy",
            "namespace": self.namespace,
            "name": SERVICE,
        }
        spec = {
            "user": user.username,
            "uid": user.uid,
            "groups": list(user.groups),
            "extra": user.extra,
            "resourceAttributes": asked,
        }
        review = await self._ask(_ACCESS_REVIEWS, {"spec": spec}, _ACCESS)
        return review.status.allowed

    async def _ask(self, path: str, body: Body, answer: msgspec.json.Decoder[T]) -> T:
        response = await self._connection.send(ApiRequest("POST", path, body=body, deadline=_DEADLINE))
        return decoded(answer, checked(response, f"POST {path}"), f"POST {path}")
