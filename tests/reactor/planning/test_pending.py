"""Pending pods: which are ours to bind, and which fit on the node that is reserved for them."""

from __future__ import annotations

from typing import Any

import pytest

from matching.problem import PodTerm, Requirement, Rules, Selector, Term
from reactor.cluster.records import Node, Pod
from reactor.planning.pending import ReservationCheck, check_reservations, pending_pods
from reactor.state.moves import ActiveMoves
from tests.support.clock import NOW
from tests.support.cluster import GIB, make_node, make_pending, make_pod, make_settings, make_snapshot
from tests.support.moves import active_moves, make_move

NODES = [make_node("n1"), make_node("n2")]
WEB, DB = make_pod("web-1"), make_pod("db-1")
SETTINGS = make_settings()


def reserved(*pods: Pod, target: str = "n2") -> ActiveMoves:
    """For each evicted pod, its replacement `<app>-2` has a node reserved."""
    return active_moves(
        {
            make_move(pod, target, "evicted", evicted=NOW, replacement=f"uid-{pod.name.partition('-')[0]}-2"): pod
            for pod in pods
        }
    )


def checked(*pods: Pod, moves: ActiveMoves, nodes: list[Node] | None = None) -> ReservationCheck:
    snapshot = make_snapshot(pods, nodes or NODES, moves=moves)
    return check_reservations(pending_pods(snapshot, SETTINGS), snapshot, SETTINGS)


def test_pending_pods_of_ours_have_the_node_that_is_reserved_for_them() -> None:
    moves = active_moves({make_move(WEB, "n2", "evicted", evicted=NOW, replacement="uid-web-2"): WEB})
    pods = [make_pending("web-2"), make_pending("db-2"), make_pending("x-1", unsupported=("volumes",))]

    pending = pending_pods(make_snapshot(pods, NODES, moves=moves), make_settings())
    assert dict(pending.reserved_nodes) == {"uid-web-2": "n2", "uid-db-2": None}
    assert names_of(pending.unsupported) == ["x-1"]

    expired = make_snapshot(pods, NODES, moves=moves, now=NOW + 120)
    assert pending_pods(expired, make_settings()).reserved_nodes["uid-web-2"] is None


@pytest.mark.parametrize(
    "fields",
    [
        {"scheduler_name": "default-scheduler"},
        {"gates": ("hold",)},
        {"deleting": NOW},
        {"phase": "Failed"},
        {"node": "n1"},
    ],
)
def test_a_pod_that_is_not_ours_to_bind_is_left_alone(fields: dict[str, Any]) -> None:
    pending = pending_pods(make_snapshot([make_pending("web-1", **fields)], NODES), make_settings())

    assert not pending.reserved_nodes
    assert not pending.unsupported


def test_a_pod_of_ours_is_bound_even_when_it_is_not_managed() -> None:
    settings = make_settings(managed={"namespaces": ["bank"]})

    assert pending_pods(make_snapshot([make_pending("web-1")], NODES), settings).reserved_nodes == {"uid-web-1": None}


def names_of(pods: tuple[Pod, ...]) -> list[str]:
    return [pod.name for pod in pods]


def test_a_replacement_is_bound_to_the_node_reserved_for_it() -> None:
    for target in ("n1", "n2"):
        found = checked(make_pending("web-2"), moves=reserved(WEB, target=target))

        assert [(move.uid, move.source, move.target) for move in found.bindable] == [("uid-web-2", None, target)]
        assert found.unreserved == ()
        assert [each.move.target for each in found.kept] == [target]


def test_a_pod_without_a_reservation_is_for_the_matching() -> None:
    found = checked(make_pending("web-2"), make_pending("db-2"), moves=reserved(WEB))

    assert [move.uid for move in found.bindable] == ["uid-web-2"]
    assert found.unreserved == ("uid-db-2",)


@pytest.mark.parametrize(
    "n2",
    [
        None,
        make_node("n2", ready=False),
        make_node("n2", unschedulable=True),
        make_node("n2", cpu=0.1),
        make_node("n2", labels={"zone": "b"}),
    ],
)
def test_a_reservation_that_does_not_hold_any_more_is_given_up(n2: Node | None) -> None:
    in_zone_a = Rules(node_affinity=(Term((Requirement("zone", "In", ("a",)),)),))
    pending = make_pending("web-2", rules=in_zone_a if n2 is not None and "zone" in n2.labels else Rules())

    found = checked(pending, moves=reserved(WEB), nodes=[make_node("n1"), *([n2] if n2 else [])])

    assert found == ReservationCheck((), ("uid-web-2",), ())


def test_rules_between_pods_are_checked_on_the_reserved_node() -> None:
    apart = PodTerm("kubernetes.io/hostname", Selector((Requirement("app", "In", ("db",)),)))
    pending = make_pending("web-2", rules=Rules(pod_anti_affinity=(apart,)))
    snapshot = make_snapshot([pending, make_pod("db-1", node="n2")], NODES, moves=reserved(WEB))

    found = check_reservations(pending_pods(snapshot, SETTINGS), snapshot, SETTINGS)

    assert found.unreserved == (pending.uid,)


def test_a_replacement_leaves_the_room_that_is_reserved_for_others() -> None:
    big = {"cpu": 3.0, "memory": GIB}
    other = make_pod("db-1", requests=big)

    found = checked(make_pending("web-2", requests=big), moves=reserved(WEB, other))

    assert found.unreserved == ("uid-web-2",)
    assert [each.pod for each in found.kept] == [other]


def test_of_two_that_do_not_fit_together_any_more_one_is_bound() -> None:
    big = {"cpu": 3.0, "memory": GIB}
    web, db = make_pod("web-1", requests=big), make_pod("db-1", requests=big)
    pending = (make_pending("web-2", requests=big), make_pending("db-2", requests=big))

    found = checked(*pending, moves=reserved(web, db))

    assert [move.uid for move in found.bindable] == ["uid-db-2"]
    assert found.unreserved == ("uid-web-2",)
    assert [each.pod for each in found.kept] == [db]
