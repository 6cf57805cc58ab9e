"""Windows, durations in annotations, brakes and limits as reasons to wait; what a move's load is charged to."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from matching.problem import Options
from reactor.decision.causes import node_use
from reactor.decision.cooldowns import Cooldowns
from reactor.decision.eligibility import ALLOWED_NOW, PROTECTED, Eligibility
from reactor.decision.limits import RecentMoves, StartedMove
from reactor.decision.wait_reasons import Reason
from reactor.planning.problem_builder import ProblemBuilder
from tests.support.clock import NOW
from tests.support.cluster import GIB, make_eligibility, make_node, make_pod, make_settings, make_snapshot

NODES = [make_node("n1"), make_node("n2")]


def eligibility(annotations: dict[str, str], created: float = NOW - 3600, **more: object) -> Eligibility:
    pod = make_pod("web-1", annotations=annotations, created=created)
    return make_eligibility(make_snapshot([pod], NODES), make_settings(**more))


@pytest.mark.parametrize("key", ["rematch.io/do-not-move", "karpenter.sh/do-not-disrupt"])
@pytest.mark.parametrize(
    ("value", "protects", "until"),
    [
        ("true", True, None),
        ("false", False, None),
        ("2h", True, NOW + 3600),
        ("30m", False, None),
        ("maybe", True, None),
    ],
)
def test_an_annotation_protects_for_ever_or_for_a_time(
    key: str, value: str, *, protects: bool, until: float | None
) -> None:
    context = eligibility({key: value})
    (pod,) = context.snapshot.cluster.pods.values()
    found = context.why_not(pod, PROTECTED)
    assert (found is not None) is protects
    assert found is None or found.until == until
    assert [each is None for each in context.why_not_all([pod])] == [context.why_not(pod) is None]


def test_outside_of_every_window_a_pod_waits_for_the_next() -> None:
    windows = [{"schedule": "0 2 1 1 *", "duration": "1h"}]
    context = eligibility({}, execution={"windows": windows})
    (pod,) = context.snapshot.cluster.pods.values()
    found = context.why_not(pod, ALLOWED_NOW)
    assert found is not None
    assert found.code is Reason.WINDOW
    assert found.until is not None
    assert found.until > NOW


@pytest.mark.parametrize(
    ("text", "says"), [("0 2 1 1 *; 1h", "opens at"), ("now and then", "is not a window"), ("* * * * *; 1h", "")]
)
def test_a_pods_own_window_narrows_the_settings(text: str, says: str) -> None:
    context = eligibility({"rematch.io/window": text})
    (pod,) = context.snapshot.cluster.pods.values()
    found = context.why_not(pod, ALLOWED_NOW)
    assert (found is None) is (not says)
    assert found is None or says in found.text
    assert (context.why_not_all([pod])[0] is None) is (context.why_not(pod) is None)


def test_a_workload_that_moved_often_waits() -> None:
    pod = make_pod("web-1")
    snapshot = make_snapshot([pod], NODES)
    workload = snapshot.cluster.workload_name(pod)
    recent = RecentMoves(tuple(StartedMove(str(n), NOW - 100 + n, "shop", workload) for n in range(4)))
    context = make_eligibility(snapshot, None, Cooldowns(recent=recent))
    found = context.why_not(pod, ALLOWED_NOW)
    assert found is not None
    assert (found.code, found.until) == (Reason.LIMIT, NOW + 500)


def test_a_pod_that_just_came_is_charged_to_its_node_until_it_is_measured() -> None:
    """Otherwise the next one follows it there: the node still looks empty."""
    new = make_pod("web-2", node="n2", ready_since=NOW - 5, requests={"cpu": 2.0, "memory": GIB})
    measured = {"node_usage": {"n1": (1.0, GIB), "n2": (1.0, GIB)}, "age": 10.0}
    snapshot = make_snapshot([new], NODES, **measured)
    use = node_use(NODES[1], snapshot)
    assert use is not None
    assert use["cpu"] == pytest.approx(0.75)
    builder = ProblemBuilder(snapshot)
    builder.add(new)
    (_, node) = builder.problem(Options()).nodes
    assert node.background[0] == pytest.approx(1.0)
    settled = make_snapshot([make_pod("web-2", node="n2", ready_since=NOW - 50)], NODES, **measured)
    use = node_use(NODES[1], settled)
    assert use is not None
    assert use["cpu"] == pytest.approx(0.25)


def test_a_pod_that_was_restarted_is_not_counted_twice() -> None:
    """Its node was measured with it. Counted again, a crowded node looks full, and the others look like no help."""
    back = make_pod("web-2", node="n2", ready_since=NOW - 5, requests={"cpu": 0.1, "memory": GIB})
    measured = {"usage": {"web-2": (0.4, GIB)}, "node_usage": {"n1": (1.0, GIB), "n2": (3.0, GIB)}, "age": 10.0}
    snapshot = make_snapshot([back], NODES, **measured)
    use = node_use(NODES[1], snapshot)
    assert use is not None
    assert use["cpu"] == pytest.approx(0.75)
    builder = ProblemBuilder(snapshot)
    builder.add(back)
    (_, node) = builder.problem(Options()).nodes
    assert node.background[0] == pytest.approx(2.6)


def test_what_daemons_use_of_their_own_share_is_no_load() -> None:
    """A small node whose kubelet uses what is kept back for it looked crowded while its pods had room."""
    node = replace(NODES[1], capacity={"cpu": 5.0, "memory": 9 * GIB}, allocatable={"cpu": 4.0, "memory": 8 * GIB})
    pod = make_pod("web-2", node="n2")
    for measured, share in ((2.8, 0.5), (5.0, 1.0), (1.5, 0.5)):
        usage = {"usage": {"web-2": (2.0, GIB)}, "node_usage": {"n1": (1.0, GIB), "n2": (measured, GIB)}}
        use = node_use(node, make_snapshot([pod], [NODES[0], node], **usage))
        assert use is not None
        assert use["cpu"] == pytest.approx(share)


@pytest.mark.parametrize("limited", ["namespace", "workload"])
def test_a_limit_holds_for_its_own_pods_only_also_in_bulk(limited: str) -> None:
    pods = [make_pod("web-1"), make_pod("db-1"), make_pod("web-2", namespace="bank")]
    snapshot = make_snapshot(pods, NODES, usage={pod.name: (0.1, GIB) for pod in pods})
    moved = StartedMove("m1", NOW, "shop", snapshot.cluster.workload_name(pods[0]))
    settings = make_settings(execution={"limits": {limited: {"per10Minutes": 1}}})
    context = make_eligibility(snapshot, settings, Cooldowns(recent=RecentMoves((moved,))))

    found = context.why_not_all(pods)

    assert found == [context.why_not(pod) for pod in pods]
    held = [each is not None and each.code is Reason.LIMIT for each in found]
    assert held == [True, limited == "namespace", False]
