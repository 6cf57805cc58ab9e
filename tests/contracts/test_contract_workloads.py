"""Deployments and replica sets: replacements, scale, deletion cost, ownership."""

from __future__ import annotations

from typing import Any

from loadtests.embedded.plain_client import STRATEGIC, Answer, PlainClient

APPS = "apis/apps/v1"
COST = "controller.kubernetes.io/pod-deletion-cost"


def _spec(replicas: int, app: str = "web") -> dict[str, Any]:
    containers = [{"name": "c", "image": "lab/none:1"}]
    template = {"metadata": {"labels": {"app": app}}, "spec": {"containers": containers, "schedulerName": "nobody"}}
    return {"replicas": replicas, "selector": {"matchLabels": {"app": app}}, "template": template}


async def _pods(api: PlainClient, count: int) -> Answer:
    """The pods once there are that many which are not on their way out."""
    return await api.eventually(
        lambda: api.get(api.here("pods")),
        lambda found: sum("deletionTimestamp" not in pod["metadata"] for pod in found.body["items"]) == count,
    )


async def _deploy(api: PlainClient, replicas: int) -> list[dict[str, Any]]:
    body = {"metadata": {"name": "web"}, "spec": _spec(replicas)}
    assert (await api.post(api.here("deployments", group=APPS), body)).status == 201
    items: list[dict[str, Any]] = (await _pods(api, replicas)).body["items"]
    return items


async def _run(api: PlainClient, name: str, node: str, *, ready: bool = True) -> None:
    binding = {"metadata": {"name": name}, "target": {"kind": "Node", "name": node}}
    assert (await api.post(api.here("pods", f"{name}/binding"), binding)).status == 201
    condition = {"type": "Ready", "status": "True" if ready else "False"}
    status = {"status": {"phase": "Running", "conditions": [condition]}}
    assert (await api.patch(api.here("pods", f"{name}/status"), status, STRATEGIC)).status == 200


async def test_a_deployment_makes_a_replica_set_and_that_makes_pods(api: PlainClient) -> None:
    pods = await _deploy(api, 2)
    (replica_set,) = (await api.get(api.here("replicasets", group=APPS))).body["items"]
    owner = replica_set["metadata"]["ownerReferences"][0]
    assert (owner["kind"], owner["name"], owner["controller"]) == ("Deployment", "web", True)
    template_hash = replica_set["metadata"]["labels"]["pod-template-hash"]
    assert replica_set["metadata"]["name"] == f"web-{template_hash}"
    for pod in pods:
        assert pod["metadata"]["name"].startswith(f"web-{template_hash}-")
        assert pod["metadata"]["labels"] == {"app": "web", "pod-template-hash": template_hash}
        owner = pod["metadata"]["ownerReferences"][0]
        assert (owner["kind"], owner["uid"]) == ("ReplicaSet", replica_set["metadata"]["uid"])
        assert owner["controller"] is True


async def test_a_pod_that_goes_is_replaced_by_one_of_the_same_owner_and_hash(api: PlainClient, node: str) -> None:
    (pod,) = await _deploy(api, 1)
    name = pod["metadata"]["name"]
    await _run(api, name, node)
    await api.delete(api.here("pods", name))
    found = await _pods(api, 1)
    (new,) = [item for item in found.body["items"] if "deletionTimestamp" not in item["metadata"]]
    assert new["metadata"]["name"] != name
    assert new["metadata"]["ownerReferences"] == pod["metadata"]["ownerReferences"]
    assert new["metadata"]["labels"] == pod["metadata"]["labels"]


async def test_status_counts_replicas_ready_and_available(api: PlainClient, node: str) -> None:
    first, _ = await _deploy(api, 2)
    await _run(api, first["metadata"]["name"], node)
    path = api.here("deployments", "web", group=APPS)
    answer = await api.eventually(lambda: api.get(path), lambda found: found.body["status"].get("readyReplicas") == 1)
    status = answer.body["status"]
    assert (status["replicas"], status["updatedReplicas"], status["availableReplicas"]) == (2, 2, 1)
    assert status["observedGeneration"] == answer.body["metadata"]["generation"]


async def test_scale_is_read_and_written(api: PlainClient) -> None:
    await _deploy(api, 1)
    path = api.here("deployments", "web/scale", group=APPS)
    scale = (await api.get(path)).body
    assert (scale["kind"], scale["apiVersion"], scale["spec"]) == ("Scale", "autoscaling/v1", {"replicas": 1})
    assert scale["status"]["selector"] == "app=web"

    async def rescale() -> Answer:
        return await api.put(path, {**(await api.get(path)).body, "spec": {"replicas": 3}})

    # The controllers write, too: until they are done a version may be old by the time it is sent back.
    scaled = await api.eventually(rescale, lambda answer: answer.status == 200)
    assert scaled.body["spec"] == {"replicas": 3}
    await _pods(api, 3)
    assert (await api.patch(path, {"spec": {"replicas": 2}})).status == 200
    await _pods(api, 2)


