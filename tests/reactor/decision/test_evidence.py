"""How likely a pod fails because of where it is, and what is decided by that number."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matching.failure_curve import FailureCurve
from reactor.cluster.records import Container, Pod, Probe
from reactor.decision import eligibility
from reactor.decision.cooldowns import Cooldowns
from reactor.decision.decide import Unhappy, Wait, decide
from reactor.decision.evidence import Evidence, PartName
from reactor.decision.wait_reasons import Reason
from reactor.signals.measurements import PressureSample, ThrottleSample
from reactor.signals.probe_counts import FailedProbes, RecentProbes
from reactor.signals.usage import UsageHistory, UsageView
from reactor.state.load_changes import LoadChange
from reactor.state.snapshot import Snapshot
from tests.support.clock import NOW
from tests.support.cluster import GIB, make_eligibility, make_node, make_owner, make_pod, make_snapshot

PERIOD = 10.0
SATURATED, CROWDED, IDLE = 4.0, 3.86, 0.3
"""Cores of the four that are used."""


def snapshot_of(pods: list[Pod], cores: float, failures: dict[str, float], **more: Any) -> Snapshot:
    nodes = [make_node("n1"), make_node("n2"), make_node("n3")]
    node_usage = {"n1": (cores, GIB), "n2": (IDLE, GIB), "n3": (IDLE, GIB)} | more.pop("others", {})
    usage = {pod.name: (0.2, GIB) for pod in pods}
    return make_snapshot(pods, nodes, failures=failures, usage=usage, node_usage=node_usage, **more)


def alone(cores: float, failures: float = 2.0) -> Snapshot:
    return snapshot_of([make_pod()], cores, {"web-1": failures})


def decided(snapshot: Snapshot, cooldowns: Cooldowns | None = None) -> Unhappy | Wait:
    """About web-1."""
    decision = decide(make_eligibility(snapshot, None, cooldowns))
    about: list[Unhappy | Wait] = [*decision.unhappy, *decision.waits]
    (found,) = [one for one in about if one.pod == "shop/web-1"]
    return found


def waiting(snapshot: Snapshot, cooldowns: Cooldowns | None = None) -> Wait:
    found = decided(snapshot, cooldowns)
    assert isinstance(found, Wait)
    return found


def found_text(found: Unhappy | Wait) -> str:
    return found.cause if isinstance(found, Unhappy) else found.text


def evidence(snapshot: Snapshot) -> Evidence:
    found = decided(snapshot).evidence
    assert found is not None
    return found


def with_probes(snapshot: Snapshot, *failed_ago: float, due: float = 3600.0, **fields: Any) -> Snapshot:
    """Single failed probes of web-1, so many seconds ago; probes began `due` seconds ago."""
    failures = tuple(FailedProbes(NOW - ago, NOW - ago, 1.0) for ago in failed_ago)
    recent = RecentProbes(NOW, fields.pop("since", 0.0), NOW - due, PERIOD, failures, failures, **fields)
    return replace(snapshot, recent_probes={"uid-web-1": (recent,)})


@pytest.mark.parametrize("cores", [3.9, 4.0])
def test_on_a_saturated_node_the_second_failed_probe_is_enough(cores: float) -> None:
    assert isinstance(decided(alone(cores, 2.0)), Unhappy)
    assert waiting(alone(cores, 1.9)).reason is Reason.TOO_LITTLE_EVIDENCE


@settings(max_examples=20, deadline=None)
@given(st.floats(2.0, 1e6), st.floats(0.0, 2.8))
def test_on_a_node_without_load_no_number_of_failures_is_enough(failures: float, cores: float) -> None:
    assert waiting(alone(cores, failures)).reason is Reason.APP_FAILS


@settings(max_examples=20, deadline=None)
@given(st.floats(0.0, 4.0), st.floats(0.0, 4.0))
def test_more_load_never_makes_the_place_less_likely(one: float, other: float) -> None:
    less, more = sorted((one, other))
    assert evidence(alone(less, 5.0)).probability <= evidence(alone(more, 5.0)).probability


def test_the_number_is_the_product_of_its_parts() -> None:
    found = evidence(alone(SATURATED))
    odds = 1.0
    for part in found.parts:
        assert part.text
        odds *= part.ratio
    assert found.probability == pytest.approx(odds / (1 + odds))
    assert {PartName.PRIOR, PartName.LOAD, PartName.PROBES} <= {part.name for part in found.parts}


def test_a_curve_that_knows_better_decides() -> None:
    robust = replace(alone(CROWDED, 10.0), failure_curve=FailureCurve(midpoint=1.5))
    delicate = replace(alone(2.8, 10.0), failure_curve=FailureCurve(midpoint=0.7))

    assert waiting(robust).reason is Reason.APP_FAILS
    assert isinstance(decided(delicate), Unhappy)


def test_probes_from_before_the_node_was_relieved_do_not_count() -> None:
    snapshot = with_probes(alone(SATURATED, 10.0), 150.0, 140.0, 130.0)
    cooldowns = Cooldowns(relieved={"n1": NOW - 100})
    fell = replace(snapshot, load_changes={"n1": LoadChange(fell=NOW - 100)})

    for wait in (waiting(snapshot, cooldowns), waiting(fell)):
        assert (wait.reason, wait.text) == (Reason.RECOVERING, "no probe failed since n1 was relieved")
    again = with_probes(alone(SATURATED, 10.0), 150.0, 140.0, 130.0, 12.0, 2.0)
    assert isinstance(decided(again, cooldowns), Unhappy)


@pytest.mark.parametrize(
    ("since", "started", "event"),
    [
        (50.0, NOW - 50, "its container started"),
        (40.0, NOW - 50, "n1 was relieved"),
        (50.0, None, "its container last started or n1 was relieved"),
    ],
)
@pytest.mark.parametrize(
    ("failed_ago", "text"),
    [((), "no probe failed since {}"), ((2.0,), "needs at least 2 failed probes as evidence since {}; there are 1.0")],
)
def test_the_later_of_start_and_relief_is_named(
    since: float, started: float | None, event: str, failed_ago: tuple[float, ...], text: str
) -> None:
    pod = make_pod(containers=(Container("srv", Probe(), restarts=1, started=started),))
    snapshot = with_probes(snapshot_of([pod], SATURATED, {"web-1": 10.0}), *failed_ago, since=NOW - since)
    assert waiting(snapshot).text == text.format(event)


def test_a_pod_whose_last_probes_passed_is_left_to_recover() -> None:
    assert waiting(with_probes(alone(SATURATED, 10.0), 60.0, 50.0, 31.0)).reason is Reason.RECOVERING
    assert isinstance(decided(with_probes(alone(SATURATED, 10.0), 60.0, 50.0, 5.0)), Unhappy)


def test_one_passed_probe_after_many_failed_ones_is_no_recovery() -> None:
    many = with_probes(alone(SATURATED, 10.0), *(15.0 + 10 * at for at in range(7)))
    found = decided(many)
    assert isinstance(found, Unhappy)
    assert found.evidence is not None
    assert found.evidence.probability > 0.9


def test_at_nine_tenths_of_the_load_a_pod_that_fails_alone_stays() -> None:
    assert waiting(alone(3.6, 100.0)).reason is Reason.MOVE_CANNOT_HELP


def test_what_passed_in_silence_is_no_recovery() -> None:
    """The kubelet's budget of Events is spent: no Event does not mean success."""
    silenced = with_probes(alone(SATURATED, 10.0), 60.0, 50.0, 40.0, due=-100.0)

    assert isinstance(decided(silenced), Unhappy)


