"""Whether a surge can start now, and whether its second try may be a hard hint."""

from __future__ import annotations

from typing import Any

import pytest

from matching.problem import Rules, Spread, Taint
from reactor.cluster.surge_writes import OwnerNow
from reactor.execution.surge_checks import may_pin, why_no_surge
from reactor.state.steering import SteeringStatus
from tests.support.cluster import make_node, make_pod, make_settings, make_view, make_workload

WEB = make_pod("web-1")
SETTLED = OwnerNow("1", 1, 1, settled=True)
WORKS = SteeringStatus(policy_works=True)


def hindrance(owner: OwnerNow | None = SETTLED, **workload: Any) -> str:
    assert WEB.owner is not None
    view = make_view([WEB], [], workloads=[make_workload(WEB.owner, **workload)])
    return why_no_surge(WEB, view, owner, "rematch")


def test_a_settled_owner_can_be_surged() -> None:
    assert hindrance() == ""
    assert hindrance(surge="another-journal/m1/0") == ""


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"owner": None}, "gone"),
        ({"owner": OwnerNow("1", 1, 1, settled=False)}, "scaled right now"),
        ({"owner": OwnerNow("1", 1, 1, settled=True, paused=True)}, "paused"),
        ({"owner": OwnerNow("1", 1, 2, settled=True)}, "scaled right now"),
        ({"replicas": 2}, "scaled right now"),
        ({"surge": "rematch/m1/0"}, "an earlier surge"),
    ],
)
def test_a_surge_does_not_start_while_its_owner_changes(given: dict[str, Any], said: str) -> None:
    assert said in hindrance(**given)


def test_a_pod_is_pinned_neither_with_spread_nor_beside_an_autoscaler() -> None:
    theirs = make_pod("web-1", scheduler_name="default-scheduler")
    view = make_view([theirs], [make_node("n1")])
    spread = make_pod("web-1", scheduler_name="default-scheduler", rules=Rules(spread=(Spread("zone"),)))
    autoscaled = make_view([theirs], [make_node("n1", labels={"karpenter.sh/nodepool": "a"})])
    shrinking = make_view(
        [theirs], [make_node("n1", taints=(Taint("DeletionCandidateOfClusterAutoscaler", "PreferNoSchedule"),))]
    )
    pins = make_settings(placement={"pinsBesideAutoscaler": True})

    assert may_pin(theirs, view, make_settings(), WORKS)
    assert not may_pin(WEB, view, make_settings(), WORKS)
    assert not may_pin(theirs, view, make_settings(), SteeringStatus())
    assert not may_pin(spread, view, make_settings(), WORKS)
    assert not may_pin(theirs, autoscaled, make_settings(), WORKS)
    assert not may_pin(theirs, shrinking, make_settings(), WORKS)
    assert may_pin(theirs, autoscaled, pins, WORKS)

    by_extender = make_settings(placement={"steering": "extender"})
    assert may_pin(spread, autoscaled, by_extender, SteeringStatus(extender_problem="")), "for one decision only"
    assert not may_pin(theirs, view, by_extender, WORKS)
