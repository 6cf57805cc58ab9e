from __future__ import annotations

import math
from dataclasses import replace

from loadtests.experiments.stable.driver import MoveSpan, Observation
from loadtests.experiments.stable.measurement import ControllerCounter, MoveCounts, lost_in_moves
from loadtests.workloads.samples import RequestOutcome, RequestSample
from reactor.decision.decide import Decision, Trigger
from reactor.execution.cycle_outcome import Outcome
from reactor.state.moves import Move
from tests.support.cluster import make_pod
from tests.support.moves import make_move

POD = make_pod("a-1")


def outcome_of(*moves: Move) -> Outcome:
    return Outcome(Decision(0.0, Trigger.UNHAPPY), executed=moves)


def failures(began: float, *starts: float) -> Observation:
    return Observation([RequestSample("a", at, 2.0, RequestOutcome.REFUSED) for at in starts], began)


def lost(seen: Observation, *spans: MoveSpan) -> int:
    return lost_in_moves(Observation(seen.samples, seen.began, spans=spans))


def test_a_move_is_counted_in_the_step_in_which_it_ends_and_its_span_is_kept() -> None:
    counter = ControllerCounter()
    counter.count(outcome_of(make_move(POD, "n2", "evicted", evicted=108.0)))
    assert counter.take() == MoveCounts()
    assert counter.spans() == (MoveSpan("a", 108.0, math.inf),)
    counter.count(outcome_of(make_move(POD, "n2", "done", evicted=108.0, ended=112.0)))
    assert counter.take() == MoveCounts(moves=1)
    assert counter.take() == MoveCounts()
    assert counter.spans() == (MoveSpan("a", 108.0, 112.0),)


def test_a_move_that_came_to_nothing_has_no_span() -> None:
    counter = ControllerCounter()
    counter.count(outcome_of(make_move(POD, "n2", "evicted", evicted=108.0)))
    counter.count(outcome_of(make_move(POD, "n2", "failed", evicted=108.0, ended=112.0)))
    counter.count(outcome_of(make_move(POD, "n3", "skipped", ended=113.0)))
    assert (counter.take(), counter.spans()) == (MoveCounts(), ())


def test_requests_lost_by_a_move_are_the_moved_app_s_while_it_moves() -> None:
    others = [RequestSample("b", 1.5, 2.0, RequestOutcome.TIMEOUT), RequestSample("a", 1.6, 0.1, RequestOutcome.OK)]
    seen = Observation([*failures(100.0, 0.5, 1.5, 4.0).samples, *others], 100.0)
    assert lost(seen, MoveSpan("a", 101.0, 102.5)) == 1


def test_a_request_that_only_took_too_long_is_not_lost_to_the_move() -> None:
    slow = Observation([RequestSample("a", 1.5, 2.0, RequestOutcome.TIMEOUT)], 100.0)
    assert lost(slow, MoveSpan("a", 101.0, 102.5)) == 0


def test_a_surge_counts_from_its_first_call() -> None:
    counter = ControllerCounter()
    surge = make_move(POD, "n2", "surged")
    counter.count(outcome_of(replace(surge, began=107.0)))
    assert counter.spans() == (MoveSpan("a", 107.0, math.inf),)


def test_a_move_over_the_border_of_two_steps_costs_requests_of_both() -> None:
    move = MoveSpan("a", 108.0, 110.5)
    assert lost(failures(100.0, 7.0, 8.5, 9.5), move) == 2
    assert lost(failures(110.0, 0.2, 1.2, 2.0), move) == 2, "until a second after its replacement is Ready"


def test_a_move_under_way_has_no_end_yet() -> None:
    assert lost(failures(100.0, 7.0, 9.5), MoveSpan("a", 108.0, math.inf)) == 1
