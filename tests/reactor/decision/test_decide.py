"""Every reason to wait, each produced by a snapshot; and who a rematch is started for."""

from __future__ import annotations

from typing import Any

import pytest

from reactor.cluster.records import Pod
from reactor.decision.cooldowns import Backoff, Cooldowns, Lineage
from reactor.decision.decide import Decision, Trigger, Unhappy, Wait, decide
from reactor.decision.wait_reasons import Reason
from reactor.settings.model import Settings
from reactor.state.snapshot import Needs
from tests.support.clock import NOW
from tests.support.cluster import GIB, make_eligibility, make_node, make_pdb, make_pod, make_settings, make_snapshot
from tests.support.moves import active_moves, make_move

CROWDED = {"n1": (3.9, GIB), "n2": (0.4, GIB)}
IDLE = {"n1": (0.3, GIB), "n2": (0.3, GIB)}


def decided(pod: Pod, settings: Settings | None = None, **more: Any) -> Decision:
    """About one pod on a crowded node n1; n2 is idle."""
    facts: dict[str, Any] = {
        "failures": {pod.name: 10.0},
        "usage": {pod.name: (0.5, GIB)},
        "node_usage": CROWDED,
    }
    nodes = more.pop("nodes", [make_node("n1"), make_node("n2")])
    cooldowns = more.pop("cooldowns", None)
    return decide(make_eligibility(make_snapshot([pod], nodes, **(facts | more)), settings, cooldowns))


def wait_of(decision: Decision) -> Wait:
    assert decision.unhappy == ()
    assert not decision.rematch
    assert len(decision.waits) == 1
    return decision.waits[0]


def cause_of(decision: Decision) -> str:
    assert decision.waits == ()
    assert decision.rematch
    assert len(decision.unhappy) == 1
    return decision.unhappy[0].cause


@pytest.mark.parametrize(("ago", "settles"), [(59.0, True), (60.0, False)])
def test_a_node_that_was_just_relieved_is_given_time(ago: float, settles: bool) -> None:
    decision = decided(make_pod(), cooldowns=Cooldowns(relieved={"n1": NOW - ago, "n2": NOW}))
    if settles:
        wait = wait_of(decision)
        assert (wait.reason, wait.until) == (Reason.SETTLING, NOW - ago + 60)
    else:
        assert cause_of(decision)


def test_an_unhappy_pod_on_a_crowded_node_starts_a_rematch() -> None:
    decision = decided(make_pod())

    assert "n1 uses 98% of its cpu" in cause_of(decision)
    assert isinstance(decision.unhappy[0], Unhappy)


def test_a_happy_pod_is_no_reason_for_anything() -> None:
    decision = decided(make_pod(), failures={"web-1": 0.1})

    assert decision == Decision(NOW, Trigger.UNHAPPY)
    assert not decision.rematch


def test_a_pod_that_is_not_managed_is_left_out() -> None:
    assert decided(make_pod(), make_settings(managed={"namespaces": ["bank"]})).waits == ()
    assert decided(make_pod(namespace="kube-system")).waits == ()


def test_a_pod_that_is_being_deleted_is_left_out() -> None:
    assert decided(make_pod(deleting=NOW)).waits == ()


def test_a_protected_pod_waits_and_the_veto_is_named() -> None:
    wait = wait_of(decided(make_pod(owner=None)))

    assert wait.reason is Reason.PROTECTED
    assert wait.text.startswith("noController")


def test_a_pod_of_another_scheduler_waits() -> None:
    wait = wait_of(decided(make_pod(scheduler_name="default-scheduler")))

    assert wait.reason is Reason.OTHER_SCHEDULER
    assert "default-scheduler" in wait.text


@pytest.mark.parametrize(
    "constraint",
    ["podAffinity", "podAntiAffinity", "topologySpread", "hostPorts", "volumes", "resourceClaims", "extendedResources"],
)
def test_a_pod_with_an_unsupported_constraint_waits(constraint: str) -> None:
    wait = wait_of(decided(make_pod(unsupported=(constraint,))))

    assert wait.reason is Reason.UNSUPPORTED
    assert constraint in wait.text


def test_too_few_failures_are_no_evidence() -> None:
    settings = make_settings(decision={"minimum_failures": 12})

    assert wait_of(decided(make_pod(), settings)).reason is Reason.TOO_LITTLE_EVIDENCE


def test_a_budget_that_allows_nothing_makes_it_wait() -> None:
    wait = wait_of(decided(make_pod(), pdbs=(make_pdb("web-pdb", 0),)))

    assert wait.reason is Reason.PDB
    assert "web-pdb" in wait.text


def test_several_budgets_make_it_wait_whatever_they_allow() -> None:
    wait = wait_of(decided(make_pod(), pdbs=(make_pdb("one", 5), make_pdb("two", 5))))

    assert wait.reason is Reason.PDB
    assert "one, two" in wait.text


@pytest.mark.parametrize(
    "budget",
    [make_pdb("db-pdb", 0, app="db"), make_pdb("web-pdb", 0, namespace="bank"), make_pdb("web-pdb", 1)],
)
def test_budgets_of_others_and_open_ones_do_not_hold_it(budget: Any) -> None:
    assert cause_of(decided(make_pod(), pdbs=(budget,)))


def test_a_pod_that_was_just_moved_cools_down_until_the_end_of_it() -> None:
    cooldowns = Cooldowns(lineage={"uid-web-1": Lineage(NOW - 10, 1)})

    wait = wait_of(decided(make_pod(), cooldowns=cooldowns))

    assert wait.reason is Reason.COOLDOWN
    assert wait.until == NOW + 50


