"""pods/binding: once, to the right pod, or a conflict."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from loadtests.embedded.plain_client import Answer, PlainClient

MakePod = Callable[..., Awaitable[str]]


async def _bind(api: PlainClient, name: str, node: str, **metadata: str) -> Answer:
    body = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name, **metadata},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    }
    return await api.post(api.here("pods", f"{name}/binding"), body)


async def test_binding_sets_the_node_and_says_scheduled(api: PlainClient, make_pod: MakePod, node: str) -> None:
    uid = await make_pod("p")
    answer = await _bind(api, "p", node, uid=uid)
    assert (answer.status, answer.body["kind"], answer.body["status"]) == (201, "Status", "Success")
    pod = (await api.get(api.here("pods", "p"))).body
    assert pod["spec"]["nodeName"] == node
    assert [(known["type"], known["status"]) for known in pod["status"]["conditions"]] == [("PodScheduled", "True")]


async def test_a_bound_pod_cannot_be_bound_again(api: PlainClient, make_pod: MakePod, node: str) -> None:
    await make_pod("p")
    await _bind(api, "p", node)
    again = await _bind(api, "p", "elsewhere")
    assert (again.status, again.body["reason"]) == (409, "Conflict")
    why = f'Operation cannot be fulfilled on pods/binding "p": pod p is already assigned to node "{node}"'
    assert again.body["message"] == why
    assert again.body["details"] == {"name": "p", "kind": "pods/binding"}


async def test_the_uid_in_a_binding_is_a_precondition(api: PlainClient, make_pod: MakePod, node: str) -> None:
    await make_pod("p")
    answer = await _bind(api, "p", node, uid="other")
    assert (answer.status, answer.body["reason"]) == (409, "Conflict")
    assert "Precondition failed: UID in precondition: other" in answer.body["message"]
    assert "nodeName" not in (await api.get(api.here("pods", "p"))).body["spec"]


async def test_the_version_in_a_binding_is_a_precondition(api: PlainClient, make_pod: MakePod, node: str) -> None:
    await make_pod("p")
    assert (await _bind(api, "p", node, resourceVersion="1")).status == 409


async def test_a_pod_that_is_not_there_cannot_be_bound(api: PlainClient, node: str) -> None:
    assert (await _bind(api, "nope", node)).status == 404


async def test_a_gated_pod_cannot_be_bound(api: PlainClient, node: str) -> None:
    spec = {"containers": [{"name": "c", "image": "x"}], "schedulingGates": [{"name": "example.com/wait"}]}
    await api.post(api.here("pods"), {"metadata": {"name": "p"}, "spec": spec})
    answer = await _bind(api, "p", node)
    assert (answer.status, answer.body["reason"]) == (409, "Conflict")
    assert "pod p has non-empty .spec.schedulingGates" in answer.body["message"]


async def test_a_binding_of_another_name_or_without_a_target_is_refused(
    api: PlainClient, make_pod: MakePod, node: str
) -> None:
    await make_pod("p")
    other = {"metadata": {"name": "q"}, "target": {"kind": "Node", "name": node}}
    assert (await api.post(api.here("pods", "p/binding"), other)).status == 400
    nowhere = {"metadata": {"name": "p"}, "target": {"kind": "Node"}}
    answer = await api.post(api.here("pods", "p/binding"), nowhere)
    assert (answer.status, answer.body["message"]) == (500, "target.name: Required value")
