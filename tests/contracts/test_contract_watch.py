"""Watches: where they start, what they send, how they end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from loadtests.embedded.plain_client import PlainClient
from loadtests.embedded.resources import Json

MakePod = Callable[..., Awaitable[str]]


async def _collect(api: PlainClient, path: str, count: int, **query: str | int) -> list[Json]:
    events: list[Json] = []
    async for event in api.watch(path, **query):
        events.append(event)
        if len(events) == count:
            break
    return events


def _summary(events: list[Json]) -> list[tuple[str, str]]:
    return [(event["type"], event["object"]["metadata"].get("name", "")) for event in events]


async def test_a_watch_from_a_version_sends_what_came_after(api: PlainClient, make_pod: MakePod) -> None:
    await make_pod("before")
    version = (await api.get(api.here("pods"))).version
    await make_pod("after")
    await api.patch(api.here("pods", "after"), {"metadata": {"labels": {"x": "1"}}})
    events = await _collect(api, api.here("pods"), 2, resourceVersion=version)
    assert _summary(events) == [("ADDED", "after"), ("MODIFIED", "after")]
    first, second = (event["object"] for event in events)
    assert (first["kind"], first["apiVersion"]) == ("Pod", "v1")
    assert int(version) < int(first["metadata"]["resourceVersion"]) < int(second["metadata"]["resourceVersion"])


async def test_a_watch_without_a_version_starts_with_the_present_state(api: PlainClient, make_pod: MakePod) -> None:
    await make_pod("a")
    await make_pod("b")
    for query in ({}, {"resourceVersion": "0"}):
        events = await _collect(api, api.here("pods"), 2, **query)
        assert sorted(_summary(events)) == [("ADDED", "a"), ("ADDED", "b")]


async def test_a_deleted_object_is_sent_as_it_was_under_the_version_of_its_deletion(api: PlainClient) -> None:
    created = await api.post(api.here("configmaps"), {"metadata": {"name": "gone"}, "data": {"a": "b"}})
    await api.delete(api.here("configmaps", "gone"))
    query = {"resourceVersion": created.version, "fieldSelector": "metadata.name=gone"}
    (event,) = await _collect(api, api.here("configmaps"), 1, **query)
    assert (event["type"], event["object"]["data"]) == ("DELETED", {"a": "b"})
    assert int(event["object"]["metadata"]["resourceVersion"]) > int(created.version)


async def test_selectors_turn_changes_into_coming_and_going(api: PlainClient, make_pod: MakePod) -> None:
    version = (await api.get(api.here("pods"))).version
    await make_pod("p", labels={"x": "1"})
    for value in ("2", "1"):
        await api.patch(api.here("pods", "p"), {"metadata": {"labels": {"x": value}}})
    events = await _collect(api, api.here("pods"), 3, resourceVersion=version, labelSelector="x=1")
    assert _summary(events) == [("ADDED", "p"), ("DELETED", "p"), ("ADDED", "p")]
    gone = events[1]["object"]["metadata"]
    assert gone["labels"] == {"x": "1"}
    assert int(gone["resourceVersion"]) < int(events[2]["object"]["metadata"]["resourceVersion"])


async def test_a_field_selector_on_the_node_sees_a_pod_when_it_is_bound(
    api: PlainClient, make_pod: MakePod, node: str
) -> None:
    version = (await api.get(api.here("pods"))).version
    await make_pod("p")
    binding = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": node}}
    assert (await api.post(api.here("pods", "p/binding"), binding)).status == 201
    selector = f"spec.nodeName={node}"
    (event,) = await _collect(api, api.here("pods"), 1, resourceVersion=version, fieldSelector=selector)
    assert (event["type"], event["object"]["spec"]["nodeName"]) == ("ADDED", node)


async def test_one_object_can_be_watched_by_name(api: PlainClient) -> None:
    first = await api.post(api.here("configmaps"), {"metadata": {"name": "mine"}})
    await api.post(api.here("configmaps"), {"metadata": {"name": "other"}})
    await api.patch(api.here("configmaps", "mine"), {"data": {"a": "1"}})
    selector = "metadata.name=mine"
    (event,) = await _collect(api, api.here("configmaps"), 1, resourceVersion=first.version, fieldSelector=selector)
    assert (event["type"], event["object"]["data"]) == ("MODIFIED", {"a": "1"})


async def test_a_watch_ends_by_itself_after_its_timeout(api: PlainClient) -> None:
    version = (await api.get(api.here("pods"))).version
    events = [event async for event in api.watch(api.here("pods"), resourceVersion=version, timeoutSeconds=1)]
    assert events == []


async def test_bookmarks_carry_a_version_to_go_on_from(api: PlainClient) -> None:
    version = (await api.get(api.here("configmaps"))).version
    await api.post(api.here("configmaps"), {"metadata": {"name": "seen"}})
    query: dict[str, str | int] = {"resourceVersion": version, "allowWatchBookmarks": "true", "timeoutSeconds": 5}
    events = [event async for event in api.watch(api.here("configmaps"), **query)]
    marks = [event["object"] for event in events if event["type"] == "BOOKMARK"]
    assert marks
    assert marks[-1]["kind"] == "ConfigMap"
    mark = marks[-1]["metadata"]["resourceVersion"]
    assert int(mark) > int(version)
    await api.post(api.here("configmaps"), {"metadata": {"name": "next"}})
    query = {"resourceVersion": mark, "fieldSelector": "metadata.name=next"}
    resumed = await _collect(api, api.here("configmaps"), 1, **query)
    assert _summary(resumed) == [("ADDED", "next")]


async def test_a_version_that_is_too_old_is_an_error_event_with_410(
    api: PlainClient, expire_history: Callable[[], Awaitable[None]]
) -> None:
    version = (await api.get(api.here("configmaps"))).version
    await api.post(api.here("configmaps"), {"metadata": {"name": "lost"}})
    await expire_history()
    (event,) = await _collect(api, api.here("configmaps"), 1, resourceVersion=version)
    status = event["object"]
    assert (event["type"], status["kind"], status["code"], status["reason"]) == ("ERROR", "Status", 410, "Expired")


async def test_a_watch_list_ends_its_first_part_with_a_marked_bookmark(api: PlainClient, make_pod: MakePod) -> None:
    await make_pod("a")
    query = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
    added, mark = await _collect(api, api.here("pods"), 2, **query)
    assert (added["type"], mark["type"]) == ("ADDED", "BOOKMARK")
    assert mark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
