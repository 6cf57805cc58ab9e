from __future__ import annotations

from typing import Any

from reactor.background.steering_check import CANARY_EVERY, DISCOVER_EVERY, EXTENDER_EVERY, FIRST_RETRY, SteeringCheck
from reactor.cluster.extender_sign import ExtenderSign
from reactor.cluster.hints import Hint, HintWriter
from reactor.cluster.steering_policy import Discovery, SteeringPolicy
from reactor.errors import ClusterError, Unreachable
from reactor.execution.steering import HintSteering
from reactor.record.metrics import Instruments
from reactor.settings.model import Mode, Settings
from reactor.state.steering import SteeringStatus, Way
from tests.support.clock import VirtualClock
from tests.support.cluster import make_pod, make_settings

ACT: dict[str, Any] = {"mode": "act", "managed": {"anySchedulerNamespaces": ["*"]}}


class FakePolicy(SteeringPolicy):
    """Answers as a test orders it."""

    def __init__(self) -> None:
        self.installed: Discovery | ClusterError = Discovery("", "1/1")
        self.stamps = ""
        self.canaries = 0
        self.removed = 0
        self.discoveries = 0

    async def discover(self) -> Discovery:
        self.discoveries += 1
        if isinstance(self.installed, ClusterError):
            raise self.installed
        return self.installed

    async def remove_canaries(self) -> None:
        self.removed += 1

    async def try_canary(self) -> str:
        self.canaries += 1
        return self.stamps


class FakeSign(ExtenderSign):
    """Says what a test orders it to."""

    def __init__(self) -> None:
        self.says: str | ClusterError = ""
        self.looks = 0

    async def problem(self) -> str:
        self.looks += 1
        if isinstance(self.says, ClusterError):
            raise self.says
        return self.says


class FakeHints(HintWriter):
    def __init__(self, **hints: Hint) -> None:
        self.hints: dict[str, Hint] = hints

    async def change(self, change: Any, *, writer: str | None = None) -> None:
        after = {**self.hints, **change(self.hints)}
        self.hints = {uid: hint for uid, hint in after.items() if hint is not None}


class Bench:
    def __init__(self, **settings: Any) -> None:
        self.settings: Settings = make_settings(**settings)
        self.clock, self.policy, self.instruments = VirtualClock(), FakePolicy(), Instruments()
        self.hints = FakeHints(old=Hint("left-over", "n1"), new=Hint("active", "n1"))
        self.steering = HintSteering(self.hints, lambda name: name, lambda: self.settings.mode)
        self.sign = FakeSign()
        self.check = SteeringCheck(
            self.policy,
            self.sign,
            self.steering,
            lambda: ["active"],
            lambda: self.settings,
            self.clock,
            self.instruments,
        )

    async def after(self, seconds: float) -> None:
        self.clock.set(self.clock.now() + seconds)
        await self.check.step()

    @property
    def gauge(self) -> float | None:
        return self.instruments.registry.get_sample_value("rematch_steering_policy_works")


async def test_in_act_a_canary_shows_that_it_works_and_is_repeated_every_hour() -> None:
    bench = Bench(**ACT)
    assert not bench.steering.status.policy_works
    await bench.check.step()
    assert (bench.steering.status.policy_works, bench.steering.status.tried, bench.gauge) == (True, True, 1.0)
    for _ in range(59):
        await bench.after(60)
    assert bench.policy.canaries == 1
    await bench.after(CANARY_EVERY)
    assert bench.policy.canaries == 2


async def test_in_observe_nothing_is_created_and_the_status_says_what_act_will_try() -> None:
    bench = Bench(**{**ACT, "mode": "observe"})
    await bench.check.step()
    status = bench.steering.status
    assert (status.policy_works, status.tried, bench.policy.canaries, bench.gauge) == (True, False, 0, 0.0)
    assert "canary in mode act" in status.problem
    assert (set(bench.hints.hints), bench.policy.removed) == ({"old", "new"}, 0)
    bench.settings = make_settings(**ACT)
    assert not bench.steering.status.policy_works, "nothing moves before the canary has ended"
    await bench.after(1)
    assert bench.steering.status.policy_works


async def test_without_opted_in_namespaces_or_with_another_steering_there_is_no_canary() -> None:
    for settings in ({"mode": "act"}, {**ACT, "placement": {"steering": "binder"}}, {**ACT, "mode": "bind"}):
        bench = Bench(**settings)
        await bench.check.step()
        assert bench.policy.canaries == 0


