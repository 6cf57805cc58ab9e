"""The resources of rematch.io, as with the definitions of the chart: what the journal and the requests rely on."""

from __future__ import annotations

from typing import Any

import aiohttp

from loadtests.embedded.plain_client import JSON_PATCH, STRATEGIC, PlainClient

GROUP = "apis/rematch.io/v1alpha1"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"


def _move(name: str, **spec: Any) -> dict[str, Any]:
    filled = {"version": 1, "readableBy": 1, "pod": "shop/web-1", "move": {"id": name}, **spec}
    return {"apiVersion": "rematch.io/v1alpha1", "kind": "Move", "metadata": {"name": name}, "spec": filled}


def _request(**spec: Any) -> dict[str, Any]:
    metadata = {"generateName": "ask-"}
    return {"apiVersion": "rematch.io/v1alpha1", "kind": "Request", "metadata": metadata, "spec": spec}


async def test_a_move_is_written_by_compare_and_swap(api: PlainClient) -> None:
    path = api.here("moves", "m1", group=GROUP)
    first = await api.post(api.here("moves", group=GROUP), _move("m1", state="planned"))
    assert first.status == 201
    assert first.body["metadata"]["generation"] == 1
    version = {"metadata": {"resourceVersion": first.version}}
    second = await api.patch(path, {**version, "spec": {"state": "evicted", "move": {"bound": 1.5}}})
    assert (second.status, second.body["spec"]["state"]) == (200, "evicted")
    assert second.body["spec"]["move"] == {"id": "m1", "bound": 1.5}
    assert second.body["metadata"]["generation"] == 2
    late = await api.patch(path, {**version, "spec": {"state": "late"}})
    assert (late.status, late.body["reason"]) == (409, "Conflict")
    removed = await api.patch(
        path, {"metadata": {"resourceVersion": second.version}, "spec": {"move": {"bound": None}}}
    )
    assert removed.body["spec"]["move"] == {"id": "m1"}


async def test_an_update_needs_a_version(api: PlainClient) -> None:
    await api.post(api.here("moves", group=GROUP), _move("m1"))
    answer = await api.put(api.here("moves", "m1", group=GROUP), _move("m1", state="late"))
    assert (answer.status, answer.body["reason"]) == (422, "Invalid")


async def test_the_name_of_a_move_is_taken_once(api: PlainClient) -> None:
    await api.post(api.here("moves", group=GROUP), _move("m1"))
    answer = await api.post(api.here("moves", group=GROUP), _move("m1"))
    assert (answer.status, answer.body["reason"]) == (409, "AlreadyExists")
    assert answer.body["message"] == 'moves.rematch.io "m1" already exists'


async def test_a_deletion_with_another_version_is_a_conflict(api: PlainClient) -> None:
    path = api.here("moves", "m1", group=GROUP)
    created = await api.post(api.here("moves", group=GROUP), _move("m1"))
    conflict = await api.delete(path, {"preconditions": {"resourceVersion": "1"}})
    assert (conflict.status, conflict.body["reason"]) == (409, "Conflict")
    deleted = await api.delete(path, {"preconditions": {"uid": created.body["metadata"]["uid"]}})
    assert (deleted.status, deleted.body["status"]) == (200, "Success")
    assert (await api.get(path)).body["message"] == 'moves.rematch.io "m1" not found'


async def test_a_wrong_type_is_invalid(api: PlainClient) -> None:
    bad = [_move("m1", pod=7), _move("m1", move=[1]), _move("m1", version=None)]
    for body in bad:
        answer = await api.post(api.here("moves", group=GROUP), body)
        assert (answer.status, answer.body["reason"]) == (422, "Invalid"), body
    answer = await api.post(api.here("requests", group=GROUP), _request(action="dance"))
    assert (answer.status, answer.body["reason"]) == (422, "Invalid")


async def test_a_body_must_name_its_kind(api: PlainClient) -> None:
    answer = await api.post(api.here("moves", group=GROUP), {"metadata": {"name": "m1"}, "spec": {}})
    assert (answer.status, answer.body["reason"]) == (400, "BadRequest")


async def test_patches_but_strategic_ones_are_taken(api: PlainClient) -> None:
    path = api.here("moves", "m1", group=GROUP)
    await api.post(api.here("moves", group=GROUP), _move("m1"))
    assert (await api.patch(path, {"spec": {"state": "x"}}, STRATEGIC)).status == 415
    step = [{"op": "add", "path": "/spec/state", "value": "bound"}]
    assert (await api.patch(path, step, JSON_PATCH)).body["spec"]["state"] == "bound"


async def test_moves_are_listed_and_watched(api: PlainClient) -> None:
    collection = api.here("moves", group=GROUP)
    await api.post(collection, _move("m1"))
    listed = await api.get(collection)
    assert (listed.names, listed.body["kind"]) == (["m1"], "MoveList")
    await api.post(collection, _move("m2"))
    async for event in api.watch(collection, resourceVersion=listed.version):
        assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", "m2")
        break


async def test_the_status_of_a_request_is_written_apart(api: PlainClient) -> None:
    collection = api.here("requests", group=GROUP)
    asked = {**_request(action="pause", reason="night"), "status": {"state": "done"}}
    created = await api.post(collection, asked)
    assert created.status == 201
    assert "status" not in created.body
    path = f"{collection}/{created.body['metadata']['name']}"
    version = {"metadata": {"resourceVersion": created.version}}
    plain = await api.patch(path, {**version, "status": {"state": "done"}})
    assert "status" not in plain.body
    written = await api.patch(f"{path}/status", {**version, "status": {"state": "accepted", "leader": "a"}})
    assert written.body["status"] == {"state": "accepted", "leader": "a"}
    assert written.body["spec"] == {"action": "pause", "reason": "night"}
    stale = await api.patch(f"{path}/status", {**version, "status": {"leader": "b"}})
    assert (stale.status, stale.body["reason"]) == (409, "Conflict")


async def test_kubectl_get_moves_shows_where_a_pod_goes_and_why(api: PlainClient) -> None:
    shown = {"from": "n1", "to": "n2", "strategy": "evict", "state": "evicted", "reason": "n1 is crowded"}
    await api.post(api.here("moves", group=GROUP), _move("m1", **shown))
    columns, rows = await _table(api, "moves")
    assert columns == ["Name", "Pod", "From", "To", "Strategy", "State", "Age", "Reason"]
    age = rows[0].pop(6)
    assert rows[0] == ["m1", "shop/web-1", "n1", "n2", "evict", "evicted", "n1 is crowded"]
    assert age.endswith("s")


async def test_kubectl_get_requests_shows_what_became_of_them(api: PlainClient) -> None:
    created = await api.post(api.here("requests", group=GROUP), _request(action="resume"))
    name = created.body["metadata"]["name"]
    status = {"status": {"state": "done", "message": "resumed"}}
    await api.patch(api.here("requests", f"{name}/status", group=GROUP), status)
    columns, rows = await _table(api, "requests")
    assert columns == ["Name", "Action", "State", "Age", "Message"]
    assert [rows[0][1], rows[0][2], rows[0][4]] == ["resume", "done", "resumed"]


async def _table(api: PlainClient, plural: str) -> tuple[list[str], list[list[Any]]]:
    timeout = aiohttp.ClientTimeout(total=15)
    url = api.url + api.here(plural, group=GROUP)
    async with api.session.get(url, headers={"Accept": TABLE}, timeout=timeout) as response:
        table = await response.json()
    return [column["name"] for column in table["columnDefinitions"]], [row["cells"] for row in table["rows"]]