@pytest.mark.parametrize(("generation", "seconds"), [(1, 60), (2, 120), (3, 240), (7, 3600), (2000, 3600)])
def test_the_cooldown_doubles_along_the_lineage_up_to_an_hour(generation: int, seconds: float) -> None:
    line = Lineage(NOW - seconds + 1, generation)

    assert wait_of(decided(make_pod(), cooldowns=Cooldowns(lineage={"uid-web-1": line}))).until == NOW + 1
    over = Cooldowns(lineage={"uid-web-1": Lineage(NOW - seconds, generation)})
    assert cause_of(decided(make_pod(), cooldowns=over))


@pytest.mark.parametrize("reason", [Reason.NO_BETTER_NODE, Reason.OBSERVED, Reason.EVICTION_FAILED, Reason.PDB])
def test_what_the_last_try_said_holds_for_a_while(reason: Reason) -> None:
    cooldowns = Cooldowns(backoffs={"uid-web-1": Backoff(NOW + 7, reason, "as it was")})

    wait = wait_of(decided(make_pod(), cooldowns=cooldowns))

    assert (wait.reason, wait.text, wait.until) == (reason, "as it was", NOW + 7)
    assert cause_of(decided(make_pod(), cooldowns=Cooldowns(backoffs={"uid-web-1": Backoff(NOW, reason, "")})))


def test_while_a_plan_is_carried_out_all_others_wait() -> None:
    other = make_pod("db-1", node="n2")

    assert (
        wait_of(decided(make_pod(), moves=active_moves({make_move(other, "n1"): other}))).reason
        is Reason.MOVE_IN_FLIGHT
    )


def test_a_late_replacement_of_another_namespace_holds_up_nobody() -> None:
    pod = make_pod("db-1", namespace="bank")
    late = make_move(pod, "n2", state="late", evicted=NOW - 500)

    assert decided(make_pod(), moves=active_moves({late: pod})).rematch


def test_without_fresh_metrics_of_the_pod_nothing_is_moved() -> None:
    assert wait_of(decided(make_pod(), usage={})).reason is Reason.NO_FRESH_METRICS
    assert wait_of(decided(make_pod(), usage={"web-1": (0.5, None)})).reason is Reason.NO_FRESH_METRICS
    assert wait_of(decided(make_pod(), age=300)).reason is Reason.NO_FRESH_METRICS


def test_without_fresh_metrics_of_its_node_nothing_is_moved() -> None:
    wait = wait_of(decided(make_pod(), node_usage={"n2": (0.1, GIB)}))

    assert wait.reason is Reason.NO_FRESH_METRICS
    assert "n1" in wait.text


def test_an_unknown_node_has_no_metrics() -> None:
    assert wait_of(decided(make_pod(node="n9"))).reason is Reason.NO_FRESH_METRICS


@pytest.mark.parametrize("fields", [{"pressure": ("MemoryPressure",)}, {"ready": False}])
def test_trouble_of_the_node_itself_is_a_cause_when_the_pod_is_measured(fields: dict[str, Any]) -> None:
    nodes = [make_node("n1", **fields), make_node("n2")]

    assert "n1" in cause_of(decided(make_pod(), nodes=nodes, node_usage=IDLE))
    assert "n1" in cause_of(decided(make_pod(), nodes=nodes, node_usage={}))
    assert wait_of(decided(make_pod(), nodes=nodes, usage={})).reason is Reason.NO_FRESH_METRICS


def test_a_broken_app_on_an_idle_node_is_not_moved() -> None:
    wait = wait_of(decided(make_pod(), node_usage=IDLE))

    assert wait.reason is Reason.APP_FAILS


@pytest.mark.parametrize("failures", [2.0, 10.0, 1000.0])
def test_a_node_that_is_half_used_is_no_cause_however_idle_another_one_is(failures: float) -> None:
    wait = wait_of(decided(make_pod(), failures={"web-1": failures}, node_usage={"n1": (2.0, GIB), "n2": (0.4, GIB)}))

    assert wait.reason is Reason.APP_FAILS


def test_memory_crowds_a_node_as_cpu_does() -> None:
    assert "memory" in cause_of(decided(make_pod(), node_usage={"n1": (0.1, 7.8 * GIB), "n2": (0.1, 7.8 * GIB)}))


def test_by_requests_a_node_uses_what_its_pods_request() -> None:
    big = make_pod("db-1", requests={"cpu": 3.4, "memory": GIB})
    pod = make_pod()
    nodes = [make_node("n1"), make_node("n2")]
    snapshot = make_snapshot([pod, big], nodes, failures={"web-1": 10.0}, needs=Needs.REQUESTS)

    assert "has requests for 98% of its cpu" in cause_of(decide(make_eligibility(snapshot)))


def test_requests_far_below_the_node_do_not_blame_the_app() -> None:
    nodes = [make_node("n1"), make_node("n2")]
    snapshot = make_snapshot([make_pod()], nodes, failures={"web-1": 10.0}, needs=Needs.REQUESTS)
    (wait,) = decide(make_eligibility(snapshot)).waits

    assert wait.reason is Reason.NO_FRESH_METRICS
    assert "no usage was measured" in wait.text


def test_a_user_or_the_interval_starts_a_rematch_without_unhappy_pods() -> None:
    snapshot = make_snapshot([make_pod()], [make_node()])

    assert decide(make_eligibility(snapshot), Trigger.DEMAND).rematch
    assert decide(make_eligibility(snapshot), Trigger.INTERVAL).rematch
    assert not decide(make_eligibility(snapshot), Trigger.UNHAPPY).rematch


def test_to_finish_is_to_decide_nothing() -> None:
    pod = make_pod()
    snapshot = make_snapshot([pod], [make_node()], failures={pod.name: 10.0})

    assert decide(make_eligibility(snapshot), Trigger.FINISH) == Decision(NOW, Trigger.FINISH)
