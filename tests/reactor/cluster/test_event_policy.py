"""Events are authentic only while the policy denies them to all but kubelets, and those from before it are gone."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import pytest

from reactor.background.event_policy_check import EventPolicyCheck
from reactor.cluster.api import ApiRequest, ApiResponse
from reactor.cluster.event_policy import events_authentic
from reactor.errors import ClusterError
from tests.support.clock import VirtualClock
from tests.support.rig import Rig

CREATED, LATER = "2023-11-14T00:00:00Z", 1_700_000_000.0
POLICY = {"metadata": {"creationTimestamp": CREATED}, "spec": {"failurePolicy": "Fail"}}
BINDING = {
    "metadata": {"creationTimestamp": CREATED},
    "spec": {"policyName": "rematch-events", "validationActions": ["Deny", "Audit"]},
}


class Answers:
    def __init__(self, policy: Any, binding: Any) -> None:
        self.policy, self.binding = policy, binding

    async def send(self, request: ApiRequest) -> ApiResponse:
        found = self.binding if "bindings/" in request.path else self.policy
        if isinstance(found, int):
            return ApiResponse(found, b"{}")
        return ApiResponse(200, json.dumps(found).encode())


def without(tree: Any, *path: str, value: Any = None) -> Any:
    changed = deepcopy(tree)
    inner = changed
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return changed


async def authentic(policy: Any = POLICY, binding: Any = BINDING, now: float = LATER) -> bool:
    return await events_authentic(Answers(policy, binding), now)  # type: ignore[arg-type]


async def test_with_policy_and_binding_events_are_authentic() -> None:
    assert await authentic()


@pytest.mark.parametrize(
    ("policy", "binding"),
    [
        (404, BINDING),
        (POLICY, 404),
        (without(POLICY, "spec", "failurePolicy", value="Ignore"), BINDING),
        (POLICY, without(BINDING, "spec", "validationActions", value=["Warn"])),
        (POLICY, without(BINDING, "spec", "policyName", value="another")),
        (POLICY, without(BINDING, "spec", "matchResources", value={"namespaceSelector": {"matchLabels": {"a": "b"}}})),
    ],
)
async def test_a_policy_that_is_not_in_force_everywhere_is_none(policy: Any, binding: Any) -> None:
    assert not await authentic(policy, binding)


async def test_events_from_before_the_policy_may_be_anybodys() -> None:
    young = without(BINDING, "metadata", "creationTimestamp", value="2023-11-14T22:00:00Z")
    assert not await authentic(binding=young)


async def test_what_cannot_be_read_is_an_error_and_not_trusted() -> None:
    with pytest.raises(ClusterError):
        await authentic(403)
    with pytest.raises(ClusterError):
        await authentic([])
    rig, clock = Rig(), VirtualClock()
    answers = Answers(POLICY, BINDING)
    check = EventPolicyCheck(answers, rig.state, clock)  # type: ignore[arg-type]
    await check.step()
    assert rig.snapshot().events_authentic
    answers.policy = 403
    await check.step()
    assert not rig.snapshot().events_authentic