async def test_what_is_missing_is_said_and_looked_for_again() -> None:
    bench = Bench(**ACT)
    bench.policy.installed = Discovery("the policy is missing; install it")
    await bench.check.step()
    assert bench.steering.status.problem == "the policy is missing; install it"
    assert not bench.steering.status.policy_works
    bench.policy.installed = Discovery("", "2/1")
    await bench.after(DISCOVER_EVERY)
    assert bench.steering.status.policy_works


async def test_a_failed_canary_is_repeated_after_growing_pauses() -> None:
    bench = Bench(**ACT)
    bench.policy.stamps = "came without the label"
    await bench.check.step()
    assert bench.steering.status.problem == "came without the label"
    assert not bench.steering.status.policy_works
    for pause in (FIRST_RETRY, 2 * FIRST_RETRY, 4 * FIRST_RETRY):
        before = bench.policy.canaries
        await bench.after(pause - 1)
        assert bench.policy.canaries == before
        await bench.after(1)
        assert bench.policy.canaries == before + 1


async def test_doubt_and_a_changed_policy_lead_to_another_canary_at_once() -> None:
    bench = Bench(**ACT)
    await bench.check.step()
    bench.steering.doubt()
    bench.policy.stamps = "came without the label"
    await bench.after(1)
    assert not bench.steering.status.policy_works
    bench.policy.installed, bench.policy.stamps = Discovery("", "2/1"), ""
    await bench.after(DISCOVER_EVERY)
    assert (bench.policy.canaries, bench.steering.status.policy_works) == (3, True)


async def test_an_api_server_that_does_not_answer_changes_nothing_that_is_known() -> None:
    bench = Bench(**ACT)
    bench.policy.installed = Unreachable("no response")
    await bench.check.step()
    assert "could not be read: no response" in bench.steering.status.problem
    bench.policy.installed = Discovery("", "1/1")
    await bench.after(DISCOVER_EVERY)
    bench.policy.installed = Unreachable("no response")
    await bench.after(DISCOVER_EVERY)
    assert bench.steering.status.policy_works


async def test_hints_of_moves_that_are_over_are_removed() -> None:
    bench = Bench(**ACT)
    await bench.check.step()
    assert (set(bench.hints.hints), bench.policy.removed) == ({"new"}, 1)


async def test_why_a_pod_cannot_be_steered_says_what_to_install_or_to_set() -> None:
    bench = Bench(**ACT)
    bench.policy.installed = Discovery("it is missing; kubectl apply -f it")
    await bench.check.step()
    status, pod = bench.steering.status, make_pod(scheduler_name="default-scheduler")
    assert status.why_not(pod, bench.settings).startswith(
        "it is missing; kubectl apply -f it; or set placement.steering"
    )
    assert status.why_not(pod, make_settings(placement={"steering": "none"})) == ""
    assert "binder" in status.why_not(pod, make_settings(placement={"steering": "binder"}))
    assert status.why_not(make_pod(scheduler_name="rematch"), bench.settings) == ""
    assert bench.settings.mode is Mode.ACT


async def test_an_extender_steers_only_where_it_is_asked_for_and_kube_scheduler_asks_it() -> None:
    bench = Bench(**ACT, placement={"steering": "extender"})
    pod = make_pod(scheduler_name="default-scheduler")
    assert bench.steering.status.way(pod, bench.settings) is None
    await bench.check.step()
    assert bench.steering.status.way(pod, bench.settings) is Way.EXTENDER
    assert bench.policy.canaries == 0, "the policy is not needed"
    assert set(bench.hints.hints) == {"new"}, "what nobody needs any more is swept here, too"
    bench.sign.says = "the extender was last seen 90 s ago"
    await bench.after(5)
    assert bench.sign.looks == 1
    await bench.after(EXTENDER_EVERY)
    assert bench.steering.status.way(pod, bench.settings) is None
    assert "last seen 90 s ago; or set placement.steering" in bench.steering.status.why_not(pod, bench.settings)
    bench.sign.says = Unreachable("no answer")
    await bench.after(EXTENDER_EVERY)
    assert "could not be read: no answer" in bench.steering.status.extender_problem
    auto = make_settings(**ACT)
    assert SteeringStatus(extender_problem="").way(pod, auto) is None, "auto does not choose it"
    assert SteeringStatus(policy_works=True, extender_problem="").way(pod, auto) is Way.POLICY


async def test_nobody_looks_for_an_extender_that_is_not_configured() -> None:
    bench = Bench(**ACT)
    await bench.check.step()
    assert bench.sign.looks == 0
