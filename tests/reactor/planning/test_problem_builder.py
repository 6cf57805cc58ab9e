"""Needs and room: what the matching is told about pods and nodes."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from matching.planners.stable.planner import StablePlanner
from matching.problem import Node, Pod, Problem, Requirement, Rules, Scope, Term
from reactor.decision.decide import decide
from reactor.planning.problem_builder import pinned
from reactor.planning.problems import fits_now, placement_problem, rematch_problem, reservations
from reactor.state.moves import Ongoing
from reactor.state.snapshot import Needs, Snapshot
from tests.support.clock import NOW
from tests.support.cluster import GIB, make_node, make_pending, make_pod, make_settings, make_snapshot
from tests.support.moves import make_run

SETTINGS = make_settings()


def problem_of(snapshot: Snapshot, **settings: Any) -> Problem:
    chosen = make_settings(**settings)
    return rematch_problem(snapshot, decide(snapshot, chosen), chosen)


def guest(problem: Problem, name: str) -> Pod:
    return next(pod for pod in problem.pods if pod.key in (f"shop/{name}", name))


def place(problem: Problem, name: str) -> Node:
    return next(node for node in problem.nodes if node.name == name)


def test_a_measured_pod_needs_what_it_uses_and_its_peak_is_never_below_that() -> None:
    snapshot = make_snapshot([make_pod()], [make_node()], usage={"web-1": (0.2, GIB)}, node_usage={"n1": (0.2, GIB)})

    found = guest(problem_of(snapshot), "web-1")

    assert found.usage == (0.2, GIB)
    assert found.request == (0.5, 0.5 * GIB)
    assert all(peak >= used for peak, used in zip(found.peak, found.usage, strict=True))


@pytest.mark.parametrize("usage", [{}, {"web-1": (None, GIB)}, {"web-1": (float("nan"), GIB)}])
def test_what_is_not_known_never_reads_as_idle(usage: dict[str, Any]) -> None:
    found = guest(problem_of(make_snapshot([make_pod()], [make_node()], usage=usage)), "web-1")

    assert found.usage[0] >= 0.5
    assert found.peak[0] >= 0.5
    assert found.fixed.startswith("noFreshMetrics")


def test_stale_usage_is_a_lower_bound_beside_the_request() -> None:
    snapshot = make_snapshot([make_pod()], [make_node()], usage={"web-1": (3.0, GIB)}, age=500)

    assert guest(problem_of(snapshot), "web-1").usage[0] == pytest.approx(3.0)


def test_by_requests_all_three_quantities_are_the_request() -> None:
    snapshot = make_snapshot([make_pod()], [make_node()], usage={"web-1": (3.0, GIB)}, needs=Needs.REQUESTS)

    problem = problem_of(snapshot)

    found = guest(problem, "web-1")
    assert found.usage == found.request == found.peak
    assert found.fixed == ""
    assert place(problem, "n1").measured
    assert problem.needs_from == "requests"


def test_a_node_without_fresh_metrics_is_not_measured_and_has_no_background() -> None:
    node = place(problem_of(make_snapshot([make_pod()], [make_node()], node_usage={"n1": (2.0, None)})), "n1")

    assert not node.measured
    assert node.background == ()


def test_background_is_what_the_node_uses_beyond_its_pods_and_beyond_what_it_keeps_back() -> None:
    node = make_node("n1", capacity={"cpu": 4.5, "memory": 8 * GIB, "pods": 110})
    snapshot = make_snapshot([make_pod()], [node], usage={"web-1": (1.0, GIB)}, node_usage={"n1": (2.5, 3 * GIB)})

    assert place(problem_of(snapshot), "n1").background == pytest.approx((1.0, 2 * GIB))


def test_background_is_never_negative() -> None:
    snapshot = make_snapshot([make_pod()], [make_node()], usage={"web-1": (1.0, GIB)}, node_usage={"n1": (0.5, 0.5)})

    assert place(problem_of(snapshot), "n1").background == (0.0, 0.0)


def test_a_pending_pod_needs_what_its_workload_needed_else_its_request() -> None:
    sibling, known, unknown = make_pod("web-1"), make_pending("web-2"), make_pending("db-1")
    snapshot = make_snapshot(
        [sibling, known, unknown], [make_node()], usage={"web-1": (2.0, GIB)}, node_usage={"n1": (2.0, GIB)}
    )

    problem = placement_problem(snapshot, {known.uid: None, unknown.uid: None}, SETTINGS)

    assert guest(problem, "web-2").peak == pytest.approx((2.0, GIB))
    assert guest(problem, "db-1").peak == (0.5, 0.5 * GIB)
    assert guest(problem, "web-1").fixed
    assert problem.options.scope is Scope.PENDING


def test_pending_pods_of_ours_are_part_of_a_rematch_and_others_are_not() -> None:
    pods = [
        make_pending("web-1"),
        make_pending("web-2", gates=("wait",)),
        make_pending("web-3", scheduler_name="default-scheduler"),
        make_pending("web-4", unjudged=("volumes",)),
        make_pending("web-5", deleting=NOW),
    ]

    found = {pod.key: pod.fixed for pod in problem_of(make_snapshot(pods, [make_node()])).pods}
    assert found == {"shop/web-1": "", "shop/web-4": "cannot judge volumes"}


def test_terminating_pods_hold_room_and_finished_ones_do_not() -> None:
    pods = [make_pod("web-1", deleting=NOW), make_pod("web-2", phase="Succeeded"), make_pod("web-3", phase="Failed")]

    problem = problem_of(make_snapshot(pods, [make_node()]))

    assert [(pod.key, pod.fixed.partition(":")[0]) for pod in problem.pods] == [("shop/web-1", "protected")]


def test_whoever_may_not_move_is_fixed_with_the_reason() -> None:
    pods = [make_pod("web-1", owner=None), make_pod("web-2", namespace="kube-system"), make_pod("web-3")]
    snapshot = make_snapshot(pods, [make_node()], needs=Needs.REQUESTS)

    fixed = {pod.key: pod.fixed for pod in problem_of(snapshot, managed={"label_selector": "app!=x"}).pods}

    assert fixed["shop/web-1"].startswith("protected: noController")
    assert fixed["kube-system/web-2"].startswith("not managed: kube-system")
    assert fixed["shop/web-3"] == ""


def test_ephemeral_storage_is_an_axis_only_when_somebody_asks_for_it() -> None:
    asking = make_pod("web-2", requests={"cpu": 0.5, "memory": GIB, "ephemeral-storage": 3 * GIB})
    allocatable = {"cpu": 4.0, "memory": 8 * GIB, "pods": 10.0, "ephemeral-storage": 10 * GIB}
    node = make_node(allocatable=allocatable, capacity=allocatable)

    assert problem_of(make_snapshot([make_pod()], [node])).axes == ("cpu", "memory")
    problem = problem_of(make_snapshot([make_pod(), asking], [node], node_usage={"n1": (1.0, GIB)}))
    assert problem.axes == ("cpu", "memory", "ephemeral-storage")
    assert guest(problem, "web-2").peak[2] == 3 * GIB
    assert guest(problem, "web-1").request[2] == 0.0
    assert place(problem, "n1").allocatable[2] == 10 * GIB
    assert place(problem, "n1").background[2] == 0.0
    assert place(problem, "n1").max_pods == 10


def test_a_node_without_capacity_takes_nobody_and_does_not_break_the_plan() -> None:
    empty = make_node("n0", cpu=0.0, memory=0.0, allocatable={}, capacity={})
    snapshot = make_snapshot([make_pod(), make_pending("web-2")], [make_node("n1"), empty])

    problem = problem_of(snapshot)

    assert not place(problem, "n0").ready
    moves = StablePlanner().plan(problem).moves
    assert [(move.pod, move.target) for move in moves] == [("shop/web-2", "n1")]


def test_a_move_in_flight_holds_room_on_its_target_until_the_reservation_expires() -> None:
    moved = make_pod("web-1", deleting=NOW, requests={"cpu": 3.0, "memory": GIB})
    other = make_pod("db-1", requests={"cpu": 2.0, "memory": GIB})
    run = make_run(moved, "n2", "evicted", evicted=NOW - 10)
    nodes = [make_node("n1"), make_node("n2")]

    held = make_snapshot([moved, other], nodes, ongoing=Ongoing((run,)))
    assert not fits_now(other, "n2", held, reservations(held, SETTINGS))

    later = make_snapshot([moved, other], nodes, ongoing=Ongoing((run,)), now=NOW + 111)
    assert fits_now(other, "n2", later, reservations(later, SETTINGS))


def test_where_every_pending_pod_has_a_node_held_for_it_no_other_node_is_looked_at() -> None:
    pods = [make_pod("a-1", node="n1"), make_pod("b-1", node="n2"), make_pending("web-2")]
    snapshot = make_snapshot(pods, [make_node("n1"), make_node("n2")])
    uid = pods[-1].uid

    held = placement_problem(snapshot, {uid: "n2"}, SETTINGS)
    gone = placement_problem(snapshot, {uid: "n3"}, SETTINGS)
    anywhere = placement_problem(snapshot, {uid: None}, SETTINGS)

    assert ([node.name for node in held.nodes], [pod.key for pod in held.pods]) == (["n2"], ["shop/b-1", "shop/web-2"])
    assert gone.nodes == ()
    assert [node.name for node in anywhere.nodes] == ["n1", "n2"]


def test_a_reservation_holds_what_the_workload_needs_after_its_last_pod_is_gone() -> None:
    """The pod that was evicted is not measured any more; its replacement will need as much."""
    moved, sibling = make_pod("web-1"), make_pod("web-2")
    run = make_run(moved, "n2", "evicted", evicted=NOW)
    snapshot = make_snapshot(
        [sibling],
        [make_node("n1"), make_node("n2")],
        usage={"web-2": (3.0, 2 * GIB)},
        node_usage={"n1": (3.0, GIB), "n2": (0.1, GIB)},
        ongoing=Ongoing((run,)),
    )

    held = guest(placement_problem(snapshot, {}, SETTINGS), f"reservation:{run.id}")

    assert held.node == "n2"
    assert held.peak == pytest.approx((3.0, 2 * GIB))


def test_a_reservation_does_not_hide_what_the_node_uses_already() -> None:
    run = make_run(make_pod("web-1", requests={"cpu": 2.0, "memory": 2 * GIB}), "n2", "evicted", evicted=NOW)
    nodes = [make_node("n1"), make_node("n2")]
    snapshot = make_snapshot([], nodes, node_usage={"n2": (1.5, GIB)}, ongoing=Ongoing((run,)))

    assert place(placement_problem(snapshot, {}, SETTINGS), "n2").background == pytest.approx((1.5, GIB))


def test_a_replacement_goes_to_the_node_that_is_held_for_it() -> None:
    replacement = make_pending("web-2")
    snapshot = make_snapshot([replacement], [make_node("n1", cpu=16.0), make_node("n2")])

    for target in ("n1", "n2"):
        plan = StablePlanner().plan(placement_problem(snapshot, {replacement.uid: target}, SETTINGS))
        assert [move.target for move in plan.moves] == [target]


def test_pinning_keeps_the_rules_and_adds_the_node() -> None:
    zone = Requirement("zone", "In", ("a",))
    here = Requirement("metadata.name", "In", ("n1",))

    assert pinned(Rules(), "n1").node_affinity == (Term(fields=(here,)),)
    assert pinned(Rules(node_affinity=(Term((zone,)),)), "n1").node_affinity == (Term((zone,), (here,)),)


def test_a_rule_that_matches_no_node_is_not_opened_by_pinning() -> None:
    assert pinned(Rules(node_affinity=()), "n1").node_affinity == ()
    assert pinned(Rules(node_affinity=(Term(),)), "n1").node_affinity == ()


def test_the_settings_reach_the_planner() -> None:
    settings = {"planner": {"scope": "unhappy", "inertia": 0.7, "headroom": 0.3, "max_moves": 4}}

    options = problem_of(make_snapshot([], [make_node()]), **settings).options

    assert (options.scope, options.inertia, options.headroom, options.max_moves) == (Scope.UNHAPPY, 0.7, 0.3, 4)


def test_who_a_rematch_is_for_is_unhappy_and_free() -> None:
    pod = make_pod()
    calm = replace(make_pod("db-1"), node="n2")
    snapshot = make_snapshot(
        [pod, calm],
        [make_node("n1"), make_node("n2")],
        failures={"web-1": 10.0},
        usage={"web-1": (0.5, GIB), "db-1": (0.1, GIB)},
        node_usage={"n1": (3.9, GIB), "n2": (0.1, GIB)},
    )

    problem = problem_of(snapshot)

    assert not guest(problem, "web-1").happy
    assert guest(problem, "web-1").fixed == ""
    assert guest(problem, "db-1").happy
