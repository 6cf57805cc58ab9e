"""Where others reach the dashboard they need a token of the cluster; what cannot be reviewed is not let in."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer
from prometheus_client import CollectorRegistry

from reactor.cluster.access_review import AccessReview
from reactor.cluster.api import ApiRequest, ApiResponse
from reactor.errors import InputError, Unreachable
from reactor.web.access import TokenAccess
from reactor.web.middleware import LOOPBACK_NAMES
from reactor.web.server import Auth, Exposure, build_app
from tests.reactor.web.small_view import Client, HandClock, SmallHealth, SmallSource

PATHS = ["/", "/api/v1/overview", "/api/v1/stream", "/api/v1/openapi.json", "/static/app.js", "/metrics", "/nowhere"]


class Reviews:
    """The API server: knows `good` and `poor`, and lets only `good` look."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.broken = False

    async def send(self, request: ApiRequest) -> ApiResponse:
        if self.broken:
            raise Unreachable("no answer")
        assert request.body is not None
        spec: Any = request.body["spec"]
        self.asked.append(spec)
        if "token" in spec:
            known = spec["token"] in ("good", "poor")
            user = {"username": spec["token"], "groups": ["g"], "extra": {"k": ["v"]}} if known else {}
            return _answer({"authenticated": known, "user": user})
        return _answer({"allowed": spec["user"] == "good"})


def _answer(status: dict[str, Any]) -> ApiResponse:
    return ApiResponse(201, json.dumps({"status": status}).encode())


@pytest.fixture
def reviews() -> Reviews:
    return Reviews()


@pytest.fixture
async def guarded(reviews: Reviews, clock: HandClock) -> AsyncIterator[Client]:
    access = TokenAccess(AccessReview(reviews, "rematch"), clock)  # type: ignore[arg-type]
    app = build_app(SmallSource(), SmallHealth(), CollectorRegistry(), clock, names=None, access=access)
    async with TestClient(TestServer(app, host="127.0.0.1")) as opened:
        yield opened


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("headers", [{}, bearer("bad"), bearer(""), {"Authorization": "Basic good"}])
async def test_without_a_known_token_nothing_is_shown(guarded: Client, path: str, headers: dict[str, str]) -> None:
    answer = await guarded.get(path, headers=headers)
    assert answer.status in (400, 401)
    if answer.status == 401:
        assert answer.headers["WWW-Authenticate"] == "Bearer"


async def test_a_user_who_may_use_the_service_is_served_and_another_is_not(guarded: Client, reviews: Reviews) -> None:
    assert (await guarded.get("/api/v1/overview", headers=bearer("good"))).status == 200
    assert reviews.asked[1] == {
        "user": "good",
        "uid": "",
        "groups": ["g"],
        "extra": {"k": ["v"]},
        "resourceAttributes": {
            "verb": "get",
            "group": "",
            "resource": "services",
            "subresource": "proxy",
            "namespace": "rematch",
            "name": "rematch",
        },
    }
    assert (await guarded.get("/api/v1/overview", headers=bearer("poor"))).status == 403


async def test_a_verdict_is_kept_for_seconds(guarded: Client, reviews: Reviews, clock: HandClock) -> None:
    for _ in range(5):
        await guarded.get("/api/v1/overview", headers=bearer("good"))
    assert len(reviews.asked) == 2
    await clock.advance(31)
    await guarded.get("/api/v1/overview", headers=bearer("good"))
    assert len(reviews.asked) == 4


async def test_without_the_api_server_nobody_is_let_in(guarded: Client, reviews: Reviews) -> None:
    reviews.broken = True
    assert (await guarded.get("/api/v1/overview", headers=bearer("good"))).status == 503


@pytest.mark.parametrize(
    ("host", "auth", "names", "wants"),
    [
        ("127.0.0.1", None, (), False),
        ("127.0.0.1", Auth.TOKEN, (), True),
        ("0.0.0.0", None, (), True),
        ("10.1.2.3", Auth.TOKEN, (), True),
        ("0.0.0.0", Auth.NONE, ("rematch.example",), False),
    ],
)
def test_who_has_to_send_a_token(host: str, auth: Auth | None, names: tuple[str, ...], wants: bool) -> None:
    assert Exposure(auth, names).wants_token(host) is wants


def test_open_to_others_without_a_token_must_be_said_with_the_name_of_the_proxy() -> None:
    with pytest.raises(InputError, match="--allowed-host"):
        Exposure(Auth.NONE).wants_token("0.0.0.0")
    assert Exposure(Auth.NONE, ("Rematch.example",)).names("0.0.0.0") == LOOPBACK_NAMES | {"rematch.example"}
    assert Exposure().names("127.0.0.1") == LOOPBACK_NAMES
