"""Events, leases, namespaces, priority classes and discovery: the small kinds the reactor leans on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from loadtests.embedded.plain_client import PlainClient

MakePod = Callable[..., Awaitable[str]]
LEASES = "apis/coordination.k8s.io/v1"


async def _event(api: PlainClient, name: str, pod: str, uid: str, reason: str = "Unhealthy") -> int:
    body = {
        "metadata": {"name": name},
        "involvedObject": {
            "kind": "Pod",
            "name": pod,
            "namespace": api.namespace,
            "uid": uid,
            "fieldPath": "spec.containers{c}",
        },
        "reason": reason,
        "message": "Liveness probe failed",
        "type": "Warning",
        "count": 1,
        "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": "2026-01-01T00:00:00Z",
        "source": {"component": "kubelet"},
    }
    return (await api.post(api.here("events"), body)).status


async def test_events_are_found_by_what_they_are_about(api: PlainClient, make_pod: MakePod) -> None:
    uid = await make_pod("p")
    other = await make_pod("q")
    assert await _event(api, "e1", "p", uid) == 201
    assert await _event(api, "e2", "q", other) == 201
    assert await _event(api, "e3", "p", uid, reason="Killing") == 201
    for selector, expected in (
        (f"involvedObject.uid={uid},reason=Unhealthy", ["e1"]),
        (f"involvedObject.kind=Pod,involvedObject.name=q,involvedObject.namespace={api.namespace}", ["e2"]),
        ("involvedObject.fieldPath=spec.containers{c},type=Warning,reason=Killing", ["e3"]),
        ("type=Normal", []),
    ):
        assert (await api.get(api.here("events"), fieldSelector=selector)).names == expected, selector


async def test_a_repeated_event_is_a_patch_of_its_count(api: PlainClient, make_pod: MakePod) -> None:
    await _event(api, "e1", "p", await make_pod("p"))
    patch = {"count": 2, "lastTimestamp": "2026-01-01T00:00:09Z"}
    answer = await api.patch(api.here("events", "e1"), patch)
    assert (answer.status, answer.body["count"]) == (200, 2)
    assert answer.body["firstTimestamp"] == "2026-01-01T00:00:00Z"
    assert answer.body["eventTime"] is None


async def test_an_event_lives_in_the_namespace_of_its_object(api: PlainClient) -> None:
    body = {"metadata": {"name": "e"}, "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"}}
    answer = await api.post(api.here("events"), body)
    assert (answer.status, answer.body["reason"]) == (422, "Invalid")


async def test_a_lease_is_taken_by_compare_and_swap(api: PlainClient) -> None:
    path = api.here("leases", "leader", group=LEASES)
    spec = {"holderIdentity": "a", "leaseDurationSeconds": 15, "renewTime": "2026-01-01T00:00:00.000000Z"}
    created = await api.post(api.here("leases", group=LEASES), {"metadata": {"name": "leader"}, "spec": spec})
    assert created.status == 201
    renewed = await api.put(path, {**created.body, "spec": {**spec, "renewTime": "2026-01-01T00:00:05.000000Z"}})
    assert renewed.status == 200
    stolen = await api.put(path, {**created.body, "spec": {**spec, "holderIdentity": "b"}})
    assert (stolen.status, stolen.body["reason"]) == (409, "Conflict")
    assert (await api.get(path)).body["spec"]["holderIdentity"] == "a"


async def test_a_lease_cannot_be_updated_without_a_version(api: PlainClient) -> None:
    await api.post(api.here("leases", group=LEASES), {"metadata": {"name": "leader"}, "spec": {}})
    answer = await api.put(api.here("leases", "leader", group=LEASES), {"metadata": {"name": "leader"}, "spec": {}})
    assert (answer.status, answer.body["reason"]) == (422, "Invalid")
    assert "metadata.resourceVersion: Invalid value: 0: must be specified for an update" in answer.body["message"]


async def test_the_namespaces_of_every_cluster_exist(api: PlainClient) -> None:
    names = (await api.get("/api/v1/namespaces")).names
    assert {"default", "kube-system", "kube-node-lease"} <= set(names)
    labels = (await api.get(f"/api/v1/namespaces/{api.namespace}")).body["metadata"]["labels"]
    assert labels["kubernetes.io/metadata.name"] == api.namespace


async def test_a_namespace_goes_with_what_is_in_it(api: PlainClient) -> None:
    await api.post(api.here("configmaps"), {"metadata": {"name": "c"}})
    path = f"/api/v1/namespaces/{api.namespace}"
    await api.delete(path)
    gone = await api.eventually(lambda: api.get(path), lambda found: found.status == 404)
    assert gone.body["reason"] == "NotFound"


async def test_a_priority_class_gives_its_value_to_pods(api: PlainClient) -> None:
    name = f"high-{api.namespace}"
    path = "/apis/scheduling.k8s.io/v1/priorityclasses"
    assert (await api.post(path, {"metadata": {"name": name}, "value": 1000})).status == 201
    spec = {"containers": [{"name": "c", "image": "x"}], "priorityClassName": name}
    body = {"metadata": {"name": "p"}, "spec": spec}
    # The server's own admission watches the classes: it may hear of a new one a moment later.
    pod = await api.eventually(lambda: api.post(api.here("pods"), body), lambda answer: answer.status == 201)
    assert pod.body["spec"]["priority"] == 1000
    await api.delete(f"{path}/{name}")
    unknown = await api.post(api.here("pods"), {"metadata": {"name": "q"}, "spec": {**spec, "priorityClassName": "no"}})
    assert (unknown.status, unknown.body["reason"]) == (403, "Forbidden")
    assert unknown.body["message"] == 'pods "q" is forbidden: no PriorityClass with name no was found'


async def test_the_system_priority_classes_exist(api: PlainClient) -> None:
    answer = await api.get("/apis/scheduling.k8s.io/v1/priorityclasses/system-node-critical")
    assert answer.body["value"] == 2_000_001_000


async def test_discovery_names_the_kinds_we_use(api: PlainClient) -> None:
    core = {entry["name"]: entry for entry in (await api.get("/api/v1")).body["resources"]}
    assert {"nodes", "pods", "pods/binding", "pods/eviction", "pods/status", "events", "configmaps"} <= set(core)
    assert core["pods"]["shortNames"] == ["po"]
    assert core["nodes"]["namespaced"] is False
    groups = {group["name"] for group in (await api.get("/apis")).body["groups"]}
    assert {"apps", "batch", "policy", "coordination.k8s.io", "scheduling.k8s.io", "storage.k8s.io"} <= groups
    storage = {entry["name"]: entry for entry in (await api.get("/apis/storage.k8s.io/v1")).body["resources"]}
    assert {"csinodes", "volumeattachments"} <= set(storage)
    assert storage["csinodes"]["namespaced"] is False
    version = (await api.get("/version")).body
    assert version["gitVersion"].startswith("v1.")
    assert (await api.get("/readyz")).body == {"text": "ok"}


async def test_whether_one_may_can_be_asked(api: PlainClient) -> None:
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    spec = {"resourceAttributes": {"verb": "create", "resource": "pods", "subresource": "eviction"}}
    answer = await api.post(path, {"spec": spec})
    assert (answer.status, answer.body["status"]["allowed"]) == (201, True)
