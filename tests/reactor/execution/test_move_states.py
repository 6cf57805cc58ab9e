"""What the cluster shows of a move under way."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from msgspec.structs import replace as replace_fields

from matching.problem import Strategy
from reactor.cluster.records import Pod
from reactor.cluster.surge_writes import ServedBy
from reactor.cluster.view import ClusterView
from reactor.execution.move_states import Seen, Step, hint_is_due_to_go, next_step, replacement, siblings
from reactor.execution.move_states import followed as follow
from reactor.settings.model import Execution
from reactor.state.moves import Call, Move, MoveState
from tests.support.clock import NOW
from tests.support.cluster import make_node, make_owner, make_pending, make_pod, make_view, make_workload
from tests.support.moves import make_move

EXECUTION = Execution()
OLD = make_pod("web-1")
SIBLING = make_pod("web-2", node="n2")
BEFORE = {OLD.uid, SIBLING.uid}
"""The pods that were there before the eviction."""


def evicted(pod: Pod = OLD, **fields: Any) -> Move:
    return make_move(pod, "n2", "evicted", **({"evicted": NOW} | fields))


def followed(move: Move, *pods: Pod, now: float = NOW + 5, **more: Any) -> Move:
    nodes = [make_node("n1"), make_node("n2")]
    owner = move.owner
    assert owner is not None
    more.setdefault("workloads", [make_workload(owner, replicas=2)])
    return follow(move, make_view(pods, nodes, **more), now, EXECUTION, BEFORE)


@pytest.mark.parametrize(
    ("fields", "new", "gone"),
    [
        ({}, None, False),
        ({"failure": "forbidden by a policy"}, None, True),
        ({}, make_pending("web-3"), True),
        ({"now": NOW + 1 + EXECUTION.ready_deadline}, None, True),
        ({"by_extender": True}, make_pending("web-3"), False),
        ({"by_extender": True}, make_pod("web-3"), True),
    ],
    ids=["waiting", "FailedCreate", "first pod", "deadline", "the extender is asked later", "it was asked"],
)
def test_when_a_hint_is_removed(fields: dict[str, Any], new: Pod | None, gone: bool) -> None:
    seen = replace(Seen(NOW + 5, make_view([], []), EXECUTION, None, new), **fields)
    assert hint_is_due_to_go(evicted(hinted=True, began=NOW), seen) is gone
    assert not hint_is_due_to_go(evicted(began=NOW), seen)


def test_siblings_are_all_pods_of_the_owner_and_the_pod_itself() -> None:
    other = make_pod("db-1")

    assert siblings(OLD, make_view([OLD, SIBLING, other], [])) == {OLD.uid, SIBLING.uid}


def test_a_pod_that_was_there_before_is_no_replacement() -> None:
    view = make_view([OLD, SIBLING], [])

    assert replacement(evicted(), view, BEFORE) is None


@pytest.mark.parametrize(
    "fields",
    [
        {"owner": make_owner("db-1a2b")},
        {"labels": {"app": "web", "pod-template-hash": "other"}},
        {"deleting": NOW},
    ],
)
def test_pods_of_another_owner_or_template_or_already_deleted_are_no_replacement(fields: dict[str, Any]) -> None:
    assert replacement(evicted(), make_view([SIBLING, make_pending("web-3", **fields)], []), BEFORE) is None


def test_the_owners_new_pod_of_the_same_template_is_the_replacement() -> None:
    new = make_pending("web-3")

    assert replacement(evicted(), make_view([SIBLING, new], []), BEFORE) is new
    assert replacement(evicted(), make_view([SIBLING, new], []), {*BEFORE, new.uid}) is None


def test_of_a_stateful_set_the_replacement_has_the_same_name() -> None:
    owner = make_owner("db", "StatefulSet")
    old = make_pod("db-0", owner=owner, labels={"controller-revision-hash": "r1"})
    labels = {"controller-revision-hash": "r1"}
    other = make_pending("db-1", owner=owner, labels=labels)
    again = make_pending("db-0", uid="uid-again", owner=owner, labels=labels)
    move = evicted(old)

    assert replacement(move, make_view([other], []), {old.uid}) is None
    assert replacement(move, make_view([other, again], []), {old.uid}) is again


def test_it_is_bound_when_the_replacement_has_a_node_and_done_when_that_is_ready() -> None:
    new = make_pending("web-3")
    move = followed(evicted(), SIBLING, new)
    assert (move.state, move.replacement, move.bound) == (MoveState.EVICTED, new.uid, None)

    move = followed(move, SIBLING, make_pod("web-3", node="n2", ready=False, phase="Pending"), now=NOW + 6)
    assert (move.state, move.bound) == (MoveState.BOUND, NOW + 6)

    move = followed(move, SIBLING, make_pod("web-3", node="n2"), now=NOW + 7)
    assert (move.state, move.ended) == (MoveState.DONE, NOW + 7)
    assert "as planned" in move.outcome


def test_a_replacement_that_others_bound_elsewhere_is_done_and_says_so() -> None:
    move = followed(evicted(), SIBLING, make_pod("web-3", node="n1"))

    assert move.state is MoveState.DONE
    assert "n1" in move.outcome
    assert "as planned" not in move.outcome


@pytest.mark.parametrize("fields", [None, {"deleting": NOW}, {"phase": "Failed"}])
def test_a_replacement_that_goes_before_it_is_ready_ends_the_move(fields: dict[str, Any] | None) -> None:
    move = followed(evicted(), SIBLING, make_pending("web-3"))

    gone = [] if fields is None else [make_pending("web-3", **fields)]
    move = followed(move, SIBLING, *gone)

    assert move.state is MoveState.FAILED
    assert "web-3" in move.outcome


def test_a_late_replacement_goes_on_when_it_is_ready() -> None:
    move = followed(evicted(), SIBLING, make_pending("web-3"))

    late = followed(move, SIBLING, make_pod("web-3", node="n2", ready=False), now=NOW + 180)
    assert late.state is MoveState.LATE
    assert followed(late, SIBLING, make_pod("web-3", node="n2"), now=NOW + 300).state is MoveState.DONE
    assert followed(late, SIBLING, now=NOW + 300).state is MoveState.FAILED


def test_without_any_replacement_by_the_deadline_it_is_late_too() -> None:
    terminating = make_pod("web-1", deleting=NOW)

    assert followed(evicted(), terminating, SIBLING, now=NOW + 179).state is MoveState.EVICTED
    late = followed(evicted(), terminating, SIBLING, now=NOW + 180)
    assert late.state is MoveState.LATE


def test_an_owner_that_is_deleted_meanwhile_ends_the_move() -> None:
    move = followed(evicted(), workloads=[])

    assert move.state is MoveState.FAILED
    assert "web-1a2b was deleted" in move.outcome


def test_an_owner_that_was_scaled_down_makes_no_replacement_and_does_not_halt() -> None:
    """As in a rollout: the old ReplicaSet stays, with no replicas."""
    owner = OLD.owner
    assert owner is not None
    scaled = [make_workload(owner, replicas=1)]

    move = followed(evicted(), make_pod("web-1", deleting=NOW), SIBLING, workloads=scaled, now=NOW + 180)

    assert move.state is MoveState.FAILED
    assert "web-1a2b was scaled down" in move.outcome


def test_an_unconfirmed_eviction_that_did_not_happen_does_not_halt() -> None:
    """The API did not answer; the pod is still there after the deadline, so it was not evicted."""
    assert followed(evicted(), OLD, SIBLING, now=NOW + 5).state is MoveState.EVICTED

    move = followed(evicted(), OLD, SIBLING, now=NOW + 180)

    assert move.state is MoveState.FAILED
    assert "was not evicted" in move.outcome


@pytest.mark.parametrize("stage", ["planned", "done", "failed", "skipped"])
def test_what_has_not_begun_or_has_ended_is_left_as_it_is(stage: str) -> None:
    move = make_move(OLD, "n2", stage)

    assert followed(move, SIBLING, make_pending("web-3"), now=NOW + 900) is move


def test_a_reservation_lasts_from_the_eviction_until_bound_or_expired() -> None:
    assert not make_move(OLD, "n2").reserves(NOW, EXECUTION)
    assert evicted().reserves(NOW + 119, EXECUTION)
    assert not evicted().reserves(NOW + 120, EXECUTION)
    assert not evicted(bound=NOW + 1).reserves(NOW + 2, EXECUTION)


def test_a_second_try_is_as_old_as_its_plan_and_for_the_same_reason() -> None:
    """Else a limit or a brake could hold it for a day, and every other plan with it."""
    undone = make_move(
        OLD,
        "n2",
        "undone",
        strategy=Strategy.SCALE_SURGE,
        planned=NOW - 60,
        began=NOW - 50,
        unhappy=True,
        came_back=True,
    )
    seen = Seen(NOW, make_view([OLD], []), EXECUTION, OLD, None, may_pin=True)
    again = next_step(undone, seen).move
    assert (again.state, again.hard, again.planned, again.unhappy) == (MoveState.PLANNED, True, NOW - 60, True)


def retiring(**fields: Any) -> tuple[Move, ClusterView, Pod, Pod]:
    """A release surge whose replacement is available: the move, what is seen, the released old pod and the new one."""
    assert OLD.owner is not None
    scaled = make_owner("web", "Deployment")
    released, new = replace_fields(OLD, owner=None), make_pod("web-3", node="n2")
    fields |= {"strategy": Strategy.RELEASE_SURGE, "scaled": scaled, "replicas": 2, "replacement": new.uid}
    move = make_move(OLD, "n2", "retiring", acknowledged=(Call.DETACH,), ready=NOW, **fields)
    view = make_view([released, SIBLING, new], [], workloads=[make_workload(OLD.owner), make_workload(scaled)])
    return move, view, released, new


@pytest.mark.parametrize("drained", [None, NOW])
def test_an_old_pod_that_cannot_be_ended_is_taken_back(drained: float | None) -> None:
    """A PDB that selects every pod, or an endpoint that stays: no other plan would be made as long as it lasts."""
    move, view, released, new = retiring(began=NOW - 60, drained=drained)
    now = NOW + EXECUTION.drain_delay + EXECUTION.ready_deadline
    waits = next_step(move, Seen(now - 1, view, EXECUTION, released, new, wanted=2))
    assert waits.move.state is MoveState.RETIRING
    assert next_step(move, Seen(now, view, EXECUTION, released, new, wanted=2)).move.state is MoveState.UNDOING


def test_the_drain_begins_when_the_endpoint_was_seen_gone_not_when_the_cycle_began() -> None:
    """The calls of the cycle took 4 s, on real nodes: the old pod was ended 1.5 s after it had left its Services."""
    move, view, released, new = retiring(began=NOW - 10)
    gone = ServedBy(({"app": "web"},), 0, NOW + 4)

    def at(now: float, before: Move) -> Step:
        return next_step(before, Seen(now, view, EXECUTION, released, new, wanted=2, old_served=gone))

    drained = at(NOW, move).move
    assert drained.drained == NOW + 4
    assert at(NOW + EXECUTION.drain_delay, drained).call is None
    assert at(NOW + 4 + EXECUTION.drain_delay, drained).call is Call.REMOVE
