"""Whose marks count. That each forgotten surge is taken back, `test_move_exploration` and the contract tests show."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from reactor.cluster.records import Owner, Pod
from reactor.cluster.surge_writes import SURGE
from reactor.execution.surge_marks import PodMark, forgotten_surges, owner_mark
from reactor.state.moves import Move, MoveState
from tests.support.clock import NOW
from tests.support.cluster import make_node, make_pod, make_view, make_workload
from tests.support.moves import make_move

DEPLOYMENT = Owner("Deployment", "web", "uid-deployment")
REPLICA_SET = Owner("ReplicaSet", "web-a", "uid-a")


def found(*pods: Pod, surge: str = "", known: tuple[str, ...] = (), namespace: str = "shop") -> list[Move]:
    workloads = [
        make_workload(REPLICA_SET, replicas=3, owner=DEPLOYMENT, namespace=namespace),
        make_workload(DEPLOYMENT, replicas=3, surge=surge, namespace=namespace),
    ]
    view = make_view(pods, [make_node("n1")], workloads=workloads)
    return forgotten_surges(view, "rematch", known, NOW)


def released(**changed: Any) -> Pod:
    given = {"journal": "rematch", "move": "m1", "pod": "old", "owner": REPLICA_SET, "hash": "a", **changed}
    mark = msgspec.json.encode(PodMark(**given)).decode()
    return make_pod("web-old", uid="old", owner=None, annotations={SURGE: mark})


def test_a_released_pod_is_taken_back_with_its_labels() -> None:
    (move,) = found(released(labels=(("app", "web"),)))

    assert (move.id, move.state, move.pod.uid) == ("m1", MoveState.UNDOING, "old")
    assert (move.template_hash, move.detached, move.owner) == ("a", (("app", "web"),), REPLICA_SET)
    assert move.scaled == DEPLOYMENT


@pytest.mark.parametrize("pod", [released(journal="other"), released(pod="copied-from")])
def test_a_mark_of_another_journal_or_pod_means_nothing(pod: Pod) -> None:
    assert found(pod) == []


def test_a_mark_that_is_none_of_ours_means_nothing() -> None:
    assert found(make_pod("web-1", owner=None, annotations={SURGE: "{}"})) == []


def test_a_move_that_is_known_is_not_forgotten() -> None:
    assert found(released(), surge="rematch/m2/0", known=("m1", "m2")) == []


def test_a_tenant_cannot_name_an_owner_in_another_namespace() -> None:
    theirs = make_pod("bank-1", uid="theirs", owner=REPLICA_SET, namespace="bank")
    (move,) = found(released(), theirs, namespace="bank")

    assert (move.scaled, move.replacement) == (None, None)


def test_an_extra_replica_is_taken_back_by_the_owners_mark() -> None:
    old = make_pod("web-1", uid="uid-of-the-old-pod", owner=REPLICA_SET, created=NOW - 60)
    new = make_pod("web-2", uid="new", owner=REPLICA_SET, created=NOW)
    mark = owner_mark(make_move(old, "n2", "surging"), "rematch").partition("/")[2]
    (move,) = found(old, new, surge=mark)

    assert (move.state, move.pod.uid, move.replacement, move.replicas) == (MoveState.UNDOING, old.uid, "new", 2)
