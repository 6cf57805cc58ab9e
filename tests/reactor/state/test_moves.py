"""Moves as values."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from matching.plan import PlannedMove
from matching.problem import Strategy
from reactor.cluster.records import Owner
from reactor.cluster.surge_writes import OwnerNow
from reactor.cluster.writes import Eviction, EvictionAnswer
from reactor.execution.move_states import MAX_ENTRY, after_eviction, begun, journal_entry, planned
from reactor.state.moves import Move, MoveState, PodRef
from tests.support.clock import NOW
from tests.support.cluster import make_node, make_owner, make_pod, make_snapshot, make_view
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
    owner = make_owner(name, uid=uid)
    pod = make_pod(name, uid=uid, namespace="s" * 63, node=name, owner=owner)
    pods = [make_pod(name, uid=f"{number:036}", namespace="s" * 63, owner=owner) for number in range(32)]
    planned_move = PlannedMove(pod.key, uid, name, name, 1, ("reason " * 100,) * 50)
    view = make_view([pod, *pods[1:]], [make_node(name)])
    move = planned("p" * 12, planned_move, pod, make_snapshot([pod, *pods[1:]], [make_node(name)]))
    refused = after_eviction(move, EvictionAnswer(Eviction.FORBIDDEN, "message " * 1000), NOW)
    begins = replace(refused, strategy=Strategy.SCALE_SURGE)
    begins = begun(begins, view, NOW, view.workloads[uid], OwnerNow("1", 1, 32, settled=True))
    full = replace(
        begins, evicted=NOW, bound=NOW, ready=NOW, replacement=uid, replacement_key=pod.key, old_cost="-2147483647"
    )
    full = replace(full, new_cost="-2147483647", detached=(("k" * 140, "v" * 60),), drained=NOW, settling=NOW)

    assert len(full.siblings) == 32
    assert len(msgspec.json.encode(journal_entry(full))) < MAX_ENTRY


def test_an_ordinary_move_is_journaled_as_it_is() -> None:
    assert journal_entry(FULL) == FULL


def test_a_version_that_does_not_know_a_field_yet_reads_the_others() -> None:
    document = msgspec.json.decode(msgspec.json.encode(FULL)) | {"invented": "later"}
    early = {field: value for field, value in document.items() if field not in ("version", "began", "hinted")}

    assert msgspec.convert(document, Move, strict=False) == FULL
    assert msgspec.convert(early, Move, strict=False) == FULL


def test_the_key_names_the_pod_as_kubectl_does() -> None:
    assert FULL.pod.key == "shop/web-1"
