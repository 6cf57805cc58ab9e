"""With a planner that waives restraint: no cooldown, and no question whether a move can help."""

from __future__ import annotations

from typing import Any

import pytest

from reactor.decision.decide import Decision, decide, restrained
from reactor.decision.reasons import Reason
from reactor.settings.model import Settings
from reactor.state.moves import Lineage, Ongoing, Rest
from tests.support.clock import NOW
from tests.support.cluster import GIB, make_node, make_pod, make_settings, make_snapshot

PAPER = make_settings(planner={"name": "stable-paper"})
OURS = make_settings()


def decided(settings: Settings, **more: Any) -> Decision:
    """A failing pod on an idle n1 beside an idle n2."""
    facts: dict[str, Any] = {
        "failures": {"web-1": 10.0},
        "usage": {"web-1": (0.5, GIB)},
        "node_usage": {"n1": (0.3, GIB), "n2": (0.3, GIB)},
    }
    return decide(make_snapshot([make_pod()], [make_node("n1"), make_node("n2")], **(facts | more)), settings)


def test_who_is_restrained() -> None:
    assert restrained(OURS)
    assert not restrained(PAPER)


def test_whether_a_move_can_help_is_not_asked() -> None:
    assert [wait.reason for wait in decided(OURS).waits] == [Reason.MOVE_CANNOT_HELP]
    assert [one.uid for one in decided(PAPER).unhappy] == ["uid-web-1"]


@pytest.mark.parametrize(
    "ongoing",
    [
        Ongoing(lineage={"uid-web-1": Lineage(NOW - 1, 5)}),
        Ongoing(relieved={"n1": NOW - 1}),
        Ongoing(resting={"uid-web-1": Rest(NOW + 30, Reason.NO_BETTER_PLACE, "")}),
        Ongoing(resting={"uid-web-1": Rest(NOW + 30, Reason.OBSERVED, "")}),
    ],
)
def test_nobody_cools_down(ongoing: Ongoing) -> None:
    assert not decided(OURS, ongoing=ongoing).rematch
    assert decided(PAPER, ongoing=ongoing).rematch


@pytest.mark.parametrize("reason", [Reason.PDB, Reason.EVICTION_FAILED])
def test_what_the_api_server_refused_is_not_tried_again_at_once(reason: Reason) -> None:
    ongoing = Ongoing(resting={"uid-web-1": Rest(NOW + 30, reason, "no")})
    assert [wait.until for wait in decided(PAPER, ongoing=ongoing).waits] == [NOW + 30]
    over = Ongoing(resting={"uid-web-1": Rest(NOW, reason, "no")})
    assert decided(PAPER, ongoing=over).rematch


def test_evidence_and_fresh_metrics_are_still_needed() -> None:
    assert [wait.reason for wait in decided(PAPER, failures={"web-1": 1.9}).waits] == [Reason.TOO_LITTLE_EVIDENCE]
    assert [wait.reason for wait in decided(PAPER, usage={}).waits] == [Reason.NO_FRESH_METRICS]
