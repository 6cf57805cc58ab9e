"""Create, update, delete: preconditions, what the server fills in, and how it refuses."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from loadtests.embedded.plain_client import PlainClient

MakePod = Callable[..., Awaitable[str]]


async def test_create_fills_in_identity_and_defaults(api: PlainClient) -> None:
    body = {"metadata": {"generateName": "web-"}, "spec": {"containers": [{"name": "c", "image": "lab/x:1"}]}}
    created = await api.post(api.here("pods"), body)
    assert created.status == 201
    metadata, spec = created.body["metadata"], created.body["spec"]
    assert metadata["name"].startswith("web-")
    assert len(metadata["name"]) == len("web-") + 5
    assert metadata["uid"]
    assert metadata["resourceVersion"]
    assert metadata["creationTimestamp"].endswith("Z")
    assert spec["schedulerName"] == "default-scheduler"
    assert spec["restartPolicy"] == "Always"
    assert spec["terminationGracePeriodSeconds"] == 30
    assert spec["priority"] == 0
    assert {toleration["key"] for toleration in spec["tolerations"]} == {
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
    }
    assert created.body["status"] == {"phase": "Pending", "qosClass": "BestEffort"}


async def test_a_name_that_is_taken_already_exists(api: PlainClient, make_pod: MakePod) -> None:
    await make_pod("p")
    body = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
    answer = await api.post(api.here("pods"), body)
    assert (answer.status, answer.body["reason"]) == (409, "AlreadyExists")
    assert answer.body["message"] == 'pods "p" already exists'
    assert answer.body["details"] == {"name": "p", "kind": "pods"}


async def test_what_is_not_there_is_not_found(api: PlainClient) -> None:
    answer = await api.get(api.here("deployments", "nope", group="apis/apps/v1"))
    assert (answer.status, answer.body["reason"]) == (404, "NotFound")
    assert answer.body["message"] == 'deployments.apps "nope" not found'
    assert answer.body["details"] == {"name": "nope", "group": "apps", "kind": "deployments"}


async def test_creating_in_a_namespace_that_is_not_there_names_the_namespace(api: PlainClient) -> None:
    answer = await api.post("/api/v1/namespaces/no-such/configmaps", {"metadata": {"name": "c"}})
    assert (answer.status, answer.body["message"]) == (404, 'namespaces "no-such" not found')


async def test_an_invalid_object_is_refused_with_every_cause(api: PlainClient) -> None:
    answer = await api.post(api.here("pods"), {"metadata": {"name": "p"}})
    assert (answer.status, answer.body["reason"]) == (422, "Invalid")
    assert answer.body["message"] == 'Pod "p" is invalid: spec.containers: Required value'
    assert answer.body["details"]["causes"] == [
        {"reason": "FieldValueRequired", "message": "Required value", "field": "spec.containers"}
    ]


async def test_malformed_bodies_are_bad_requests(api: PlainClient) -> None:
    path = api.here("pods")
    bodies = (b"{bad", b"[]", b"", b'{"kind":"Node","apiVersion":"v1"}', b'{"spec":{"containers":"x"}}')
    for body in bodies:
        answer = await api.call("POST", path, body)
        assert (answer.status, answer.body["kind"], answer.body["reason"]) == (400, "Status", "BadRequest"), body


async def test_an_update_with_an_old_version_is_a_conflict(api: PlainClient) -> None:
    path = api.here("configmaps", "c")
    first = await api.post(api.here("configmaps"), {"metadata": {"name": "c"}, "data": {"a": "1"}})
    second = await api.put(path, {**first.body, "data": {"a": "2"}})
    assert second.status == 200
    assert int(second.version) > int(first.version)
    stale = await api.put(path, {**first.body, "data": {"a": "3"}})
    assert (stale.status, stale.body["reason"]) == (409, "Conflict")
    assert "the object has been modified" in stale.body["message"]
    assert (await api.get(path)).body["data"] == {"a": "2"}


async def test_an_update_without_a_version_wins(api: PlainClient) -> None:
    await api.post(api.here("configmaps"), {"metadata": {"name": "c"}, "data": {"a": "1"}})
    answer = await api.put(api.here("configmaps", "c"), {"metadata": {"name": "c"}, "data": {"a": "2"}})
    assert (answer.status, answer.body["data"]) == (200, {"a": "2"})


async def test_an_update_that_changes_nothing_keeps_the_version(api: PlainClient) -> None:
    first = await api.post(api.here("configmaps"), {"metadata": {"name": "c"}, "data": {"a": "1"}})
    again = await api.put(api.here("configmaps", "c"), {"metadata": {"name": "c"}, "data": {"a": "1"}})
    assert again.version == first.version


async def test_an_update_of_another_uid_is_a_conflict(api: PlainClient) -> None:
    await api.post(api.here("configmaps"), {"metadata": {"name": "c"}})
    answer = await api.put(api.here("configmaps", "c"), {"metadata": {"name": "c", "uid": "other"}})
    assert (answer.status, answer.body["reason"]) == (409, "Conflict")


async def test_the_name_in_the_body_is_the_one_in_the_path(api: PlainClient) -> None:
    await api.post(api.here("configmaps"), {"metadata": {"name": "c"}})
    answer = await api.put(api.here("configmaps", "c"), {"metadata": {"name": "d"}})
    assert answer.body["message"] == "the name of the object (d) does not match the name on the URL (c)"


async def test_status_and_the_rest_are_written_apart(api: PlainClient, make_pod: MakePod, node: str) -> None:
    await make_pod("p", node=node)
    path = api.here("pods", "p")
    assert (await api.patch(path, {"status": {"phase": "Running"}})).body["status"]["phase"] == "Pending"
    assert (await api.patch(f"{path}/status", {"status": {"phase": "Running"}})).status == 200
    assert (await api.get(path)).body["status"]["phase"] == "Running"


async def test_a_running_pod_cannot_be_given_another_node(api: PlainClient, make_pod: MakePod, node: str) -> None:
    await make_pod("p", node=node)
    answer = await api.patch(api.here("pods", "p"), {"spec": {"nodeName": "elsewhere"}})
    assert (answer.status, answer.body["reason"]) == (422, "Invalid")
    assert "pod updates may not change fields other than" in answer.body["message"]


async def test_deleting_a_bound_pod_leaves_it_terminating_until_grace_0(
    api: PlainClient, make_pod: MakePod, node: str
) -> None:
    uid = await make_pod("p", node=node, ready=True)
    path = api.here("pods", "p")
    first = await api.delete(path)
    assert (first.status, first.body["kind"], first.body["metadata"]["uid"]) == (200, "Pod", uid)
    assert first.body["metadata"]["deletionGracePeriodSeconds"] == 30
    assert (await api.get(path)).body["metadata"]["deletionTimestamp"]
    shorter = await api.delete(path, {"gracePeriodSeconds": 5})
    assert shorter.body["metadata"]["deletionGracePeriodSeconds"] == 5
    assert (await api.delete(path, {"gracePeriodSeconds": 0, "preconditions": {"uid": uid}})).status == 200
    assert (await api.get(path)).status == 404


async def test_deleting_an_unbound_pod_removes_it_at_once(api: PlainClient, make_pod: MakePod) -> None:
    await make_pod("p")
    assert (await api.delete(api.here("pods", "p"))).status == 200
    assert (await api.get(api.here("pods", "p"))).status == 404


async def test_a_pod_ends_on_the_wire_as_modified_then_deleted(api: PlainClient, make_pod: MakePod) -> None:
    version = (await api.get(api.here("pods"))).version
    await make_pod("p")
    await api.delete(api.here("pods", "p"))
    seen = []
    async for event in api.watch(api.here("pods"), resourceVersion=version):
        seen.append((event["type"], "deletionTimestamp" in event["object"]["metadata"]))
        if event["type"] == "DELETED":
            break
    assert seen == [("ADDED", False), ("MODIFIED", True), ("DELETED", True)]


async def test_deletion_preconditions_hold_or_conflict(api: PlainClient, make_pod: MakePod, node: str) -> None:
    await make_pod("p", node=node)
    path = api.here("pods", "p")
    wrong = await api.delete(path, {"preconditions": {"uid": "other"}})
    assert (wrong.status, wrong.body["reason"]) == (409, "Conflict")
    assert "does not match the UID in record" in wrong.body["message"]
    old = await api.delete(path, {"preconditions": {"resourceVersion": "1"}})
    assert (old.status, old.body["reason"]) == (409, "Conflict")
    assert "deletionTimestamp" not in (await api.get(path)).body["metadata"]


async def test_deleting_other_kinds_answers_with_a_status(api: PlainClient) -> None:
    created = await api.post(api.here("configmaps"), {"metadata": {"name": "c"}})
    answer = await api.delete(api.here("configmaps", "c"))
    assert (answer.status, answer.body["kind"], answer.body["status"]) == (200, "Status", "Success")
    assert answer.body["details"] == {"name": "c", "kind": "configmaps", "uid": created.body["metadata"]["uid"]}


async def test_a_finalizer_holds_an_object_until_it_is_removed(api: PlainClient) -> None:
    body = {"metadata": {"name": "c", "finalizers": ["example.com/hold"]}}
    await api.post(api.here("configmaps"), body)
    path = api.here("configmaps", "c")
    await api.delete(path)
    assert (await api.get(path)).body["metadata"]["deletionTimestamp"]
    await api.patch(path, {"metadata": {"finalizers": None}})
    assert (await api.get(path)).status == 404


async def test_a_collection_is_deleted_by_selector(api: PlainClient) -> None:
    for name, label in (("a", "x"), ("b", "x"), ("c", "y")):
        await api.post(api.here("configmaps"), {"metadata": {"name": name, "labels": {"l": label}}})
    answer = await api.delete(api.here("configmaps"), labelSelector="l=x")
    assert answer.status == 200
    assert (await api.get(api.here("configmaps"), labelSelector="l")).names == ["c"]


async def test_dry_run_changes_nothing(api: PlainClient) -> None:
    answer = await api.call("POST", api.here("configmaps"), {"metadata": {"name": "c"}}, dryRun="All")
    assert answer.status == 201
    assert (await api.get(api.here("configmaps", "c"))).status == 404


async def test_unknown_kinds_and_methods(api: PlainClient) -> None:
    unknown = await api.get("/api/v1/widgets")
    assert (unknown.status, unknown.body["reason"]) == (404, "NotFound")
    wrong = await api.put(api.here("pods"), {})
    assert (wrong.status, wrong.body["reason"]) == (405, "MethodNotAllowed")
