"""With a planner that waives restraint: no cooldown, and no question whether a move can help."""

from __future__ import annotations

from typing import Any

import pytest

from reactor.decision.cooldowns import Backoff, Cooldowns, Lineage
from reactor.decision.decide import Decision, decide
from reactor.decision.wait_reasons import Reason
from reactor.settings.model import Settings
from tests.support.clock import NOW
from tests.support.cluster import GIB, make_eligibility, make_node, make_pod, make_settings, make_snapshot

PAPER = make_settings(planner={"name": "stable-paper"})
OURS = make_settings()


def decided(settings: Settings, **more: Any) -> Decision:
    """A failing pod on n1; n1 and n2 are idle."""
    facts: dict[str, Any] = {
        "failures": {"web-1": 10.0},
        "usage": {"web-1": (0.5, GIB)},
        "node_usage": {"n1": (0.3, GIB), "n2": (0.3, GIB)},
    }
    cooldowns = more.pop("cooldowns", None)
    snapshot = make_snapshot([make_pod()], [make_node("n1"), make_node("n2")], **(facts | more))
    return decide(make_eligibility(snapshot, settings, cooldowns))


def test_only_the_paper_waives_restraint() -> None:
    snapshot = make_snapshot([], [])
    assert make_eligibility(snapshot, OURS).restrained
    assert not make_eligibility(snapshot, PAPER).restrained


def test_whether_a_move_can_help_is_not_checked() -> None:
    assert [wait.reason for wait in decided(OURS).waits] == [Reason.APP_FAILS]
    assert [one.uid for one in decided(PAPER).unhappy] == ["uid-web-1"]


@pytest.mark.parametrize(
    "cooldowns",
    [
        Cooldowns(lineage={"uid-web-1": Lineage(NOW - 1, 5)}),
        Cooldowns(relieved={"n1": NOW - 1}),
        Cooldowns(backoffs={"uid-web-1": Backoff(NOW + 30, Reason.NO_BETTER_NODE, "")}),
        Cooldowns(backoffs={"uid-web-1": Backoff(NOW + 30, Reason.OBSERVED, "")}),
    ],
)
def test_no_pod_cools_down(cooldowns: Cooldowns) -> None:
    assert not decided(OURS, cooldowns=cooldowns).rematch
    assert decided(PAPER, cooldowns=cooldowns).rematch


@pytest.mark.parametrize("reason", [Reason.PDB, Reason.EVICTION_FAILED])
def test_what_the_api_server_refused_is_not_tried_again_at_once(reason: Reason) -> None:
    cooldowns = Cooldowns(backoffs={"uid-web-1": Backoff(NOW + 30, reason, "no")})
    assert [wait.until for wait in decided(PAPER, cooldowns=cooldowns).waits] == [NOW + 30]
    over = Cooldowns(backoffs={"uid-web-1": Backoff(NOW, reason, "no")})
    assert decided(PAPER, cooldowns=over).rematch


def test_evidence_and_fresh_metrics_are_still_needed() -> None:
    assert [wait.reason for wait in decided(PAPER, failures={"web-1": 1.9}).waits] == [Reason.TOO_LITTLE_EVIDENCE]
    assert [wait.reason for wait in decided(PAPER, usage={}).waits] == [Reason.NO_FRESH_METRICS]
