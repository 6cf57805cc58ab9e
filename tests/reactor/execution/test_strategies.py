"""How moves are carried out: each strategy starts, follows and undoes them."""

from __future__ import annotations

import pytest

from matching.problem import Strategy
from reactor.cluster.writes import Eviction, EvictionAnswer
from reactor.execution.move_states import STATE_AFTER_EVICTION
from reactor.execution.strategies import Evict, strategies
from reactor.settings.model import Execution
from reactor.state.moves import MoveState
from tests.support.clock import NOW
from tests.support.cluster import make_node, make_pod, make_view
from tests.support.moves import make_move
from tests.support.writer import FakeWriter

WEB = make_pod("web-1")


def test_every_strategy_of_the_matching_can_be_carried_out() -> None:
    assert set(strategies(FakeWriter().writer)) == set(Strategy)


def test_every_answer_of_the_eviction_api_has_a_state() -> None:
    assert set(STATE_AFTER_EVICTION) == set(Eviction)


@pytest.mark.parametrize("outcome", list(Eviction))
async def test_starting_a_move_evicts_the_pod(outcome: Eviction) -> None:
    writer = FakeWriter()
    writer.evictions["web-1"] = EvictionAnswer(outcome, "the answer", 7.0)

    move = await Evict(writer.writer).start(make_move(WEB, "n2"), WEB, NOW)

    assert writer.evicted == ["web-1"]
    assert (move.state, move.answer, move.retry_after) == (STATE_AFTER_EVICTION[outcome], outcome, 7.0)
    assert (move.ended is None) == move.active


def test_following_a_move_brings_it_up_to_the_cluster() -> None:
    ready = make_pod("web-2", node="n2")
    view = make_view([ready], [make_node("n2")])
    flying = make_move(WEB, "n2", "evicted", evicted=NOW)

    move = Evict(FakeWriter().writer).follow(flying, view, NOW + 5, Execution(), {WEB.uid})

    assert (move.state, move.replacement) == (MoveState.DONE, ready.uid)


async def test_only_a_move_that_has_not_started_can_be_undone() -> None:
    evict, flying = Evict(FakeWriter().writer), make_move(WEB, "n2", "evicted", evicted=NOW)

    assert await evict.undo(flying, NOW, "mode is observe now") is flying
    undone = await evict.undo(make_move(WEB, "n2"), NOW, "mode is observe now")
    assert (undone.state, undone.ended, undone.outcome) == (MoveState.SKIPPED, NOW, "mode is observe now")
