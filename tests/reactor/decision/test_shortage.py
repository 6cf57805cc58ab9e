"""Full is full: pods that no placement helps wait, longer each time, until the nodes or the load change."""

from __future__ import annotations

from dataclasses import replace

from matching.plan import Missing, Plan, Stay
from reactor.decision.cooldowns import Cooldowns
from reactor.decision.wait_reasons import Reason
from reactor.state.snapshot import Snapshot
from tests.support.clock import NOW
from tests.support.cluster import make_node, make_pod, make_settings, make_snapshot
from tests.support.moves import make_plan
from tests.support.rig import Rig

WEB = make_pod("web-1", node="n1")
SETTINGS = make_settings(mode="act")
COOLDOWN = SETTINGS.decision.cooldown


def _snapshot(
    cores: float = 1.0, now: float = NOW, failures: float = 10.0, nodes: tuple[str, ...] = ("n1",)
) -> Snapshot:
    return make_snapshot(
        [WEB],
        [make_node(name) for name in nodes],
        failures={"web-1": failures} if failures else {},
        node_usage=dict.fromkeys(nodes, (cores, 1e9)),
        now=now,
    )


def _full_plan() -> Plan:
    stay = Stay(WEB.key, WEB.uid, "n1", "unhappy")
    return replace(make_plan(), stays=(stay,), missing=Missing((WEB.key,), {"cpu": 1.4}, "n1", 1))


def _full(times: int = 1) -> Cooldowns:
    cooldowns = Cooldowns()
    for _ in range(times):
        cooldowns = cooldowns.after_shortage(_full_plan(), _snapshot(), SETTINGS)
    return cooldowns


def test_pods_that_nothing_helps_wait_with_a_reason_that_says_what_is_missing() -> None:
    backoff = _full().backoffs[WEB.uid]
    assert backoff.reason is Reason.CLUSTER_FULL
    assert backoff.until == NOW + COOLDOWN
    assert backoff.text == "1.4 cpu missing for 1 unhappy pod (shop/web-1); one node like n1 would cure 1 pod"


def test_the_wait_doubles_and_has_an_end() -> None:
    assert _full(2).backoffs[WEB.uid].until == NOW + 2 * COOLDOWN
    assert _full(40).backoffs[WEB.uid].until <= NOW + max(600.0, COOLDOWN)


def test_a_change_of_nodes_or_load_makes_it_look_again_and_noise_does_not() -> None:
    full = _full()
    for same in (_snapshot(), _snapshot(cores=1.01)):
        assert WEB.uid in full.judged(same, SETTINGS)[0].backoffs
    for changed in (_snapshot(nodes=("n1", "n2")), _snapshot(cores=2.0)):
        again = full.judged(changed, SETTINGS)[0]
        assert again.backoffs == {}
        assert again.shortage is not None


def test_it_is_over_when_the_pods_are_happy_or_a_plan_helps_all() -> None:
    assert _full().judged(_snapshot(failures=0.0), SETTINGS)[0].shortage is None
    assert _full().after_shortage(make_plan(), _snapshot(), SETTINGS).shortage is None


def test_one_event_and_a_metric_that_goes_back_to_zero() -> None:
    rig, snapshot = Rig(), _snapshot()

    def missing() -> float | None:
        return rig.instruments.registry.get_sample_value("rematch_missing_capacity", {"resource": "cpu"})

    assert missing() == 0
    for times in (1, 2, 3):
        rig.recorder.record_shortage(_full(times).shortage, snapshot)
    assert missing() == 1.4
    assert rig.events._queue.qsize() == 1
    rig.recorder.record_shortage(None, snapshot)
    assert missing() == 0
