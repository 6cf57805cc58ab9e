"""The three kinds of patches."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from loadtests.embedded.plain_client import JSON_PATCH, MERGE, STRATEGIC, PlainClient

MakePod = Callable[..., Awaitable[str]]


async def _configmap(api: PlainClient) -> str:
    await api.post(api.here("configmaps"), {"metadata": {"name": "c"}, "data": {"a": "1", "b": "2"}})
    return api.here("configmaps", "c")


async def test_a_merge_patch_sets_and_removes(api: PlainClient) -> None:
    path = await _configmap(api)
    answer = await api.patch(path, {"data": {"a": "9", "b": None}}, MERGE)
    assert (answer.status, answer.body["data"]) == (200, {"a": "9"})


async def test_a_patch_is_conditional_when_it_names_a_version(api: PlainClient) -> None:
    path = await _configmap(api)
    answer = await api.patch(path, {"metadata": {"resourceVersion": "1"}, "data": {"a": "9"}})
    assert (answer.status, answer.body["reason"]) == (409, "Conflict")
    current = (await api.get(path)).version
    answer = await api.patch(path, {"metadata": {"resourceVersion": current}, "data": {"a": "9"}})
    assert answer.status == 200


async def test_a_patch_cannot_change_the_uid(api: PlainClient) -> None:
    path = await _configmap(api)
    answer = await api.patch(path, {"metadata": {"uid": "other"}})
    assert (answer.status, answer.body["reason"]) == (422, "Invalid")


async def test_a_patch_of_what_is_not_there_is_not_found(api: PlainClient) -> None:
    assert (await api.patch(api.here("configmaps", "nope"), {"data": {"a": "1"}})).status == 404


async def test_a_json_patch_runs_all_its_steps_or_none(api: PlainClient) -> None:
    path = await _configmap(api)
    steps = [
        {"op": "test", "path": "/data/a", "value": "1"},
        {"op": "add", "path": "/data/c", "value": "3"},
        {"op": "replace", "path": "/data/a", "value": "9"},
        {"op": "remove", "path": "/data/b"},
        {"op": "copy", "from": "/data/c", "path": "/data/d"},
        {"op": "add", "path": "/metadata/annotations", "value": {}},
        {"op": "move", "from": "/data/c", "path": "/metadata/annotations/e~1f"},
    ]
    answer = await api.patch(path, steps, JSON_PATCH)
    assert (answer.status, answer.body["data"]) == (200, {"a": "9", "d": "3"})
    assert answer.body["metadata"]["annotations"] == {"e/f": "3"}
    failed = await api.patch(
        path,
        [{"op": "remove", "path": "/data/a"}, {"op": "test", "path": "/data/d", "value": "no"}],
        JSON_PATCH,
    )
    assert (failed.status, failed.body["reason"]) == (422, "Invalid")
    assert (await api.get(path)).body["data"]["a"] == "9"


async def test_a_patch_of_the_wrong_form_is_a_bad_request(api: PlainClient) -> None:
    path = await _configmap(api)
    assert (await api.patch(path, {"a": 1}, JSON_PATCH)).status == 400
    assert (await api.patch(path, [1], MERGE)).status == 400


async def test_a_patch_of_an_unknown_kind_is_an_unsupported_media_type(api: PlainClient) -> None:
    path = await _configmap(api)
    answer = await api.patch(path, {"data": {}}, "application/json")
    assert (answer.status, answer.body["reason"]) == (415, "UnsupportedMediaType")


async def test_a_strategic_patch_merges_conditions_by_type(api: PlainClient, node: str) -> None:
    path = f"/api/v1/nodes/{node}/status"
    patch = {"status": {"conditions": [{"type": "MemoryPressure", "status": "True"}]}}
    assert (await api.patch(path, patch, STRATEGIC)).status == 200
    patch = {"status": {"conditions": [{"type": "Ready", "status": "False", "reason": "Test"}]}}
    answer = await api.patch(path, patch, STRATEGIC)
    found = {condition["type"]: condition["status"] for condition in answer.body["status"]["conditions"]}
    assert found == {"Ready": "False", "MemoryPressure": "True"}


async def test_a_strategic_patch_replaces_taints_as_a_whole(api: PlainClient, node: str) -> None:
    path = f"/api/v1/nodes/{node}"
    first = {"key": "example.com/a", "effect": "PreferNoSchedule"}
    second = {"key": "example.com/b", "effect": "PreferNoSchedule"}
    await api.patch(path, {"spec": {"taints": [first]}}, STRATEGIC)
    answer = await api.patch(path, {"spec": {"taints": [second]}}, STRATEGIC)
    ours = [taint for taint in answer.body["spec"]["taints"] if taint["key"].startswith("example.com/")]
    assert ours == [second]


async def test_cordon_and_uncordon(api: PlainClient, node: str) -> None:
    path = f"/api/v1/nodes/{node}"
    cordoned = await api.patch(path, {"spec": {"unschedulable": True}}, STRATEGIC)
    assert cordoned.body["spec"]["unschedulable"] is True
    assert node in (await api.get("/api/v1/nodes", fieldSelector="spec.unschedulable=true")).names
    uncordoned = await api.patch(path, {"spec": {"unschedulable": None}}, STRATEGIC)
    assert "unschedulable" not in uncordoned.body["spec"]


async def test_a_strategic_patch_merges_containers_by_name_and_knows_directives(api: PlainClient) -> None:
    containers = [{"name": "a", "image": "x:1"}, {"name": "b", "image": "y:1"}]
    template = {"metadata": {"labels": {"app": "d"}}, "spec": {"containers": containers}}
    spec = {"replicas": 0, "selector": {"matchLabels": {"app": "d"}}, "template": template}
    group = "apis/apps/v1"
    await api.post(api.here("deployments", group=group), {"metadata": {"name": "d"}, "spec": spec})
    path = api.here("deployments", "d", group=group)
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "b", "image": "y:2"}]}}}}
    answer = await api.patch(path, patch, STRATEGIC)
    images = [known["image"] for known in answer.body["spec"]["template"]["spec"]["containers"]]
    assert images == ["x:1", "y:2"]
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "a", "$patch": "delete"}]}}}}
    answer = await api.patch(path, patch, STRATEGIC)
    assert [known["name"] for known in answer.body["spec"]["template"]["spec"]["containers"]] == ["b"]
    assert answer.body["metadata"]["generation"] == 3


async def test_annotations_can_be_patched_on_a_running_pod(api: PlainClient, make_pod: MakePod, node: str) -> None:
    await make_pod("p", node=node, ready=True)
    patch = {"metadata": {"annotations": {"controller.kubernetes.io/pod-deletion-cost": "-5"}}}
    answer = await api.patch(api.here("pods", "p"), patch)
    assert answer.body["metadata"]["annotations"] == {"controller.kubernetes.io/pod-deletion-cost": "-5"}
