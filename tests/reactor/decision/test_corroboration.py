"""Events alone start no rematch; and no pod moves for an annotation in another namespace."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from reactor.cluster.records import Container, Pod, Probe
from reactor.decision.decide import Decision, Wait, decide
from reactor.decision.wait_reasons import Reason
from reactor.planning.problems import rematch_problem
from reactor.settings.model import TrustEvents
from reactor.signals.probe_counts import ProbeCounts
from reactor.state.happiness import PodHappiness
from reactor.state.snapshot import Snapshot
from reactor.state.thresholds import Threshold, ThresholdSource
from tests.support.clock import NOW
from tests.support.cluster import GIB, make_eligibility, make_node, make_pod, make_settings, make_snapshot

CROWDED, HALF, IDLE = (3.9, GIB), (2.0, GIB), (0.4, GIB)


def by_events(pods: list[Pod], *, counted: float = 0.0, **more: Any) -> Snapshot:
    """Pods with ten failures that Events report, on a node n1 that is used by half; n2 is idle."""
    facts: dict[str, Any] = {
        "failures": {pod.name: 10.0 for pod in pods},
        "usage": {pod.name: (0.5, GIB) for pod in pods},
        "node_usage": {"n1": more.pop("n1", HALF), "n2": IDLE},
    }
    nodes = more.pop("nodes", [make_node("n1"), make_node("n2")])
    snapshot = make_snapshot(pods, nodes, **facts)
    known = {
        uid: replace(each, counts=ProbeCounts(each.counts.successes, each.counts.failures, counted))
        for uid, each in snapshot.happiness.items()
    }
    return replace(snapshot, happiness=known, **more)


def decision_of(snapshot: Snapshot, **happiness: Any) -> Decision:
    """Whatever the cause may be: here it is about who says that the pod fails."""
    return decide(make_eligibility(snapshot, make_settings(happiness=happiness, decision={"placementProbability": 0})))


def with_container(**fields: Any) -> Pod:
    return make_pod(containers=(Container("srv", Probe(), started=NOW - 3600, **fields),))


def test_events_alone_start_no_rematch() -> None:
    decision = decision_of(by_events([make_pod()]))
    assert not decision.rematch
    (wait,) = decision.waits
    assert (wait.reason, wait.until) == (Reason.UNCORROBORATED, None)
    assert "policies.events=true" in wait.text
    assert "metrics.prometheus.url" in wait.text


@pytest.mark.parametrize(
    "snapshot",
    [
        by_events([make_pod()], n1=CROWDED),
        by_events([make_pod()], nodes=[make_node("n1", pressure=("MemoryPressure",)), make_node("n2")]),
        by_events([make_pod()], nodes=[make_node("n1", ready=False), make_node("n2")]),
        by_events([make_pod()], counted=2.0),
        by_events([with_container(restarts=1, terminated=NOW - 500)]),
        by_events([with_container(fails_readiness=True)]),
        by_events([make_pod()], events_authentic=True),
    ],
    ids=["crowded", "pressure", "not ready", "counters", "restart", "readiness", "policy"],
)
def test_events_with_another_sign_start_one(snapshot: Snapshot) -> None:
    assert decision_of(snapshot).rematch


@pytest.mark.parametrize(
    "snapshot",
    [
        by_events([make_pod()], counted=1.9),
        by_events([with_container(restarts=1, terminated=NOW - 700)]),
        by_events([with_container(restarts=1)]),
        by_events([with_container(restarts=0, terminated=NOW)]),
        by_events([make_pod(containers=(Container("srv", None, 3, NOW, NOW, True), Container("x", Probe())))]),
    ],
    ids=["too few counted", "old restart", "how it ended is not known", "no restart", "without liveness probe"],
)
def test_signs_that_are_none(snapshot: Snapshot) -> None:
    assert [wait.reason for wait in decision_of(snapshot).waits] == [Reason.UNCORROBORATED]


@pytest.mark.parametrize(
    ("trust", "policy", "trusted"),
    [
        (TrustEvents.ALWAYS, False, True),
        (TrustEvents.NEVER, True, False),
        (TrustEvents.AUTO, True, True),
        (TrustEvents.AUTO, False, False),
    ],
)
def test_whether_events_are_trusted_is_a_setting(trust: TrustEvents, policy: bool, trusted: bool) -> None:
    assert decision_of(by_events([make_pod()], events_authentic=policy), trust_events=trust).rematch is trusted


def annotated(value: float, threshold: float) -> PodHappiness:
    found = Threshold(threshold, ThresholdSource.POD_ANNOTATION, by_settings=0.9)
    return PodHappiness(ProbeCounts(0.0, 5.0, 5.0), value, found)


A1, A2 = make_pod("web-1", namespace="a"), make_pod("web-2", namespace="a")
B1, C1 = make_pod("api-1", namespace="b"), make_pod("db-1", namespace="c")
STRICT, BROKEN = annotated(0.95, 0.99), annotated(0.5, 0.99)


def mixed(a1: PodHappiness, b1: PodHappiness) -> Snapshot:
    return replace(by_events([A1, A2, B1, C1], n1=CROWDED), happiness={A1.uid: a1, B1.uid: b1})


def waits_for_others(decision: Decision) -> list[str]:
    return [wait.pod for wait in decision.waits if isinstance(wait, Wait) and wait.reason is Reason.OTHERS_FIRST]


def test_for_an_annotation_only_pods_of_its_namespace_move() -> None:
    eligibility = make_eligibility(mixed(STRICT, STRICT))
    decision = decide(eligibility)
    assert [one.pod for one in decision.unhappy] == ["a/web-1"]
    assert waits_for_others(decision) == ["b/api-1"]
    fixed = {pod.key: pod.fixed for pod in rematch_problem(eligibility, decision).pods}
    assert (fixed["a/web-1"], fixed["a/web-2"]) == ("", "")
    assert "only annotations in a" in fixed["b/api-1"]
    assert "only annotations in a" in fixed["c/db-1"]


def test_pods_that_are_unhappy_by_the_settings_come_first_and_may_move_any_pod() -> None:
    eligibility = make_eligibility(mixed(STRICT, BROKEN))
    decision = decide(eligibility)
    assert [one.pod for one in decision.unhappy] == ["b/api-1"]
    assert waits_for_others(decision) == ["a/web-1"]
    assert {pod.fixed for pod in rematch_problem(eligibility, decision).pods} == {""}


def test_a_setting_lets_annotations_move_pods_of_all_namespaces() -> None:
    settings = make_settings(decision={"cross_namespace_annotations": True})
    eligibility = make_eligibility(mixed(STRICT, STRICT), settings)
    decision = decide(eligibility)
    assert len(decision.unhappy) == 2
    assert {pod.fixed for pod in rematch_problem(eligibility, decision).pods} == {""}
