"""The page of a pod."""

from __future__ import annotations

from reactor.decision.decide import Trigger, decide
from reactor.web.pod_page import placement_now
from tests.support.cluster import GIB, make_eligibility, make_node, make_owner, make_pod, make_settings, make_snapshot


def test_an_unhappy_pod_that_waits_is_not_explained_as_happy() -> None:
    """For a rematch it counts as happy; who asks about it sees that it is unhappy."""
    pod = make_pod("web-1", node="n1", owner=make_owner())
    snapshot = make_snapshot(
        [pod],
        [make_node("n1", cpu=1.0), make_node("n2")],
        failures={"web-1": 2.0},
        usage={"web-1": (0.95, GIB)},
        node_usage={"n1": (0.95, GIB), "n2": (0.1, GIB)},
    )
    eligibility = make_eligibility(snapshot, make_settings(decision={"minimum_failures": 3}))
    assert not decide(eligibility, Trigger.DEMAND).unhappy

    placement = placement_now(pod, eligibility)

    assert placement is not None
    assert any(reason.startswith("unhappy on n1") for reason in placement.why_here)
    assert not any(reason.startswith("happy") for reason in placement.why_here)
