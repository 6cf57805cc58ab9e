"""Moves as values."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from matching.plan import PlannedMove
from matching.problem import Strategy
from reactor.cluster.records import Owner
from reactor.cluster.writes import Eviction, EvictionAnswer
from reactor.execution.move_states import after_eviction, planned
from reactor.state.moves import Move, MoveState, PodRef
from tests.support.clock import NOW
from tests.support.cluster import make_node, make_owner, make_pod, make_view
from tests.support.moves import make_move

FULL = Move(
    "0123456789abcdef",
    "0123456789ab",
    PodRef("shop", "web-1", "uid-web-1"),
    Owner("ReplicaSet", "web-1a2b", "uid-rs"),
    "1a2b",
    "Deployment/shop/web",
    "n1",
    "n2",
    Strategy.EVICT,
    ("because",),
    MoveState.DONE,
    Eviction.ACCEPTED,
    3.0,
    NOW,
    NOW + 1,
    NOW + 2,
    "uid-web-2",
    "shop/web-2",
    "shop/web-2 is Ready on n2, as planned",
)


@pytest.mark.parametrize("move", [FULL, make_move(make_pod(), "n2"), make_move(make_pod(owner=None), "n2")])
def test_a_move_can_be_written_and_read_as_json(move: Move) -> None:
    assert msgspec.json.decode(msgspec.json.encode(move), type=Move) == move


def test_a_move_is_small_whatever_the_names_and_messages_are() -> None:
    name, uid = "n" * 253, "u" * 36
    pod = make_pod(name, uid=uid, namespace="s" * 63, node=name, owner=make_owner(name, uid=uid))
    planned_move = PlannedMove(pod.key, uid, name, name, 1, ("reason " * 100,) * 50)
    move = planned("p" * 12, planned_move, pod, make_view([pod], [make_node(name)]), "reason " * 100)
    refused = after_eviction(move, EvictionAnswer(Eviction.FORBIDDEN, "message " * 1000), NOW)
    replaced = replace(refused, evicted=NOW, bound=NOW, replacement=uid, replacement_key=pod.key)

    assert len(msgspec.json.encode(replaced)) < 4096


def test_the_key_names_the_pod_as_kubectl_does() -> None:
    assert FULL.pod.key == "shop/web-1"
