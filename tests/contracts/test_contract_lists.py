"""Lists: what an item looks like, pages of one moment, selectors."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from loadtests.embedded.plain_client import PlainClient

MakePod = Callable[..., Awaitable[str]]


async def _configmaps(api: PlainClient, count: int) -> list[str]:
    names = [f"cm-{index:02d}" for index in range(count)]
    for name in names:
        body = {"metadata": {"name": name, "labels": {"parity": "odd" if int(name[-1]) % 2 else "even"}}}
        assert (await api.post(api.here("configmaps"), body)).status == 201
    return names


async def test_items_of_a_list_have_no_kind_of_their_own(api: PlainClient, make_pod: MakePod) -> None:
    uid = await make_pod("one")
    listed = await api.get(api.here("pods"))
    assert (listed.body["kind"], listed.body["apiVersion"]) == ("PodList", "v1")
    (item,) = listed.body["items"]
    assert "kind" not in item
    assert "apiVersion" not in item
    assert item["metadata"]["uid"] == uid
    assert int(listed.version) >= int(item["metadata"]["resourceVersion"])


async def test_an_empty_list_has_items_and_a_version(api: PlainClient) -> None:
    listed = await api.get(api.here("pods"))
    assert listed.body["items"] == []
    assert int(listed.version) > 0


async def test_pages_show_one_moment_in_order(api: PlainClient) -> None:
    names = await _configmaps(api, 7)
    path = api.here("configmaps")
    seen: list[str] = []
    page = await api.get(path, limit=3, labelSelector="parity")
    version = page.version
    await api.delete(api.here("configmaps", names[5]))
    await api.post(path, {"metadata": {"name": "cm-99", "labels": {"parity": "even"}}})
    while True:
        assert page.status == 200
        assert page.version == version
        seen += page.names
        token = page.body["metadata"].get("continue")
        if not token:
            break
        page = await api.get(path, limit=3, labelSelector="parity", **{"continue": token})
    assert seen == names


async def test_only_an_unfiltered_page_says_how_many_remain(api: PlainClient) -> None:
    await _configmaps(api, 4)
    everything = await api.get("/api/v1/configmaps", limit=1)
    assert everything.body["metadata"]["remainingItemCount"] >= 3
    filtered = await api.get(api.here("configmaps"), limit=1, labelSelector="parity=even")
    assert filtered.body["metadata"]["continue"]
    assert "remainingItemCount" not in filtered.body["metadata"]


async def test_a_garbled_continue_token_is_a_bad_request(api: PlainClient) -> None:
    answer = await api.get(api.here("configmaps"), limit=1, **{"continue": "garbage"})
    assert (answer.status, answer.body["reason"]) == (400, "BadRequest")


async def test_an_expired_continue_token_is_gone(
    api: PlainClient, expire_history: Callable[[], Awaitable[None]]
) -> None:
    await _configmaps(api, 3)
    page = await api.get(api.here("configmaps"), limit=1)
    await api.delete(api.here("configmaps", "cm-02"))
    await expire_history()
    answer = await api.get(api.here("configmaps"), limit=1, **{"continue": page.body["metadata"]["continue"]})
    assert (answer.status, answer.body["reason"], answer.body["code"]) == (410, "Expired", 410)


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("app=a", ["a-1", "a-2"]),
        ("app==a,tier!=web", ["a-2"]),
        ("app in (a, b),tier", ["a-1", "b-1"]),
        ("app notin (a)", ["b-1"]),
        ("!tier", ["a-2"]),
    ],
)
async def test_label_selectors(api: PlainClient, make_pod: MakePod, selector: str, expected: list[str]) -> None:
    await make_pod("a-1", labels={"app": "a", "tier": "web"})
    await make_pod("a-2", labels={"app": "a"})
    await make_pod("b-1", labels={"app": "b", "tier": "db"})
    assert (await api.get(api.here("pods"), labelSelector=selector)).names == expected


async def test_field_selectors_of_pods(api: PlainClient, make_pod: MakePod, node: str) -> None:
    await make_pod("bound", node=node, ready=True)
    await make_pod("pending")
    path = api.here("pods")
    for selector, expected in (
        (f"spec.nodeName={node}", ["bound"]),
        ("spec.nodeName=", ["pending"]),
        ("status.phase=Running", ["bound"]),
        ("status.phase!=Running", ["pending"]),
        ("spec.schedulerName=nobody,metadata.name=pending", ["pending"]),
        (f"metadata.namespace={api.namespace}", ["bound", "pending"]),
    ):
        assert (await api.get(path, fieldSelector=selector)).names == expected, selector


async def test_a_field_that_cannot_be_selected_is_named(api: PlainClient) -> None:
    pods = await api.get(api.here("pods"), fieldSelector="spec.foo=1")
    assert (pods.status, pods.body["message"]) == (400, "field label not supported: spec.foo")
    maps = await api.get(api.here("configmaps"), fieldSelector="data=1")
    known = '"data" is not a known field selector: only "metadata.name", "metadata.namespace"'
    assert (maps.status, maps.body["message"]) == (400, known)


async def test_a_label_selector_that_cannot_be_parsed_is_a_bad_request(api: PlainClient) -> None:
    answer = await api.get(api.here("pods"), labelSelector="a in b")
    assert (answer.status, answer.body["reason"]) == (400, "BadRequest")


async def test_a_list_at_resource_version_0_is_allowed_and_one_from_the_future_is_not(api: PlainClient) -> None:
    assert (await api.get(api.here("pods"), resourceVersion="0")).status == 200
    answer = await api.get(api.here("pods"), resourceVersion=str(10**12))
    assert (answer.status, answer.body["reason"]) == (504, "Timeout")
    assert answer.body["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"


async def test_a_namespace_that_is_not_there_lists_as_empty(api: PlainClient) -> None:
    answer = await api.get("/api/v1/namespaces/no-such-namespace/pods")
    assert (answer.status, answer.body["items"]) == (200, [])