def test_a_load_at_which_it_was_well_for_long_is_an_unlikely_cause() -> None:
    snapshot = with_probes(alone(CROWDED, 4.0), 35.0, 25.0, 15.0, 5.0)
    old = replace(snapshot, load_changes={"n1": LoadChange(steady_since=NOW - 900)})
    new = replace(snapshot, load_changes={"n1": LoadChange(steady_since=NOW - 40)})

    assert waiting(old).reason is Reason.MOVE_CANNOT_HELP
    assert isinstance(decided(new), Unhappy)


def test_a_pod_that_failed_as_often_before_does_so_by_itself() -> None:
    usual = with_probes(alone(3.8), 12.0, 2.0)
    always = with_probes(alone(3.8), 12.0, 2.0, earlier_share=0.05)

    assert evidence(always).probability < evidence(usual).probability
    assert PartName.RECORD in {part.name for part in evidence(always).parts}


@pytest.mark.parametrize(("restarts", "started"), [(2, None), (2, NOW - 5), (0, NOW - 3600)])
def test_a_pod_that_is_killed_again_and_again_does_not_hide_the_load(restarts: int, started: float | None) -> None:
    """While it is down its node is less used than when it runs."""
    pod = make_pod(containers=(Container("srv", Probe(), restarts, started),))
    snapshot = snapshot_of([pod], 3.2, {"web-1": 5.0})
    peaks = snapshot.usage.peaks.copy()
    peaks[snapshot.usage.pods.slots[pod.uid], 0] = 1.2
    found = decided(replace(snapshot, usage=replace(snapshot.usage, peaks=peaks)))

    assert isinstance(found, Unhappy if restarts else Wait)
    counted = "n1 uses 80% of its cpu now, 105% counted (with what the pod uses while it is up)"
    assert (counted in found_text(found)) == bool(restarts)


