"""Needs and room: what the matching knows about pods and nodes."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from matching.planners.stable.planner import StablePlanner
from matching.problem import Node, Pod, PodTerm, Problem, Requirement, Rules, Scope, Selector, Strategy, Volume
from reactor.cluster.records import CsiNode, PersistentVolume, PersistentVolumeClaim
from reactor.decision.decide import decide
from reactor.planning.pending import fit_beside_nominated
from reactor.planning.problem_builder import fits_now
from reactor.planning.problems import placement_problem, rematch_problem
from reactor.state.moves import Reservation
from reactor.state.snapshot import Needs, Snapshot
from tests.support.clock import NOW
from tests.support.cluster import (
    GIB,
    make_eligibility,
    make_node,
    make_owner,
    make_pending,
    make_pod,
    make_settings,
    make_snapshot,
    make_workload,
)
from tests.support.moves import active_moves, make_move

SETTINGS = make_settings()


def problem_of(snapshot: Snapshot, **settings: Any) -> Problem:
    eligibility = make_eligibility(snapshot, make_settings(**settings))
    return rematch_problem(eligibility, decide(eligibility))


def placement(snapshot: Snapshot, *pending: str) -> Problem:
    return placement_problem(snapshot, pending, reservations(snapshot), SETTINGS)


def reservations(snapshot: Snapshot) -> list[Reservation]:
    return snapshot.moves.reservations(snapshot.at, SETTINGS.execution)


def pod_of(problem: Problem, name: str) -> Pod:
    return next(pod for pod in problem.pods if pod.key in (f"shop/{name}", name))


def node_of(problem: Problem, name: str) -> Node:
    return next(node for node in problem.nodes if node.name == name)


def test_a_node_whose_load_is_not_the_cause_is_faulty() -> None:
    nodes = [make_node(), make_node("n2", pressure=("DiskPressure",))]
    usage = {"web-1": (3.9, GIB), "web-2": (0.2, GIB)}
    snapshot = make_snapshot(
        [make_pod(), make_pod("web-2", node="n2", owner=make_owner("b"))],
        nodes,
        usage=usage,
        node_usage={"n1": usage["web-1"], "n2": usage["web-2"]},
        failures=dict.fromkeys(usage, 9.0),
    )
    problem = problem_of(snapshot)
    assert not any(pod.happy for pod in problem.pods)
    assert [node.faulty for node in problem.nodes] == [False, True]


def test_a_measured_pod_needs_what_it_uses_and_its_peak_is_never_below_that() -> None:
    snapshot = make_snapshot([make_pod()], [make_node()], usage={"web-1": (0.2, GIB)}, node_usage={"n1": (0.2, GIB)})

    found = pod_of(problem_of(snapshot), "web-1")

    assert found.usage == (0.2, GIB)
    assert found.request == (0.5, 0.5 * GIB)
    assert all(peak >= used for peak, used in zip(found.peak, found.usage, strict=True))


@pytest.mark.parametrize("usage", [{}, {"web-1": (None, GIB)}, {"web-1": (float("nan"), GIB)}])
def test_what_is_not_known_never_reads_as_idle(usage: dict[str, Any]) -> None:
    found = pod_of(problem_of(make_snapshot([make_pod()], [make_node()], usage=usage)), "web-1")

    assert found.usage[0] >= 0.5
    assert found.peak[0] >= 0.5
    assert found.fixed.startswith("noFreshMetrics")


@pytest.mark.parametrize(("window", "counted"), [(60.0, 0.6), (20.0, 0.1)], ids=["restarted meanwhile", "before"])
def test_a_pod_that_was_down_while_its_cpu_was_averaged_counts_with_its_peak(window: float, counted: float) -> None:
    """Else a node full of restarting pods looks like one with room."""
    snapshot = make_snapshot([make_pod(ready_since=NOW - 30)], [make_node()], usage={"web-1": (0.1, GIB)})
    usage = dataclasses.replace(snapshot.usage, cpu_window=window, peaks=np.full_like(snapshot.usage.peaks, 0.6))

    assert pod_of(problem_of(dataclasses.replace(snapshot, usage=usage)), "web-1").usage[0] == pytest.approx(counted)


def test_stale_usage_is_a_lower_bound_beside_the_request() -> None:
    snapshot = make_snapshot([make_pod()], [make_node()], usage={"web-1": (3.0, GIB)}, age=500)

    assert pod_of(problem_of(snapshot), "web-1").usage[0] == pytest.approx(3.0)


def test_by_requests_all_three_quantities_are_the_request() -> None:
    snapshot = make_snapshot([make_pod()], [make_node()], usage={"web-1": (3.0, GIB)}, needs=Needs.REQUESTS)

    problem = problem_of(snapshot)

    found = pod_of(problem, "web-1")
    assert found.usage == found.request == found.peak
    assert found.fixed == ""
    assert node_of(problem, "n1").measured
    assert problem.needs_from == "requests"


def test_a_node_without_fresh_metrics_is_not_measured_and_has_no_background() -> None:
    node = node_of(problem_of(make_snapshot([make_pod()], [make_node()], node_usage={"n1": (2.0, None)})), "n1")

    assert not node.measured
    assert node.background == ()


def test_background_is_what_the_node_uses_beyond_its_pods_and_beyond_what_it_keeps_back() -> None:
    node = make_node("n1", capacity={"cpu": 4.5, "memory": 8 * GIB, "pods": 110})
    snapshot = make_snapshot([make_pod()], [node], usage={"web-1": (1.0, GIB)}, node_usage={"n1": (2.5, 3 * GIB)})

    assert node_of(problem_of(snapshot), "n1").background == pytest.approx((1.0, 2 * GIB))


def test_background_is_never_negative() -> None:
    snapshot = make_snapshot([make_pod()], [make_node()], usage={"web-1": (1.0, GIB)}, node_usage={"n1": (0.5, 0.5)})

    assert node_of(problem_of(snapshot), "n1").background == (0.0, 0.0)


def test_a_pending_pod_needs_what_its_workload_needed_else_its_request() -> None:
    sibling, known, unknown = make_pod("web-1"), make_pending("web-2"), make_pending("db-1")
    snapshot = make_snapshot(
        [sibling, known, unknown], [make_node()], usage={"web-1": (2.0, GIB)}, node_usage={"n1": (2.0, GIB)}
    )

    problem = placement(snapshot, known.uid, unknown.uid)

    assert pod_of(problem, "web-2").peak == pytest.approx((2.0, GIB))
    assert pod_of(problem, "db-1").peak == (0.5, 0.5 * GIB)
    assert pod_of(problem, "web-1").fixed
    assert problem.options.scope is Scope.PENDING


def test_pending_pods_of_ours_are_part_of_a_rematch_and_others_are_not() -> None:
    pods = [
        make_pending("web-1"),
        make_pending("web-2", gates=("wait",)),
        make_pending("web-3", scheduler_name="default-scheduler"),
        make_pending("web-4", unsupported=("volumes",)),
        make_pending("web-5", deleting=NOW),
    ]

    found = {pod.key: pod.fixed for pod in problem_of(make_snapshot(pods, [make_node()])).pods}
    assert found == {"shop/web-1": "", "shop/web-4": "unsupported volumes"}


def test_terminating_pods_hold_room_and_finished_ones_do_not() -> None:
    pods = [make_pod("web-1", deleting=NOW), make_pod("web-2", phase="Succeeded"), make_pod("web-3", phase="Failed")]

    problem = problem_of(make_snapshot(pods, [make_node()]))

    assert [(pod.key, pod.fixed.partition(":")[0]) for pod in problem.pods] == [("shop/web-1", "protected")]


def test_an_ineligible_pod_is_fixed_with_the_reason() -> None:
    pods = [make_pod("web-1", owner=None), make_pod("web-2", namespace="kube-system"), make_pod("web-3")]
    snapshot = make_snapshot(pods, [make_node()], needs=Needs.REQUESTS)

    fixed = {pod.key: pod.fixed for pod in problem_of(snapshot, managed={"label_selector": "app!=x"}).pods}

    assert fixed["shop/web-1"].startswith("protected: noController")
    assert fixed["kube-system/web-2"].startswith("not managed: kube-system")
    assert fixed["shop/web-3"] == ""


def test_ephemeral_storage_is_an_axis_only_when_a_pod_requests_it() -> None:
    requesting = make_pod("web-2", requests={"cpu": 0.5, "memory": GIB, "ephemeral-storage": 3 * GIB})
    allocatable = {"cpu": 4.0, "memory": 8 * GIB, "pods": 10.0, "ephemeral-storage": 10 * GIB}
    node = make_node(allocatable=allocatable, capacity=allocatable)

    assert problem_of(make_snapshot([make_pod()], [node])).axes == ("cpu", "memory")
    problem = problem_of(make_snapshot([make_pod(), requesting], [node], node_usage={"n1": (1.0, GIB)}))
    assert problem.axes == ("cpu", "memory", "ephemeral-storage")
    assert pod_of(problem, "web-2").peak[2] == 3 * GIB
    assert pod_of(problem, "web-1").request[2] == 0.0
    assert node_of(problem, "n1").allocatable[2] == 10 * GIB
    assert node_of(problem, "n1").background[2] == 0.0
    assert node_of(problem, "n1").max_pods == 10


def test_a_node_without_capacity_takes_no_pods_and_does_not_break_the_plan() -> None:
    empty = make_node("n0", cpu=0.0, memory=0.0, allocatable={}, capacity={})
    snapshot = make_snapshot([make_pod(), make_pending("web-2")], [make_node("n1"), empty])

    problem = problem_of(snapshot)

    assert not node_of(problem, "n0").ready
    moves = StablePlanner().plan(problem).moves
    assert [(move.pod, move.target) for move in moves] == [("shop/web-2", "n1")]


def test_a_node_that_states_no_number_of_pods_takes_none() -> None:
    silent = make_node("n2", allocatable={"cpu": 4.0, "memory": 8 * GIB})
    pending = make_pending("web-2")
    snapshot = make_snapshot([pending], [silent])

    assert node_of(problem_of(snapshot), "n2").max_pods == 0
    assert not fits_now(pending, "n2", snapshot, ())


def test_a_pod_that_may_move_needs_room_for_a_resize_that_its_node_cannot_make() -> None:
    """kube-scheduler does not count it where the pod is, so a pod that stays is counted without it."""
    resizing = {"requests": {"cpu": 2.0, "memory": GIB}, "infeasible_resize": {"cpu": 5.0, "memory": GIB}}
    moving, staying = make_pod("web-1", **resizing), make_pod("web-2", mirror=True, **resizing)
    nodes = [make_node("n1"), make_node("n2"), make_node("n3", cpu=8.0)]
    snapshot = make_snapshot([moving, staying], nodes, needs=Needs.REQUESTS)

    problem = problem_of(snapshot)

    assert (pod_of(problem, "web-1").request[0], pod_of(problem, "web-2").request[0]) == (5.0, 2.0)
    assert not fits_now(moving, "n2", snapshot, ())
    assert fits_now(moving, "n3", snapshot, ())
    target = make_snapshot([staying, make_pod("db-1", node="n2")], [make_node("n1"), make_node("n2")])
    assert fits_now(make_pod("db-1", node="n2", requests={"cpu": 2.0, "memory": GIB}), "n1", target, ())


@pytest.mark.parametrize(("priority", "expected"), [(-1, True), (0, False), (1, False)])
def test_a_nominated_pod_holds_its_room_from_pods_of_no_higher_priority(priority: int, expected: bool) -> None:
    nominated = make_pending("db-1", nominated_node="n2", priority=priority, requests={"cpu": 3.0, "memory": GIB})
    moving = make_pod("web-1", requests={"cpu": 2.0, "memory": GIB})
    snapshot = make_snapshot([moving, nominated], [make_node("n1"), make_node("n2"), make_node("n3")])

    assert fits_now(moving, "n2", snapshot, ()) is expected
    assert fits_now(moving, "n3", snapshot, ())
    assert fits_now(nominated, "n2", snapshot, ()), "it does not stand in its own way"


def test_plans_leave_the_room_of_nominated_pods() -> None:
    room = {"cpu": 3.0, "memory": GIB}
    nominated = make_pending("db-1", nominated_node="n2", scheduler_name="default-scheduler", requests=room)
    snapshot = make_snapshot([nominated, make_pending("web-1", requests=room)], [make_node("n2"), make_node("n3")])

    for problem in (placement(snapshot, "uid-web-1"), problem_of(snapshot)):
        held = pod_of(problem, "db-1")
        assert (held.node, held.fixed) == ("n2", "pending, with room held on n2")
        assert [(move.pod, move.target) for move in StablePlanner().plan(problem).moves] == [("shop/web-1", "n3")]
    own = placement(snapshot, "uid-web-1", "uid-db-1")
    assert {pod.uid: pod.node for pod in own.pods} == {"uid-web-1": None, "uid-db-1": None}


def test_a_nominated_pod_is_not_counted_as_running() -> None:
    nominated = make_pending("db-1", nominated_node="n1", scheduler_name="default-scheduler")
    running = make_pod("web-1")
    usage: dict[str, Any] = {"usage": {"web-1": (0.5, GIB)}, "node_usage": {"n1": (2.5, 3 * GIB)}}

    with_it = problem_of(make_snapshot([running, nominated], [make_node("n1")], **usage))
    without = problem_of(make_snapshot([running], [make_node("n1")], **usage))

    assert node_of(with_it, "n1").background == node_of(without, "n1").background


def test_a_nominated_replacement_and_its_reservation_count_once() -> None:
    moved = make_pod("web-1", deleting=NOW, requests={"cpu": 1.5, "memory": GIB})
    replacement = make_pending("web-9", nominated_node="n2", requests=moved.requests)
    moves = active_moves({make_move(moved, "n2", "evicted", evicted=NOW, replacement=replacement.uid): moved})
    other = make_pod("db-1", requests={"cpu": 2.0, "memory": GIB})
    snapshot = make_snapshot([moved, replacement, other], [make_node("n1"), make_node("n2")], moves=moves)

    assert fits_now(other, "n2", snapshot, reservations(snapshot))


def test_a_pod_must_fit_with_and_without_the_nominated_pods() -> None:
    """It may not rely on the affinity to a pod that is not there yet, and that may end elsewhere."""
    beside_db = PodTerm("kubernetes.io/hostname", Selector((Requirement("app", "In", ("db",)),)))
    nominated = make_pending("db-1", nominated_node="n2", labels={"app": "db"}, scheduler_name="default-scheduler")
    pending = make_pending("web-1", rules=Rules(pod_affinity=(beside_db,)))
    snapshot = make_snapshot([nominated, pending], [make_node("n1"), make_node("n2")])

    (planned,) = StablePlanner().plan(placement(snapshot, "uid-web-1")).moves

    assert planned.target == "n2"
    assert not fits_now(pending, "n2", snapshot, ())
    assert fit_beside_nominated([planned], snapshot, ()) == ()
    bound = make_snapshot(
        [replace(nominated, node="n2", nominated_node=None), pending], [make_node("n1"), make_node("n2")]
    )
    assert fit_beside_nominated([planned], bound, ()) == (planned,)


def test_a_move_in_flight_holds_room_on_its_target_until_the_reservation_expires() -> None:
    moved = make_pod("web-1", deleting=NOW, requests={"cpu": 3.0, "memory": GIB})
    other = make_pod("db-1", requests={"cpu": 2.0, "memory": GIB})
    moves = active_moves({make_move(moved, "n2", "evicted", evicted=NOW - 10): moved})
    nodes = [make_node("n1"), make_node("n2")]

    reserved = make_snapshot([moved, other], nodes, moves=moves)
    assert not fits_now(other, "n2", reserved, reservations(reserved))

    later = make_snapshot([moved, other], nodes, moves=moves, now=NOW + 111)
    assert fits_now(other, "n2", later, reservations(later))


def test_a_reservation_holds_what_the_workload_needs_after_its_last_pod_is_gone() -> None:
    """The pod that was evicted is not measured any more; its replacement will need as much."""
    moved, sibling = make_pod("web-1"), make_pod("web-2")
    move = make_move(moved, "n2", "evicted", evicted=NOW)
    snapshot = make_snapshot(
        [sibling],
        [make_node("n1"), make_node("n2")],
        usage={"web-2": (3.0, 2 * GIB)},
        node_usage={"n1": (3.0, GIB), "n2": (0.1, GIB)},
        moves=active_moves({move: moved}),
    )

    reservation = pod_of(placement(snapshot), f"reservation:{move.id}")

    assert reservation.node == "n2"
    assert reservation.workload == pod_of(placement(snapshot), "web-2").workload
    assert reservation.peak == pytest.approx((3.0, 2 * GIB))


def test_a_reservation_does_not_hide_what_the_node_uses_already() -> None:
    moved = make_pod("web-1", requests={"cpu": 2.0, "memory": 2 * GIB})
    moves = active_moves({make_move(moved, "n2", "evicted", evicted=NOW): moved})
    nodes = [make_node("n1"), make_node("n2")]
    snapshot = make_snapshot([], nodes, node_usage={"n2": (1.5, GIB)}, moves=moves)

    assert node_of(placement(snapshot), "n2").background == pytest.approx((1.5, GIB))


def test_a_node_that_is_gone_takes_no_pod() -> None:
    pod = make_pending("web-1")

    assert not fits_now(pod, "n3", make_snapshot([pod], [make_node("n1")]), ())


def test_the_strategy_of_each_pod_that_may_move_is_part_of_the_problem() -> None:
    pods = [make_pod(), make_pod("db-1", annotations={"rematch.io/do-not-move": "true"}), make_pending("web-2")]
    snapshot = make_snapshot(
        pods,
        [make_node()],
        usage={"web-1": (0.1, GIB)},
        node_usage={"n1": (1.0, GIB)},
        workloads=[
            make_workload(make_owner(f"{app}-1a2b"), replicas=replicas) for app, replicas in (("web", 2), ("db", 1))
        ],
    )

    problem = problem_of(snapshot, execution={"strategies": ["scaleSurge", "evict"]})

    found = {pod.key: (pod.strategy, pod.strategy_reason) for pod in problem.pods}
    surge = "scale surge: nobody else sets the replicas of ReplicaSet web-1a2b"
    assert found == {
        "shop/web-1": (Strategy.SCALE_SURGE, surge),
        "shop/db-1": (Strategy.EVICT, ""),
        "shop/web-2": (Strategy.EVICT, ""),
    }


@pytest.mark.parametrize("strategy", list(Strategy))
def test_while_a_pod_surges_its_old_pod_still_counts_for_rules_between_pods(strategy: Strategy) -> None:
    """One per zone: an evicted pod leaves room for its replacement in its zone, a surging one does not."""
    apart = Rules(pod_anti_affinity=(PodTerm("zone", Selector((Requirement("app", "In", ("web",)),))),))
    nodes = [make_node(name, labels={"zone": zone}) for name, zone in (("n1", "a"), ("n2", "a"), ("n3", "b"))]
    snapshot = make_snapshot([make_pod(rules=apart)], nodes)
    pod = snapshot.cluster.pods["uid-web-1"]

    assert fits_now(pod, "n2", snapshot, (), strategy) is (strategy is Strategy.EVICT)
    assert fits_now(pod, "n3", snapshot, (), strategy)


@pytest.mark.parametrize(("cpu", "fits"), [(1.0, True), (0.9, False)])
def test_a_surge_needs_room_on_its_target_only(cpu: float, fits: bool) -> None:
    pod = make_pod(requests={"cpu": 1.0})
    snapshot = make_snapshot([pod], [make_node("n1", cpu=1.0), make_node("n2", cpu=cpu)])

    assert fits_now(pod, "n2", snapshot, (), Strategy.SCALE_SURGE) is fits


def test_the_settings_reach_the_planner() -> None:
    settings = {"planner": {"scope": "unhappy", "inertia": 0.7, "headroom": 0.3, "max_moves": 4}}

    options = problem_of(make_snapshot([], [make_node()]), **settings).options

    assert (options.scope, options.inertia, options.headroom, options.max_moves) == (Scope.UNHAPPY, 0.7, 0.3, 4)


def test_the_pod_that_a_rematch_is_for_is_unhappy_and_free_to_move() -> None:
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

    assert not pod_of(problem, "web-1").happy
    assert pod_of(problem, "web-1").fixed == ""
    assert pod_of(problem, "db-1").happy


def test_a_reserved_replacement_holds_its_volume_on_the_target() -> None:
    """A second replacement must not take the last place."""
    disks = {name: PersistentVolume(f"pv-{name}", name, "1", attachable=Volume("disk.csi", name)) for name in "ab"}
    claims = tuple(
        PersistentVolumeClaim(name, "shop", name, "1", volume=f"pv-{name}", bind_completed=True) for name in "ab"
    )
    moved, other = make_pod("web-1", deleting=NOW, pvcs=("a",)), make_pod("db-1", pvcs=("b",))
    moves = active_moves({make_move(moved, "n2", "evicted", evicted=NOW - 10): moved})
    for limit, expected in ((2, True), (1, False)):
        snapshot = make_snapshot(
            [moved, other],
            [make_node("n1"), make_node("n2")],
            moves=moves,
            pvcs=claims,
            pvs={pv.name: pv for pv in disks.values()},
            csi_nodes={"n2": CsiNode("n2", "n2", "1", {"disk.csi": limit})},
        )
        assert fits_now(other, "n2", snapshot, reservations(snapshot)) is expected
