"""What the reactor asks for every day, in the very form in which it asks."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp

from loadtests.embedded.plain_client import PlainClient
from loadtests.embedded.resources import Json
from reactor.cluster.kinds import Kind, listing_of

MakePod = Callable[..., Awaitable[str]]


def _event(api: PlainClient, name: str, about: str, uid: str = "") -> Json:
    subject = {"kind": about, "name": "p", "namespace": api.namespace, "uid": uid}
    return {
        "metadata": {"name": name},
        "involvedObject": subject,
        "reason": "Unhealthy",
        "message": "Liveness probe failed",
        "type": "Warning",
        "count": 1,
        "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": "2026-01-01T00:00:00Z",
        "source": {"component": "kubelet"},
    }


async def test_every_watched_kind_is_listed_in_pages_and_watched_from_there(api: PlainClient) -> None:
    """At the same time, because each watch lasts a second."""
    await asyncio.gather(*(_is_listed_and_watched(api, kind) for kind in Kind))


async def _is_listed_and_watched(api: PlainClient, kind: Kind) -> None:
    listing = listing_of(kind)
    selection = {"fieldSelector": listing.field_selector} if listing.field_selector else {}
    listed = await api.get(listing.path, limit=500, **selection)
    assert (listed.status, listed.body["kind"]) == (200, f"{kind.object_kind}List"), kind
    query: dict[str, Any] = {"resourceVersion": listed.version, "allowWatchBookmarks": "true", "timeoutSeconds": 1}
    events = [event async for event in api.watch(listing.path, **selection, **query)]
    assert {event["type"] for event in events} <= {"ADDED", "MODIFIED", "DELETED", "BOOKMARK"}, kind


async def test_only_the_events_of_pods_are_watched_and_a_repeated_one_is_modified(
    api: PlainClient, make_pod: MakePod
) -> None:
    uid = await make_pod("p")
    version = (await api.get("/api/v1/events", fieldSelector="involvedObject.kind=Pod", limit=500)).version
    assert (await api.post(api.here("events"), _event(api, "of-node", "ReplicaSet"))).status == 201
    assert (await api.post(api.here("events"), _event(api, "of-pod", "Pod", uid))).status == 201
    await api.patch(api.here("events", "of-pod"), {"count": 2})
    seen = []
    query = {"fieldSelector": "involvedObject.kind=Pod", "resourceVersion": version}
    async for event in api.watch(api.here("events"), **query):
        seen.append((event["type"], event["object"]["metadata"]["name"], event["object"]["count"]))
        if len(seen) == 2:
            break
    assert seen == [("ADDED", "of-pod", 1), ("MODIFIED", "of-pod", 2)]


async def test_pages_of_a_field_selection_are_complete(api: PlainClient) -> None:
    for number in range(5):
        about = "Pod" if number % 2 == 0 else "ReplicaSet"
        assert (await api.post(api.here("events"), _event(api, f"e{number}", about))).status == 201
    names: list[str] = []
    query = {"limit": "1", "fieldSelector": "involvedObject.kind=Pod"}
    token = ""
    while True:
        page = await api.get(api.here("events"), **query, **({"continue": token} if token else {}))
        names += page.names
        token = page.body["metadata"].get("continue", "")
        if not token:
            break
    assert names == ["e0", "e2", "e4"]


async def test_after_an_expiry_a_new_list_gives_a_version_to_watch_from(
    api: PlainClient, expire_history: Callable[[], Awaitable[None]]
) -> None:
    await api.post(api.here("configmaps"), {"metadata": {"name": "old"}})
    await expire_history()
    version = (await api.get(api.here("configmaps"), limit=500)).version
    await api.post(api.here("configmaps"), {"metadata": {"name": "new"}})
    async for event in api.watch(api.here("configmaps"), resourceVersion=version):
        assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", "new")
        break


async def test_an_open_watch_goes_on_while_others_write(api: PlainClient) -> None:
    version = (await api.get(api.here("configmaps"))).version
    seen: list[str] = []

    async def follow() -> None:
        async for event in api.watch(api.here("configmaps"), resourceVersion=version):
            seen.append(event["object"]["metadata"]["name"])
            if len(seen) == 20:
                return

    watching = asyncio.create_task(follow())
    names = [f"c{number:02d}" for number in range(20)]
    for name in names:
        await api.post(api.here("configmaps"), {"metadata": {"name": name}})
    async with asyncio.timeout(10):
        await watching
    assert seen == names


async def test_a_token_that_nobody_knows_is_unauthorized(api: PlainClient) -> None:
    timeout = aiohttp.ClientTimeout(total=15)
    headers = {"Authorization": "Bearer nobody"}
    connector = aiohttp.TCPConnector(ssl=False)
    async with aiohttp.ClientSession(headers=headers, connector=connector, timeout=timeout) as session:
        answer = await PlainClient(api.url, session, api.namespace).get("/api/v1/nodes")
    assert (answer.status, answer.body["reason"], answer.body["code"]) == (401, "Unauthorized", 401)
