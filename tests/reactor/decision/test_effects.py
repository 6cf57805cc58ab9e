"""Whether moves helped, and what is remembered of those that did not."""

from __future__ import annotations

from dataclasses import replace

from reactor.decision.effects import HALF_LIFE, Effects
from reactor.state.moves import Move
from reactor.state.snapshot import Snapshot
from tests.support.clock import NOW
from tests.support.cluster import make_node, make_pod, make_snapshot
from tests.support.moves import make_move

NODES = [make_node("n1"), make_node("n2")]
WAITS = 300.0


def moved(*, unhappy: bool = True) -> Move:
    return make_move(make_pod("web-1"), "n2", "done", replacement="uid-web-2", ended=NOW, unhappy=unhappy)


def seen(at: float, *, failures: float = 0.0, gone: bool = False) -> Snapshot:
    pods = [] if gone else [make_pod("web-2", node="n2")]
    return make_snapshot(pods, NODES, now=at, failures={"web-2": failures} if failures else {})


def test_a_replacement_that_stays_happy_was_helped() -> None:
    effects = Effects().after_moves([moved()], WAITS)
    effects, early = effects.judge(seen(NOW + WAITS - 1))
    assert early == ()
    effects, (verdict,) = effects.judge(seen(NOW + WAITS))
    assert verdict.helped
    assert effects == Effects()


def test_a_replacement_that_is_unhappy_again_was_not_helped_and_its_node_is_avoided() -> None:
    effects, (verdict,) = Effects().after_moves([moved()], WAITS).judge(seen(NOW + 30, failures=20.0))
    assert not verdict.helped
    assert effects.useless(NOW + 30) == {moved().workload: ("n2",)}


def test_what_did_not_help_fades() -> None:
    effects, _ = Effects().after_moves([moved()], WAITS).judge(seen(NOW, failures=20.0))
    assert effects.useless(NOW + HALF_LIFE * 1.01) == {}
    forgotten, _ = effects.judge(seen(NOW + 3 * HALF_LIFE))
    assert forgotten == Effects()


def test_a_later_success_clears_the_node() -> None:
    effects, _ = Effects().after_moves([moved()], WAITS).judge(seen(NOW, failures=20.0))
    effects = effects.after_moves([replace(moved(), ended=NOW + 600)], WAITS)
    effects, (verdict,) = effects.judge(seen(NOW + 600 + WAITS))
    assert verdict.helped
    assert effects.failures == {}


def test_a_replacement_that_is_gone_is_not_judged() -> None:
    effects, verdicts = Effects().after_moves([moved()], WAITS).judge(seen(NOW + 1, gone=True))
    assert (effects, verdicts) == (Effects(), ())


def test_a_happy_pod_that_made_room_is_not_on_trial() -> None:
    assert Effects().after_moves([moved(unhappy=False)], WAITS) == Effects()
