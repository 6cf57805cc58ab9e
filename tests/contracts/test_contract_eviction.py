"""pods/eviction and disruption budgets: the answers that decide whether a move may go on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from loadtests.embedded.plain_client import Answer, PlainClient

MakePod = Callable[..., Awaitable[str]]
POLICY = "apis/policy/v1"


async def _evict(api: PlainClient, name: str, **options: Any) -> Answer:
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": name, "namespace": api.namespace},
        "deleteOptions": options,
    }
    return await api.post(api.here("pods", f"{name}/eviction"), body)


async def _budget(api: PlainClient, name: str = "budget", app: str = "app", **spec: Any) -> str:
    body = {"metadata": {"name": name}, "spec": {"selector": {"matchLabels": {"app": app}}, **spec}}
    created = await api.post(api.here("poddisruptionbudgets", group=POLICY), body)
    assert created.status == 201, created.body
    return api.here("poddisruptionbudgets", name, group=POLICY)


async def _settled(api: PlainClient, path: str, healthy: int) -> dict[str, Any]:
    answer = await api.eventually(
        lambda: api.get(path),
        lambda found: (
            found.body["status"].get("observedGeneration") == found.body["metadata"]["generation"]
            and found.body["status"]["currentHealthy"] == healthy
        ),
    )
    status: dict[str, Any] = answer.body["status"]
    return status


async def test_an_eviction_is_a_graceful_deletion(api: PlainClient, make_pod: MakePod, node: str) -> None:
    uid = await make_pod("p", node=node, ready=True)
    answer = await _evict(api, "p", preconditions={"uid": uid})
    assert (answer.status, answer.body["kind"], answer.body["status"]) == (201, "Status", "Success")
    pod = (await api.get(api.here("pods", "p"))).body
    assert pod["metadata"]["deletionTimestamp"]
    assert pod["metadata"]["deletionGracePeriodSeconds"] == 30
    conditions = {known["type"]: known for known in pod["status"]["conditions"]}
    assert conditions["DisruptionTarget"]["reason"] == "EvictionByEvictionAPI"


async def test_the_uid_is_a_precondition(api: PlainClient, make_pod: MakePod, node: str) -> None:
    await make_pod("p", node=node, ready=True)
    answer = await _evict(api, "p", preconditions={"uid": "other"})
    assert (answer.status, answer.body["reason"]) == (409, "Conflict")
    assert "the UID in the precondition (other) does not match the UID in record" in answer.body["message"]
    assert "deletionTimestamp" not in (await api.get(api.here("pods", "p"))).body["metadata"]


async def test_a_pod_that_is_gone_is_not_found(api: PlainClient) -> None:
    answer = await _evict(api, "nope")
    assert (answer.status, answer.body["message"]) == (404, 'pods "nope" not found')


async def test_the_name_has_to_agree(api: PlainClient, make_pod: MakePod, node: str) -> None:
    await make_pod("p", node=node, ready=True)
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "q"}}
    answer = await api.post(api.here("pods", "p/eviction"), body)
    assert (answer.status, answer.body["reason"]) == (400, "BadRequest")


async def test_a_budget_without_room_refuses_with_429(api: PlainClient, make_pod: MakePod, node: str) -> None:
    for name in ("a", "b"):
        await make_pod(name, node=node, ready=True)
    path = await _budget(api, minAvailable=2)
    status = await _settled(api, path, healthy=2)
    assert (status["disruptionsAllowed"], status["desiredHealthy"], status["expectedPods"]) == (0, 2, 2)
    answer = await _evict(api, "a")
    assert (answer.status, answer.body["reason"], answer.body["code"]) == (429, "TooManyRequests", 429)
    assert answer.body["message"] == "Cannot evict pod as it would violate the pod's disruption budget."
    assert answer.body["details"]["causes"] == [
        {
            "reason": "DisruptionBudget",
            "message": "The disruption budget budget needs 2 healthy pods and has 2 currently",
        }
    ]
    assert "Retry-After" not in answer.headers
    assert "deletionTimestamp" not in (await api.get(api.here("pods", "a"))).body["metadata"]


async def test_a_budget_is_asked_before_the_precondition(api: PlainClient, make_pod: MakePod, node: str) -> None:
    await make_pod("a", node=node, ready=True)
    await _settled(api, await _budget(api, minAvailable=1), healthy=1)
    assert (await _evict(api, "a", preconditions={"uid": "other"})).status == 429


async def test_a_budget_is_spent_by_each_eviction(api: PlainClient, make_pod: MakePod, node: str) -> None:
    for name in ("a", "b", "c"):
        await make_pod(name, node=node, ready=True)
    path = await _budget(api, minAvailable=2)
    assert (await _settled(api, path, healthy=3))["disruptionsAllowed"] == 1
    assert (await _evict(api, "a")).status == 201
    assert (await _evict(api, "b")).status == 429
    status = await _settled(api, path, healthy=2)
    assert status["disruptionsAllowed"] == 0
    allowed = {known["type"]: known["status"] for known in status["conditions"]}
    assert allowed == {"DisruptionAllowed": "False"}


async def test_an_eviction_of_another_pod_spends_the_budget_all_the_same(
    api: PlainClient, make_pod: MakePod, node: str
) -> None:
    for name in ("a", "b"):
        await make_pod(name, node=node, ready=True)
    await _settled(api, await _budget(api, minAvailable=1), healthy=2)
    assert (await _evict(api, "a", preconditions={"uid": "other"})).status == 409
    assert (await _evict(api, "b")).status == 429


async def test_several_budgets_for_one_pod_are_an_error_that_stays(
    api: PlainClient, make_pod: MakePod, node: str
) -> None:
    await make_pod("a", node=node, ready=True)
    for name in ("one", "two"):
        await _settled(api, await _budget(api, name, minAvailable=0), healthy=1)
    answer = await _evict(api, "a")
    assert (answer.status, answer.body["code"]) == (500, 500)
    why = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
    assert answer.body["message"] == why
    assert "reason" not in answer.body


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
async def test_a_finished_pod_needs_no_budget(api: PlainClient, make_pod: MakePod, node: str, phase: str) -> None:
    await make_pod("keeper", node=node, ready=True)
    await make_pod("done", node=node, ready=False)
    await api.patch(api.here("pods", "done/status"), {"status": {"phase": phase}})
    await _settled(api, await _budget(api, minAvailable=2), healthy=1)
    assert (await _evict(api, "done")).status == 201
    assert (await api.get(api.here("pods", "done"))).status == 404


async def test_a_pending_pod_needs_no_budget(api: PlainClient, make_pod: MakePod) -> None:
    await make_pod("waiting")
    await _settled(api, await _budget(api, minAvailable=1), healthy=0)
    assert (await _evict(api, "waiting")).status == 201


@pytest.mark.parametrize(
    ("minimum", "policy", "expected"),
    [
        (1, "IfHealthyBudget", 201),
        (2, "IfHealthyBudget", 429),
        (2, "AlwaysAllow", 201),
        (2, None, 429),
    ],
)
async def test_a_pod_that_is_not_ready_may_go_when_the_budget_is_met_or_says_so(
    api: PlainClient, make_pod: MakePod, node: str, minimum: int, policy: str | None, expected: int
) -> None:
    await make_pod("healthy", node=node, ready=True)
    await make_pod("sick", node=node, ready=False)
    spec = {"unhealthyPodEvictionPolicy": policy} if policy else {}
    await _settled(api, await _budget(api, minAvailable=minimum, **spec), healthy=1)
    assert (await _evict(api, "sick")).status == expected


async def test_a_percentage_counts_the_scale_of_the_owner(api: PlainClient, node: str) -> None:
    template = {"metadata": {"labels": {"app": "app"}}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
    template["spec"]["schedulerName"] = "nobody"  # type: ignore[index]
    spec = {"replicas": 3, "selector": {"matchLabels": {"app": "app"}}, "template": template}
    await api.post(api.here("replicasets", group="apis/apps/v1"), {"metadata": {"name": "rs"}, "spec": spec})
    pods = await api.eventually(lambda: api.get(api.here("pods")), lambda found: len(found.names) == 3)
    for name in pods.names:
        binding = {"metadata": {"name": name}, "target": {"kind": "Node", "name": node}}
        await api.post(api.here("pods", f"{name}/binding"), binding)
        ready = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
        await api.patch(api.here("pods", f"{name}/status"), ready)
    for name, rule, desired in (("min", {"minAvailable": "50%"}, 2), ("max", {"maxUnavailable": "34%"}, 1)):
        path = await _budget(api, name, **rule)
        status = await _settled(api, path, healthy=3)
        assert (status["expectedPods"], status["desiredHealthy"]) == (3, desired)
        await api.delete(path)


async def test_eviction_with_dry_run_only_asks(api: PlainClient, make_pod: MakePod, node: str) -> None:
    await make_pod("a", node=node, ready=True)
    assert (await _evict(api, "a", dryRun=["All"])).status == 201
    assert "deletionTimestamp" not in (await api.get(api.here("pods", "a"))).body["metadata"]