@pytest.mark.parametrize(("lately", "shown"), [(0.5, ""), (0.95, ""), (1.0, " now, 100% counted")])
def test_the_load_that_counted_is_told_where_it_is_not_that_of_now(lately: float, shown: str) -> None:
    steady = replace(alone(3.8), load_changes={"n1": LoadChange(recent=((NOW - 30, lately), (NOW, 0.95)))})
    found = decided(steady)

    assert f"n1 uses 95% of its cpu{shown}" in found_text(found)
    assert ("counted" in found_text(found)) == bool(shown)
    assert found.evidence is not None
    (load,) = [part.text for part in found.evidence.parts if part.name is PartName.LOAD]
    assert load.startswith(found.evidence.node)


def throttled(snapshot: Snapshot, share: float, waits: float | None = None) -> Snapshot:
    return replace(snapshot, usage=_measured(snapshot, share, waits))


def _measured(snapshot: Snapshot, share: float | None, waits: float | None) -> UsageView:
    from predictors.peaks import SigmaOrPercentile

    history = UsageHistory(120.0, 900.0, SigmaOrPercentile())
    history.observe_pod(snapshot.cluster.pods["uid-web-1"])
    if share is not None:
        history.record_throttling([ThrottleSample("shop", "web-1", share, NOW)], NOW)
    if waits is not None:
        history.record_pressure([PressureSample("shop", "web-1", waits, NOW)], NOW)
    slot, old = history.freeze(NOW).pods, snapshot.usage.pods
    values, at = old.values.copy(), old.at.copy()
    for axis in (2, 4):
        values[old.slots["uid-web-1"], axis] = slot.values[slot.slots["uid-web-1"], axis]
        at[old.slots["uid-web-1"], axis] = slot.at[slot.slots["uid-web-1"], axis]
    return replace(snapshot.usage, pods=replace(old, values=values, at=at))


@pytest.mark.parametrize(
    ("limit", "share", "text"),
    [
        (0.2, 0.37, "raise the limit from 200m to about 320m"),
        (1.0, 0.5, "raise the limit from 1000m to about 2000m"),
        (0.2, 0.9, "raise the limit from 200m to 800m or more"),
        (0.2, 1.0, "raise the limit from 200m to 800m or more"),
        (None, 0.5, "raise the limit"),
    ],
)
@pytest.mark.parametrize("cores", [IDLE, SATURATED])
def test_a_pod_that_runs_into_its_own_limit_is_told_the_number(
    limit: float | None, share: float, text: str, cores: float
) -> None:
    pod = make_pod(containers=(Container("srv", Probe(), 0, NOW - 3600, cpu_limit=limit),))
    wait = waiting(throttled(snapshot_of([pod], cores, {"web-1": 5.0}), share))

    assert wait.reason is Reason.OWN_LIMIT
    assert text in wait.text


