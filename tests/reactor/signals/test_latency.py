"""Which messages of meters count, for which pods, and which nodes a round has visited."""

from __future__ import annotations

from typing import Any

import pytest

from matching.problem import Role
from reactor.cluster.records import Pod
from reactor.signals.latency import LatencyRounds, LatencySignals
from reactor.signals.latency_messages import LatencyMessage, Refusal, encode_message, rfc3339_precise
from tests.support.clock import VirtualClock
from tests.support.cluster import make_pod, make_settings

LATENCY = {"broker": "mqtt://127.0.0.1:1883"}
APP = make_pod("app", namespace="edge", node="far", labels={"rematch.io/latency": "target"})
ECHO = make_pod("echo", namespace="edge", node="near", labels={"rematch.io/latency": "probe"})
OTHER = make_pod("other", namespace="edge", node="near", labels={})


class Heard:
    def __init__(self, *pods: Pod, **latency: Any) -> None:
        self.clock = VirtualClock()
        self.pods = {pod.uid: pod for pod in (pods or (APP, ECHO, OTHER))}
        self.settings = make_settings(planner={"name": "latency"}, latency={**LATENCY, **latency})
        self.signals = LatencySignals(lambda: self.settings, self.clock, self.pods.get)

    def hear(self, about: Pod, rtt: float | None = 0.2, age: float = 0.0, **changes: Any) -> Refusal | None:
        topic = changes.pop("topic", f"rematch/latency/{about.namespace}")
        fields: dict[str, Any] = {"namespace": about.namespace, "pod": about.name, "uid": about.uid, "rtt_seconds": rtt}
        fields["timestamp"] = rfc3339_precise(self.clock.now() - age)
        return self.signals.observe(topic, encode_message(LatencyMessage(**(fields | changes))))


def test_the_lower_of_the_last_two_measurements_of_each_pod_is_the_planners_input() -> None:
    heard = Heard()
    for app, echo in ((0.9, 0.1), (0.3, 0.2), (0.4, 0.8)):
        assert heard.hear(APP, app) is None
        assert heard.hear(ECHO, echo) is None
        heard.clock.set(heard.clock.now() + 1)
    latency = heard.signals.freeze(heard.pods.values(), heard.clock.now())
    assert latency is not None
    assert {pod: each.rtt for pod, each in latency.last.items()} == {"edge/app": 0.3, "edge/echo": 0.2}
    assert latency.roles == {"edge/app": Role.TARGET, "edge/echo": Role.PROBE}
    assert latency.known == {"far": 0.3, "near": 0.2}


def test_one_measurement_alone_or_two_far_apart_do_not_count() -> None:
    heard = Heard()
    heard.hear(APP)
    assert heard.signals.fresh() == 0
    heard.clock.set(heard.clock.now() + 31)
    heard.hear(APP)
    assert heard.signals.fresh() == 0
    assert not heard.signals.rounds.known
    heard.clock.set(heard.clock.now() + 1)
    heard.hear(APP)
    assert heard.signals.fresh() == 1


@pytest.mark.parametrize(
    ("changes", "refusal"),
    [
        ({"age": 31.0}, Refusal.LATE),
        ({"age": -6.0}, Refusal.FUTURE),
        ({"rtt": None}, Refusal.UNANSWERED),
        ({"rtt": -1.0}, Refusal.OUT_OF_RANGE),
        ({"topic": "rematch/latency/shop"}, Refusal.FOREIGN_NAMESPACE),
        ({"namespace": "shop"}, Refusal.FOREIGN_NAMESPACE),
        ({"namespace": "shop", "topic": "rematch/latency/shop"}, Refusal.UNKNOWN_POD),
        ({"pod": "echo"}, Refusal.UNKNOWN_POD),
        ({"uid": "gone"}, Refusal.UNKNOWN_POD),
    ],
)
def test_a_message_that_is_not_believed_has_a_reason(changes: dict[str, Any], refusal: Refusal) -> None:
    heard = Heard()
    assert heard.hear(APP, **changes) is refusal
    assert heard.signals.fresh() == 0


