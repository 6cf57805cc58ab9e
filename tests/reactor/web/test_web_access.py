"""Where others reach the dashboard they need a token of the cluster; what cannot be reviewed is not let in."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession
from aiohttp.test_utils import TestClient, TestServer
from prometheus_client import CollectorRegistry

from reactor.app import Options, open_controller
from reactor.cluster.access_review import AccessReview
from reactor.cluster.api import ApiRequest, ApiResponse
from reactor.cluster.kinds import ObjectName
from reactor.errors import InputError, Unreachable
from reactor.web.access import TokenAccess
from reactor.web.middleware import LOOPBACK_NAMES
from reactor.web.server import Auth, Exposure, build_app, serve
from tests.reactor.web.small_view import Client, HandClock, SmallHealth, SmallSource
from tests.support.shop import open_shop

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


async def test_the_right_is_asked_for_in_the_namespace_of_the_controller(
    reviews: Reviews, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An empty namespace would ask for the right in all of them."""
    async with open_shop() as shop:
        kubeconfig = str(shop.cluster.kubeconfig(tmp_path / "kubeconfig"))
        options = Options(tmp_path / "rematch.db", kubeconfig, config_map=ObjectName("ops", "rematch"))
        async with open_controller(options) as live, serve(live, "127.0.0.1", 0, Exposure(Auth.TOKEN)) as url:
            monkeypatch.setattr(live.connection, "send", reviews.send)
            async with ClientSession() as session:
                answer = await session.get(f"{url}/healthz", headers=bearer("poor"))
                assert answer.status == 403
                assert "Service ops/rematch" in await answer.text()
    assert reviews.asked[1]["resourceAttributes"]["namespace"] == "ops"


@pytest.mark.parametrize("body", [b"\xff", b"[]", b'{"status": {"user": {"groups": 1}}}'])
async def test_an_answer_that_cannot_be_read_lets_nobody_in(
    guarded: Client, reviews: Reviews, monkeypatch: pytest.MonkeyPatch, body: bytes
) -> None:
    async def send(_request: ApiRequest) -> ApiResponse:
        return ApiResponse(201, body)

    monkeypatch.setattr(reviews, "send", send)
    assert (await guarded.get("/api/v1/overview", headers=bearer("good"))).status == 503


async def test_another_name_is_told_the_names_that_are_served(clock: HandClock) -> None:
    names = Exposure(Auth.NONE, ("rematch.example",)).names("0.0.0.0")
    app = build_app(SmallSource(), SmallHealth(), CollectorRegistry(), clock, names=names)
    async with TestClient(TestServer(app, host="127.0.0.1")) as client:
        answer = await client.get("/", headers={"Host": "evil.example"})
        assert answer.status == 421
        assert "rematch.example" in await answer.text()