def test_a_neighbour_that_its_own_limit_explains_says_nothing_about_the_node() -> None:
    """Here web-1 is the neighbour of db."""
    pods = [make_pod(containers=(Container("srv", Probe(), 0, NOW - 3600, cpu_limit=0.2),)), other("db")]
    snapshot = snapshot_of(pods, 3.3, dict.fromkeys(("web-1", "db"), 5.0))
    neighbours = []
    for share in (0.0, 0.9):
        decision = decide(make_eligibility(throttled(snapshot, share)))
        about: list[Unhappy | Wait] = [*decision.unhappy, *decision.waits]
        (found,) = [one for one in about if one.pod == "shop/db"]
        assert found.evidence is not None
        neighbours.append([part.ratio for part in found.evidence.parts if part.name is PartName.NEIGHBOURS])
    ((speaks_for_the_node,), nothing) = neighbours
    assert speaks_for_the_node > 10
    assert not nothing


def test_pressure_of_its_cgroup_tells_whether_it_waits_for_a_cpu() -> None:
    """Recorded samples: where there is cgroup v1 only, nothing measures it."""
    snapshot = alone(CROWDED, 2.0)
    numbers = [evidence(replace(snapshot, usage=_measured(snapshot, None, waits))).probability
               for waits in (0.0, 0.1, 0.5)]  # fmt: skip

    assert numbers == sorted(numbers)
    assert len(set(numbers)) == 3
    assert PartName.PRESSURE not in {part.name for part in evidence(throttled(snapshot, 0.5, 0.5)).parts}


def replica(name: str, node: str) -> Pod:
    return make_pod(name, node=node)


def other(name: str, node: str = "n1") -> Pod:
    return make_pod(name, node=node, owner=make_owner(f"{name}-rs"))


def test_an_app_that_fails_everywhere_is_not_moved() -> None:
    pods = [make_pod(), replica("web-2", "n2"), replica("web-3", "n3")]
    wait = waiting(snapshot_of(pods, 3.8, dict.fromkeys(("web-1", "web-2", "web-3"), 10.0)))

    assert wait.reason is Reason.APP_FAILS
    assert "replicas fail on other nodes, too" in wait.text


def test_replicas_that_fail_on_crowded_nodes_say_nothing_about_the_app() -> None:
    pods = [make_pod(), replica("web-2", "n2")]
    failures = dict.fromkeys(("web-1", "web-2"), 10.0)

    assert isinstance(decided(snapshot_of(pods, SATURATED, failures, others={"n2": (3.9, GIB)})), Unhappy)


def faulty_node(
    pod: Pod | None = None, *, replicas_fail: bool = False, others_fail: bool = True, cores: float = IDLE
) -> Snapshot:
    pods = [pod or make_pod(), replica("web-2", "n2"), other("db"), other("cache")]
    failing = ["web-1"] + ["web-2"] * replicas_fail + ["db", "cache"] * others_fail
    return snapshot_of(pods, cores, dict.fromkeys(failing, 5.0))


def test_where_others_fail_too_and_replicas_elsewhere_do_not_the_node_is_the_cause() -> None:
    found = decided(with_probes(faulty_node(), 95.0, 65.0, 35.0, 5.0))

    assert isinstance(found, Unhappy)
    assert found.evidence is not None
    assert found.evidence.node_suspected
    assert "other workloads fail there, too" in found.cause


def test_a_burst_of_failures_on_an_idle_node_is_no_fault_of_the_node() -> None:
    assert waiting(with_probes(faulty_node(), 100.0, 25.0, 15.0, 5.0)).reason is Reason.APP_FAILS
    just_killed = make_pod(containers=(Container("srv", Probe(), 1, NOW - 3600, terminated=NOW - 1),))
    assert waiting(with_probes(faulty_node(just_killed), 25.0, 15.0, 5.0)).reason is Reason.APP_FAILS


def test_a_short_burst_on_a_node_with_room_moves_nobody() -> None:
    """At 83 % hardly more probes fail than on an idle node, so its load explains a burst no better than chance."""
    burst, lasting = (with_probes(faulty_node(cores=3.3), *ago) for ago in ((25.0, 15.0, 5.0), (95.0, 65.0, 35.0, 5.0)))

    assert isinstance(decided(burst), Wait)
    assert isinstance(decided(lasting), Unhappy)