def test_repeated_and_overtaken_messages_do_not_count() -> None:
    heard = Heard()
    heard.hear(APP, 0.3, age=1.0)
    assert heard.hear(APP, 0.3) is None
    assert heard.hear(APP, 0.9) is Refusal.DUPLICATE
    assert heard.hear(APP, 0.9, age=3.0) is Refusal.LATE
    found = heard.signals.measured(APP.uid)
    assert found is not None
    assert found.rtt == 0.3


def test_a_pod_without_a_role_and_a_namespace_that_is_not_listened_to_are_refused() -> None:
    assert Heard().hear(OTHER) is Refusal.NO_ROLE
    assert Heard(namespaces=["shop"]).hear(APP) is Refusal.FOREIGN_NAMESPACE


def test_a_measurement_goes_with_its_pod_with_time_and_when_nothing_is_answered() -> None:
    heard = Heard()
    for age in (1.0, 0.0):
        heard.hear(APP, age=age)
        heard.hear(ECHO, age=age)
    assert heard.signals.fresh() == 2
    heard.signals.forget(APP.uid)
    assert heard.signals.measured(APP.uid) is None
    heard.clock.set(heard.clock.now() + 1)
    assert heard.hear(ECHO, None) is Refusal.UNANSWERED
    assert heard.signals.fresh() == 0
    heard.hear(APP, age=1.0)
    heard.hear(APP)
    heard.clock.set(heard.clock.now() + 31)
    latency = heard.signals.freeze(heard.pods.values(), heard.clock.now())
    assert latency is not None
    assert not latency.last


def test_without_a_broker_there_is_no_input() -> None:
    heard = Heard(broker="")
    assert heard.signals.freeze(heard.pods.values(), heard.clock.now()) is None


def test_a_node_is_visited_from_the_plan_on_and_not_after_a_failure() -> None:
    rounds = LatencyRounds(moved_at=0.0)
    rounds.reserve("m1", Role.TARGET, "far", "near", 10.0)
    rounds.reserve("m1", Role.TARGET, "far", "near", 11.0)
    assert (rounds.visited, rounds.moved_at) == ({"far", "near"}, 10.0)
    rounds.rolled_back("m1")
    assert rounds.visited == {"far"}


def test_a_failed_move_does_not_make_a_node_unvisited_that_was_visited_before() -> None:
    rounds = LatencyRounds(moved_at=0.0)
    rounds.reserve("m1", Role.TARGET, "far", "near", 1.0)
    rounds.arrived("m1", 2.0)
    rounds.reserve("m2", Role.TARGET, "middle", "near", 3.0)
    rounds.rolled_back("m2")
    assert rounds.visited == {"far", "near", "middle"}


def test_a_round_ends_after_the_quiet_time_and_not_during_a_move() -> None:
    rounds = LatencyRounds(moved_at=0.0)
    rounds.reserve("m1", Role.TARGET, "far", "near", 1.0)
    rounds.advance(100.0, quiet=30.0)
    assert rounds.visited
    rounds.arrived("m1", 100.0)
    rounds.advance(129.0, quiet=30.0)
    assert (rounds.number, rounds.visited, rounds.left) == (1, {"far", "near"}, {"far"})
    rounds.known["far"] = 0.3
    rounds.advance(130.0, quiet=30.0)
    assert (rounds.number, rounds.visited, rounds.left, rounds.known) == (2, set(), set(), {})


def test_a_node_that_a_probe_leaves_is_open_to_targets() -> None:
    rounds = LatencyRounds(moved_at=0.0)
    rounds.reserve("m1", Role.PROBE, "far", "near", 1.0)
    rounds.arrived("m1", 2.0)
    assert (rounds.visited, rounds.left) == ({"far", "near"}, set())


def test_moves_that_nobody_follows_any_more_are_rolled_back() -> None:
    rounds = LatencyRounds(moved_at=0.0)
    rounds.reserve("m1", Role.TARGET, "far", "near", 1.0)
    rounds.forget_others(())
    assert rounds.visited == {"far"}