async def test_a_scale_with_an_old_version_is_a_conflict(api: PlainClient) -> None:
    await _deploy(api, 1)
    path = api.here("deployments", "web/scale", group=APPS)
    metadata = {"name": "web", "namespace": api.namespace, "resourceVersion": "1"}
    answer = await api.put(path, {"metadata": metadata, "spec": {"replicas": 2}})
    assert (answer.status, answer.body["reason"]) == (409, "Conflict")


async def test_scaling_down_takes_the_pod_with_the_lowest_deletion_cost(api: PlainClient, node: str) -> None:
    pods = [pod["metadata"]["name"] for pod in await _deploy(api, 3)]
    for name in pods:
        await _run(api, name, node)
    await api.patch(api.here("pods", pods[1]), {"metadata": {"annotations": {COST: "-10"}}})
    await api.patch(api.here("pods", pods[0]), {"metadata": {"annotations": {COST: "10"}}})
    await api.patch(api.here("deployments", "web/scale", group=APPS), {"spec": {"replicas": 2}})
    left = await _pods(api, 2)
    gone = [pod["metadata"]["name"] for pod in left.body["items"] if "deletionTimestamp" in pod["metadata"]]
    assert gone == [pods[1]]


async def test_a_pod_that_is_not_ready_goes_before_a_cheaper_one(api: PlainClient, node: str) -> None:
    pods = [pod["metadata"]["name"] for pod in await _deploy(api, 2)]
    await _run(api, pods[0], node, ready=True)
    await _run(api, pods[1], node, ready=False)
    await api.patch(api.here("pods", pods[0]), {"metadata": {"annotations": {COST: "-100"}}})
    await api.patch(api.here("deployments", "web/scale", group=APPS), {"spec": {"replicas": 1}})
    left = await _pods(api, 1)
    gone = [pod["metadata"]["name"] for pod in left.body["items"] if "deletionTimestamp" in pod["metadata"]]
    assert gone == [pods[1]]


async def test_a_pod_whose_labels_leave_the_selector_is_released(api: PlainClient) -> None:
    (pod,) = await _deploy(api, 1)
    name = pod["metadata"]["name"]
    await api.patch(api.here("pods", name), {"metadata": {"labels": {"app": "other"}}})
    await _pods(api, 2)
    released = await api.eventually(
        lambda: api.get(api.here("pods", name)), lambda found: "ownerReferences" not in found.body["metadata"]
    )
    assert released.body["metadata"]["labels"]["app"] == "other"


async def test_deleting_a_deployment_takes_its_replica_sets_and_pods(api: PlainClient) -> None:
    await _deploy(api, 2)
    await api.delete(api.here("deployments", "web", group=APPS), {"propagationPolicy": "Background"})
    await _pods(api, 0)
    found = await api.eventually(
        lambda: api.get(api.here("replicasets", group=APPS)), lambda answer: answer.names == []
    )
    assert found.status == 200


async def test_orphaning_leaves_the_pods(api: PlainClient) -> None:
    await api.post(api.here("replicasets", group=APPS), {"metadata": {"name": "rs"}, "spec": _spec(1)})
    await _pods(api, 1)
    path = api.here("replicasets", "rs", group=APPS)
    await api.delete(path, {"propagationPolicy": "Orphan"})
    await api.eventually(lambda: api.get(path), lambda found: found.status == 404)
    (pod,) = (await _pods(api, 1)).body["items"]
    assert "ownerReferences" not in pod["metadata"]


async def test_a_new_template_gets_a_replica_set_of_its_own(api: PlainClient) -> None:
    await _deploy(api, 1)
    patch = {"spec": {"template": {"metadata": {"annotations": {"rolled": "yes"}}}}}
    await api.patch(api.here("deployments", "web", group=APPS), patch)
    found = await api.eventually(
        lambda: api.get(api.here("replicasets", group=APPS)), lambda answer: len(answer.names) == 2
    )
    revisions = {item["metadata"]["annotations"]["deployment.kubernetes.io/revision"] for item in found.body["items"]}
    assert revisions == {"1", "2"}


async def test_a_selector_that_misses_the_template_is_refused(api: PlainClient) -> None:
    spec = {**_spec(1), "selector": {"matchLabels": {"app": "other"}}}
    answer = await api.post(api.here("deployments", group=APPS), {"metadata": {"name": "web"}, "spec": spec})
    assert (answer.status, answer.body["reason"]) == (422, "Invalid")
    assert answer.body["details"]["causes"][0]["field"] == "spec.template.metadata.labels"
