"""`trigger: predictive`: a pod leaves before its probes fail, and wrong forecasts are counted."""

from __future__ import annotations

import pytest

from reactor.decision.cooldowns import Cooldowns
from reactor.decision.decide import Decision, decide
from reactor.decision.eligibility import Eligibility
from reactor.settings.model import Settings
from tests.support.cluster import make_node, make_pod
from tests.support.rig import Rig


def rig_of(trigger: str) -> Rig:
    rig = Rig(Settings.model_validate({"mode": "act", "decision": {"trigger": trigger}}))
    rig.sync(make_pod("web-1"), make_pod("web-2"), make_node("n1"), make_node("n2"))
    return rig


def load(rig: Rig, *shares: float) -> Decision:
    """The load of n1 by share of its CPU, every 15 seconds; web-2 uses a third of it."""
    for share in shares:
        rig.clock.set(rig.clock.now() + 15.0)
        cores = share * make_node("n1").allocatable["cpu"]
        rig.measure({"web-1": cores * 2 / 3, "web-2": cores / 3}, {"n1": cores, "n2": 0.1})
        rig.state.start_cycle()
    snapshot = rig.snapshot()
    return decide(Eligibility(snapshot, Cooldowns(), rig.settings))


RISING = tuple(0.5 + 0.03 * step for step in range(14))


@pytest.mark.parametrize(("trigger", "pods"), [("reactive", []), ("predictive", ["shop/web-2"])])
def test_a_pod_of_a_node_that_will_be_full_is_chosen(trigger: str, pods: list[str]) -> None:
    decision = load(rig_of(trigger), *RISING)
    assert [one.pod for one in decision.unhappy] == pods, "the smallest one that is enough"
    assert decision.predicted is bool(pods)
    if pods:
        assert "expected within 2 min by the trend" in decision.unhappy[0].cause


def test_a_level_is_no_trend() -> None:
    assert not load(rig_of("predictive"), *(0.85, 0.86) * 8).unhappy


def test_wrong_forecasts_are_counted_and_end_the_moves() -> None:
    rig = rig_of("predictive")
    foresight = rig.state.foresight
    before = foresight.trust
    for _ in range(3):
        load(rig, *(0.3 + 0.035 * step for step in range(14)))
        load(rig, *(0.3,) * 20)
    assert foresight.counted["wrong"] >= 2
    assert foresight.trust < before
    assert foresight.trust < 0.5
    assert not load(rig, *RISING).unhappy


def test_a_forecast_that_comes_true_is_right() -> None:
    rig = rig_of("predictive")
    load(rig, *RISING)
    load(rig, *(1.0,) * 12)
    assert rig.state.foresight.counted["right"] >= 1
    assert rig.state.foresight.counted["wrong"] == 0