def failing_since(snapshot: Snapshot, **ago: float) -> Snapshot:
    """Each of those pods failed two probes, the first so many seconds ago."""
    failures = {name: (FailedProbes(NOW - seconds, NOW - 1, 2.0),) for name, seconds in ago.items()}
    recent = {
        f"uid-{name.replace('_', '-')}": (RecentProbes(NOW, 0.0, NOW - 3600, PERIOD, failed, failed),)
        for name, failed in failures.items()
    }
    return replace(snapshot, recent_probes=recent)


def everywhere(well: int = 0, **ago: float) -> Snapshot:
    """web-1 on a saturated node, the others on one with room."""
    names = [*ago, *(f"well-{at}" for at in range(well))]
    pods = [make_pod(), *(other(name, "n2") for name in names)]
    failures = dict.fromkeys(["web-1", *ago], 2.0)
    return failing_since(snapshot_of(pods, SATURATED, failures), web_1=15.0, **ago)


def test_where_workloads_on_nodes_with_room_begin_to_fail_at_the_same_time_the_place_is_not_the_cause() -> None:
    wait = waiting(everywhere(well=1, db=20.0, cache=5.0, mail=10.0))

    assert wait.reason is Reason.MOVE_CANNOT_HELP
    assert "3 on nodes with room began to fail in the same minute, 1 are well" in wait.text


@pytest.mark.parametrize(
    "snapshot",
    [
        pytest.param(everywhere(db=200.0, cache=200.0), id="they fail since long"),
        pytest.param(everywhere(db=20.0), id="one of them is chance"),
        pytest.param(everywhere(well=10, db=20.0, cache=5.0), id="most of them are well"),
    ],
)
def test_few_failures_elsewhere_or_older_ones_do_not_clear_the_place(snapshot: Snapshot) -> None:
    assert isinstance(decided(snapshot), Unhappy)


def test_in_a_large_cluster_a_sample_of_the_pods_elsewhere_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """When all of them fail at once, each would be compared with all others."""
    monkeypatch.setattr(eligibility, "MOST_COMPARED", 4)
    snapshot = everywhere(0, **{f"app{at}": 20.0 for at in range(5)})

    assert len(make_eligibility(snapshot).pods_with_room) == 2
    assert waiting(snapshot).reason is Reason.MOVE_CANNOT_HELP


def test_failures_on_crowded_nodes_are_no_sign_of_a_common_cause() -> None:
    pods = [make_pod(), *(other(name, "n2") for name in ("db", "cache", "mail"))]
    failures = dict.fromkeys(("web-1", "db", "cache", "mail"), 2.0)
    snapshot = snapshot_of(pods, SATURATED, failures, others={"n2": (3.9, GIB)})

    assert isinstance(decided(failing_since(snapshot, web_1=15.0, db=20.0, cache=5.0, mail=10.0)), Unhappy)


def test_a_pod_that_fails_again_after_it_was_killed_is_in_no_burst() -> None:
    killed = Container("srv", Probe(), 1, NOW - 40, terminated=NOW - 41)
    found = decided(with_probes(faulty_node(make_pod(containers=(killed,))), 15.0, 5.0, since=NOW - 40))
    assert isinstance(found, Unhappy)


@pytest.mark.parametrize(
    "snapshot",
    [
        faulty_node(replicas_fail=True),
        faulty_node(others_fail=False),
        snapshot_of([make_pod(), other("db"), other("cache")], IDLE, dict.fromkeys(("web-1", "db", "cache"), 5.0)),
    ],
    ids=["replicas fail", "others are well", "no replicas"],
)
def test_one_of_both_is_not_enough_on_an_idle_node(snapshot: Snapshot) -> None:
    assert waiting(with_probes(snapshot, 95.0, 65.0, 35.0, 5.0)).reason is Reason.APP_FAILS


def test_a_loaded_node_is_not_suspected() -> None:
    found = decided(faulty_node(cores=SATURATED))

    assert isinstance(found, Unhappy)
    assert found.evidence is not None
    assert not found.evidence.node_suspected
