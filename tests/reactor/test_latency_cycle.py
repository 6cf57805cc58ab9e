"""From measured round trips to moves: a step of the planner `latency` in a cycle, and the round that follows it."""

from __future__ import annotations

from reactor.cluster.records import Pod
from reactor.decision.decide import Trigger
from reactor.signals.latency_messages import LatencyMessage, encode_message, rfc3339_precise
from tests.support.cluster import make_node, make_owner, make_pod, make_settings
from tests.support.rig import Rig

NODES = ("far", "middle", "near")


def pod(name: str, node: str, role: str) -> Pod:
    return make_pod(name, node=node, labels={"app": name, "rematch.io/latency": role}, owner=make_owner(f"{name}-1a2b"))


APP, NEAR, MIDDLE = pod("app", "far", "target"), pod("echo1", "near", "probe"), pod("echo2", "middle", "probe")


def rig() -> Rig:
    settings = make_settings(
        mode="act",
        planner={"name": "latency"},
        decision={"cooldown": 0, "settle": 0},
        latency={"broker": "mqtt://127.0.0.1"},
    )
    made = Rig(settings)
    made.sync(*(make_node(name) for name in NODES), APP, NEAR, MIDDLE)
    made.measure({each.name: 0.1 for each in (APP, NEAR, MIDDLE)}, dict.fromkeys(NODES, 0.5))
    return made


def hear(rig: Rig, pod: Pod, rtt: float) -> None:
    """Twice: one measurement alone does not count."""
    for ago in (1.0, 0.0):
        stamp = rfc3339_precise(rig.clock.now() - ago)
        message = LatencyMessage(namespace="shop", pod=pod.name, uid=pod.uid, timestamp=stamp, rtt_seconds=rtt)
        assert rig.state.latency.observe("rematch/latency/shop", encode_message(message)) is None


async def test_the_farthest_target_goes_to_the_nearest_probe_and_its_nodes_are_visited() -> None:
    made = rig()
    for each, rtt in ((APP, 0.8), (NEAR, 0.1), (MIDDLE, 0.4)):
        hear(made, each, rtt)
    outcome = await made.run_cycle(Trigger.INTERVAL)
    assert outcome.rematch is not None
    moves = {move.pod: move.target for move in outcome.rematch.plan.moves}
    assert moves == {"shop/app": "near", "shop/echo1": "far"}
    assert made.state.latency.rounds.visited == {"far", "near"}


async def test_without_enough_fresh_measurements_nobody_moves() -> None:
    made = rig()
    for each, rtt in ((APP, 0.8), (NEAR, 0.1), (MIDDLE, 0.4)):
        hear(made, each, rtt)
    made.clock.set(made.clock.now() + 31)
    made.measure({each.name: 0.1 for each in (APP, NEAR, MIDDLE)}, dict.fromkeys(NODES, 0.5))
    outcome = await made.run_cycle(Trigger.INTERVAL)
    assert outcome.rematch is not None
    assert not outcome.rematch.plan.moves
    assert not made.state.latency.rounds.visited


async def test_a_probe_tries_a_new_node_and_a_move_that_came_to_nothing_is_no_visit() -> None:
    made = rig()
    for each, rtt in ((APP, 0.2), (NEAR, 0.1), (MIDDLE, 0.4)):
        hear(made, each, rtt)
    made.put(make_node("new"))
    made.measure({each.name: 0.1 for each in (APP, NEAR, MIDDLE)}, dict.fromkeys((*NODES, "new"), 0.5))
    outcome = await made.run_cycle(Trigger.INTERVAL)
    assert {(move.pod.key, move.target) for move in outcome.moves} == {("shop/echo2", "new")}
    assert made.state.latency.rounds.visited == {"middle", "new"}
    made.remove(MIDDLE)
    assert made.state.latency.measured(MIDDLE.uid) is None
    made.executor.drop_all()
    await made.run_cycle()
    assert made.state.latency.rounds.visited == {"middle"}
