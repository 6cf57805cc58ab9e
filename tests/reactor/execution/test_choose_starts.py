"""Which planned moves may start, checked against the cluster as it is now."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from reactor.cluster.records import Node, Pod
from reactor.decision.brakes import Brake, BrakeCause, Brakes
from reactor.decision.cooldowns import Cooldowns
from reactor.decision.limits import RecentMoves, StartedMove
from reactor.execution.choose_starts import Starts, choose_starts
from reactor.state.moves import Move
from reactor.state.steering import SteeringStatus
from tests.support.clock import NOW
from tests.support.cluster import GIB, make_eligibility, make_node, make_pdb, make_pod, make_settings, make_snapshot
from tests.support.moves import active_moves, make_move

NODES = [make_node("n1"), make_node("n2")]
WEB, DB = make_pod("web-1"), make_pod("db-1")


def moving(pod: Pod, target: str, state: str = "planned", **fields: Any) -> tuple[Move, Pod]:
    return make_move(pod, target, state, **fields), pod


def starts(
    *moves: tuple[Move, Pod], pods: list[Pod] | None = None, nodes: list[Node] | None = None, **more: Any
) -> Starts:
    settings = make_settings(**more.pop("settings", {}))
    cooldowns = more.pop("cooldowns", None)
    there = [pod for _, pod in moves] if pods is None else pods
    active = active_moves(dict(moves), last_end=more.pop("last_end", float("-inf")))
    snapshot = make_snapshot(there, nodes or NODES, moves=active, **more)
    return choose_starts(active, make_eligibility(snapshot, settings, cooldowns))


def names(moves: tuple[Move, ...]) -> list[str]:
    return [move.pod.name for move in moves]


def test_one_move_at_a_time_by_default_in_the_plans_order() -> None:
    found = starts(moving(DB, "n2"), moving(WEB, "n2"))

    assert names(found.begin) == ["db-1"]
    assert found.skip == ()


def test_nothing_starts_while_another_is_in_flight() -> None:
    flying = moving(DB, "n2", "evicted", evicted=NOW)

    assert starts(flying, moving(WEB, "n2")) == Starts((), ())


def test_more_may_fly_when_the_settings_say_so_but_never_two_of_one_workload() -> None:
    second = make_pod("web-2")
    moves = [moving(WEB, "n2"), moving(second, "n2"), moving(DB, "n2")]

    found = starts(*moves, settings={"execution": {"max_moves_in_flight": 3}})

    assert names(found.begin) == ["web-1", "db-1"]
    assert found.skip == ()


def test_two_that_start_together_do_not_share_the_last_room() -> None:
    big = {"cpu": 3.0, "memory": GIB}
    first, second = make_pod("web-1", requests=big), make_pod("db-1", requests=big)
    nodes = [make_node("n1", cpu=8.0), make_node("n2")]
    moves = [moving(first, "n2"), moving(second, "n2")]

    found = starts(*moves, nodes=nodes, settings={"execution": {"max_moves_in_flight": 2}})

    assert names(found.begin) == ["web-1"]
    assert found.skip == ()


def test_a_late_replacement_does_not_count_as_in_flight() -> None:
    late = moving(DB, "n2", "late", evicted=NOW - 500)

    assert len(starts(late, moving(WEB, "n2"), settings={"execution": {"max_moves_in_flight": 1}}).begin) == 1


@pytest.mark.parametrize(
    ("pods", "nodes", "reason"),
    [
        ([], NODES, "gone"),
        ([make_pod("web-1", node="n2")], NODES, "on n2 now"),
        ([make_pod("web-1", deleting=NOW)], NODES, "terminating"),
        ([make_pod("web-1", annotations={"rematch.io/do-not-move": "true"})], NODES, "do-not-move"),
        ([WEB], [make_node("n1")], "n2 does not take pods"),
        ([WEB], [make_node("n1"), make_node("n2", ready=False)], "n2 does not take pods"),
        ([WEB], [make_node("n1"), make_node("n2", unschedulable=True)], "n2 does not take pods"),
        ([WEB], [make_node("n1"), make_node("n2", cpu=0.1)], "no room"),
        ([WEB, make_pod("x-1", node="n2", requests={"cpu": 3.9}, deleting=NOW)], NODES, "no room"),
    ],
)
def test_a_move_that_no_longer_holds_is_skipped_with_the_reason(
    pods: list[Pod], nodes: list[Node], reason: str
) -> None:
    found = starts(moving(WEB, "n2"), pods=pods, nodes=nodes)

    assert found.begin == ()
    assert [why for _, why in found.skip if reason in why] == [why for _, why in found.skip] != []


def test_an_owner_that_was_deleted_meanwhile_leaves_nothing_to_move() -> None:
    found = starts(moving(WEB, "n2"), workloads=[])

    assert "controllerGone" in found.skip[0][1]


def test_a_pod_that_is_not_managed_any_more_is_not_moved() -> None:
    found = starts(moving(WEB, "n2"), settings={"managed": {"namespaces": ["bank"]}})

    assert "not managed" in found.skip[0][1]


def test_a_pod_that_cannot_be_steered_any_more_is_not_moved_blindly() -> None:
    move = moving(make_pod("web-1", scheduler_name="default-scheduler"), "n2")
    opted_in = {"managed": {"anySchedulerNamespaces": ["*"]}}
    assert names(starts(move, settings=opted_in, steering=SteeringStatus(policy_works=True, problem="")).begin)
    ((_, reason),) = starts(move, settings=opted_in, steering=SteeringStatus(problem="install it")).skip
    assert "noSteering: install it" in reason


def test_a_move_without_room_waits_while_another_is_in_flight() -> None:
    flying = moving(DB, "n1", "evicted", evicted=NOW)
    filler = make_pod("x-1", node="n2", requests={"cpu": 3.9})

    found = starts(flying, moving(WEB, "n2"), pods=[DB, WEB, filler])

    assert found == Starts((), ())


def test_a_move_without_room_lets_others_go_first() -> None:
    filler = make_pod("x-1", node="n2", requests={"cpu": 3.9})
    nodes = [*NODES, make_node("n3")]

    found = starts(moving(WEB, "n2"), moving(DB, "n3"), pods=[DB, WEB, filler], nodes=nodes)

    assert names(found.begin) == ["db-1"]
    assert found.skip == ()


def test_a_budget_in_use_by_the_move_before_is_waited_for() -> None:
    """A PodDisruptionBudget allows nothing while the replacement is not Ready, and counts it a moment after it is."""
    second = make_pod("web-2")
    budgets = (make_pdb("web-pdb", 0),)
    flying = moving(WEB, "n2", "evicted", evicted=NOW)

    assert starts(flying, moving(second, "n2"), pods=[second], pdbs=budgets) == Starts((), ())
    assert starts(moving(second, "n2"), pods=[second], pdbs=budgets, last_end=NOW - 1) == Starts((), ())


def test_a_budget_that_stays_closed_skips_the_move() -> None:
    found = starts(moving(WEB, "n2"), pdbs=(make_pdb("web-pdb", 0),), last_end=NOW - 60)

    assert found.begin == ()
    assert "web-pdb" in found.skip[0][1]


def test_at_most_so_many_of_a_namespace_are_in_flight() -> None:
    pods = [make_pod(f"{name}-1") for name in "abc"]
    execution = {"max_moves_in_flight": 9, "max_moves_in_flight_per_namespace": 2}

    found = starts(*(moving(pod, "n2") for pod in pods), settings={"execution": execution})
    assert names(found.begin) == ["a-1", "b-1"]


def test_a_blocked_move_keeps_its_room() -> None:
    """Its disruption budget may allow it in a moment; a later move must not have taken the room by then."""
    big = {"cpu": 3.0, "memory": GIB}
    blocked, later = make_pod("web-1", requests=big), make_pod("db-1", requests=big)
    flying = moving(make_pod("x-1"), "n1", "evicted", evicted=NOW)
    nodes = [make_node("n1", cpu=16.0), make_node("n2")]
    more: dict[str, Any] = {"nodes": nodes, "settings": {"execution": {"max_moves_in_flight": 3}}}

    found = starts(flying, moving(blocked, "n2"), moving(later, "n2"), pdbs=(make_pdb("web-pdb", 0),), **more)
    assert found == Starts((), ())
    assert names(starts(flying, moving(later, "n2"), **more).begin) == ["db-1"]


def test_a_pod_that_is_happy_again_is_left_where_it_is() -> None:
    unhappy = moving(WEB, "n2", unhappy=True)

    assert "happy again" in starts(unhappy).skip[0][1]
    assert names(starts(unhappy, failures={"web-1": 20.0}).begin) == ["web-1"]


def test_a_plan_that_is_too_old_is_dropped() -> None:
    old = moving(WEB, "n2", planned=NOW - 601)

    assert "maxPlanAge" in starts(old).skip[0][1]
    assert names(starts(moving(WEB, "n2", planned=NOW - 599)).begin) == ["web-1"]


def test_moves_wait_while_their_namespace_is_braked_or_a_limit_is_reached() -> None:
    brake = Brake("shop", BrakeCause.NO_EFFECT, "3 moves did not help", NOW, NOW + 60)
    cooldowns = Cooldowns(brakes=Brakes((brake,)))
    elsewhere = Cooldowns(brakes=Brakes((replace(brake, scope="bank"),)))
    limited = Cooldowns(recent=RecentMoves(tuple(StartedMove(str(n), NOW - n, "bank", "x") for n in range(20))))

    assert starts(moving(WEB, "n2"), cooldowns=cooldowns) == Starts((), ())
    assert starts(moving(WEB, "n2"), cooldowns=limited) == Starts((), ())
    assert names(starts(moving(WEB, "n2"), cooldowns=elsewhere).begin) == ["web-1"]


def test_nothing_starts_outside_of_the_maintenance_windows() -> None:
    never_now = {"schedule": "0 2 1 1 *", "duration": "1h"}

    assert "maintenanceWindow" in starts(moving(WEB, "n2"), settings={"execution": {"windows": [never_now]}}).skip[0][1]
