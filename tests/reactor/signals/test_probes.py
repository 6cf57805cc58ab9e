"""The history: each failed liveness probe counts once, from whatever source and however often it is reported."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from reactor.cluster.decoding.events import decode_event
from reactor.cluster.records import Event, Pod
from reactor.signals.measurements import ProbeCounter
from reactor.signals.probe_counts import HalfLife, decay
from reactor.signals.probes import ProbeHistory
from storage.rows import HappinessRow

FOREVER = 1e18
"""A half-life at which nothing decays, so that numbers can be compared with what happened."""

MakePod = Callable[..., Pod]
MakeEvent = Callable[..., Event]


def counter(failures: float, successes: float = 0.0, uid: str = "u1") -> ProbeCounter:
    return ProbeCounter("default", "web-1", "srv", successes, failures, 0.0, uid)


def failures(history: ProbeHistory, now: float, uid: str = "u1") -> float:
    return round(history.counts(uid, now).failures, 6)


@pytest.fixture
def history(make_pod: MakePod) -> ProbeHistory:
    history = ProbeHistory(HalfLife(FOREVER))
    history.observe_pod(make_pod(started=1000.0, created=1000.0, period=1.0), 1000.0)
    return history


def test_recorded_events_and_counters_give_what_the_kubelet_did(kubelet_data: Path, make_pod: MakePod) -> None:
    history = ProbeHistory(HalfLife(FOREVER))
    truth = {"sick": 56, "web": 9, "hang": 3}
    uids: dict[str, str] = {}
    names: dict[str, str] = {}
    for line in (kubelet_data / "events-liveness.json").read_text().splitlines():
        event = decode_event(json.dumps(json.loads(line)["object"]).encode())
        app = event.involved_name.split("-")[0]
        if app not in uids:
            uids[app], names[app] = event.involved_uid, event.involved_name
            threshold = 1000 if app == "sick" else 3
            pod = make_pod(event.involved_uid, event.involved_name, started=event.last, threshold=threshold, period=1.0)
            history.observe_pod(pod, event.last)
        history.observe_event(event, event.last, listed=False)
    now = 1794790300.0
    by_events = {app: failures(history, now, uid) for app, uid in uids.items()}
    assert by_events == {"sick": 22, "hang": 3, "web": 12, "starved": 8}
    web = history.evidence(uids["web"], now)
    assert web is not None
    assert (web.failures_by_events, web.failures_by_kills) == (9, 3)

    counters = [
        ProbeCounter("default", names[app], "srv", 0.0, float(number), now, uids[app]) for app, number in truth.items()
    ]
    history.observe_counters(counters, now)
    assert failures(history, now, uids["sick"]) == 56
    assert failures(history, now, uids["hang"]) == 3
    assert failures(history, now, uids["web"]) == 12, "the counter was read before the fourth kill"


def test_redelivery_and_equal_counts_count_once(history: ProbeHistory, make_event: MakeEvent) -> None:
    assert history.observe_event(make_event(1, 1010.0), 1010.0, listed=False)
    assert not history.observe_event(make_event(1, 1010.0), 1011.0, listed=False)
    assert history.observe_event(make_event(4, 1040.0, first=1010.0), 1040.0, listed=False)
    assert not history.observe_event(make_event(4, 1040.0, first=1010.0), 1050.0, listed=True)
    assert not history.observe_event(make_event(2, 1020.0, first=1010.0), 1060.0, listed=False), "old news"
    assert failures(history, 1060.0) == 4


def test_recreated_events(history: ProbeHistory, make_event: MakeEvent) -> None:
    history.observe_event(make_event(5, 1010.0), 1010.0, listed=False)
    history.observe_event(make_event(6, 1020.0, uid="e2"), 1020.0, listed=False)
    assert failures(history, 1020.0) == 6, "the kubelet made the expired Event anew and counted on"
    history.observe_event(make_event(1, 1030.0, uid="e3"), 1030.0, listed=False)
    assert failures(history, 1030.0) == 7, "and this one began to count anew"


def test_every_message_is_an_event_of_its_own_and_readiness_is_none(
    history: ProbeHistory, make_event: MakeEvent
) -> None:
    history.observe_event(make_event(2, 1010.0), 1010.0, listed=False)
    other = make_event(3, 1011.0, name="web-1.2", uid="e2", message="Liveness probe failed: EOF")
    history.observe_event(other, 1011.0, listed=False)
    errored = make_event(1, 1012.0, name="web-1.3", uid="e3", message="Liveness probe errored and resulted in unknown")
    history.observe_event(errored, 1012.0, listed=False)
    ready = make_event(9, 1013.0, name="web-1.4", uid="e4", message="Readiness probe failed: EOF")
    assert not history.observe_event(ready, 1013.0, listed=False)
    foreign = make_event(9, 1013.0, name="web-1.5", uid="e5", component="somebody")
    assert not history.observe_event(foreign, 1013.0, listed=False)
    assert failures(history, 1013.0) == 6
    evidence = history.evidence("u1", 1013.0)
    assert evidence is not None
    assert len(evidence.messages) == 3


def test_an_event_counts_only_in_the_namespace_and_for_the_name_of_its_pod(
    history: ProbeHistory, make_event: MakeEvent
) -> None:
    forged = make_event(9, 1010.0)
    for other in (replace(forged, namespace="attacker"), replace(forged, involved_name="web-2")):
        assert not history.observe_event(other, 1010.0, listed=False)
    assert failures(history, 1010.0) == 0


def test_a_combined_event_counts_its_newest_occurrence_only(history: ProbeHistory, make_event: MakeEvent) -> None:
    def combined(count: int, probe: str) -> Event:
        return make_event(
            count, 1010.0 + count, message=f"(combined from similar events): {probe} probe failed: x{count}"
        )

    history.observe_event(combined(1, "Readiness"), 1011.0, listed=False)
    history.observe_event(combined(2, "Liveness"), 1012.0, listed=False)
    history.observe_event(combined(6, "Liveness"), 1016.0, listed=False)
    assert failures(history, 1016.0) == 2


def test_listed_events_are_history(make_pod: MakePod, make_event: MakeEvent) -> None:
    history = ProbeHistory(HalfLife(300.0))
    history.observe_pod(make_pod(started=0.0), 3600.0)
    history.observe_event(make_event(8, 3300.0, first=3300.0), 3600.0, listed=True)
    assert failures(history, 3600.0) == pytest.approx(4.0, rel=1e-6)
    even = ProbeHistory(HalfLife(300.0))
    even.observe_pod(make_pod(started=0.0), 3600.0)
    even.observe_event(make_event(8, 3600.0, first=3000.0), 3600.0, listed=True)
    assert 4.0 < failures(even, 3600.0) < 5.0


@pytest.mark.parametrize("skew", [-600.0, 600.0])
def test_a_wrong_node_clock_does_not_date_live_events(make_pod: MakePod, make_event: MakeEvent, skew: float) -> None:
    history = ProbeHistory(HalfLife(300.0))
    history.observe_pod(make_pod(started=0.0), 3600.0)
    history.observe_event(make_event(1, 3600.0 + skew), 3600.0, listed=False)
    assert failures(history, 3600.0) == 1.0
    ahead = make_event(4, 3600.0 + abs(skew), name="web-1.2", uid="e2")
    history.observe_event(ahead, 3600.0, listed=True)
    assert failures(history, 3600.0) == 5.0


def test_successes_come_from_elapsed_time(make_pod: MakePod, make_event: MakeEvent) -> None:
    history = ProbeHistory(HalfLife(FOREVER))
    history.observe_pod(make_pod(started=1000.0, initial_delay=30.0, period=10.0), 1010.0)
    assert history.counts("u1", 1030.0).successes == 0
    assert history.counts("u1", 1130.0).successes == pytest.approx(10)
    history.observe_event(make_event(1, 1131.0), 1131.0, listed=False)
    assert history.counts("u1", 1230.0).successes == pytest.approx(19)
    history.observe_pod(make_pod(started=1000.0, initial_delay=30.0, period=10.0, deleting=1260.0), 1230.0)
    assert history.counts("u1", 2000.0).successes == pytest.approx(19), "a pod that is going is not probed"


def test_no_successes_while_a_container_is_down_or_starting_up(make_pod: MakePod) -> None:
    history = ProbeHistory(HalfLife(FOREVER))
    history.observe_pod(make_pod(started=None), 1000.0)
    assert history.counts("u1", 1100.0).successes == 0
    history.observe_pod(make_pod(started=1005.0), 1200.0)
    assert history.counts("u1", 1250.0).successes == pytest.approx(5), "it may have been in its startup probe till 1200"


def test_history_of_a_pod_that_runs_already(make_pod: MakePod) -> None:
    history = ProbeHistory(HalfLife(FOREVER))
    history.observe_pod(make_pod(started=1000.0, period=10.0), 2000.0)
    assert history.counts("u1", 2000.0).successes == pytest.approx(100)


def test_spam_filter_counters_go_on(history: ProbeHistory, make_event: MakeEvent) -> None:
    history.observe_counters([counter(0)], 1000.0)
    for second in range(1, 26):
        history.observe_event(make_event(second, 1000.0 + second, first=1001.0), 1000.0 + second, listed=False)
    assert failures(history, 1026.0) == 25
    history.observe_counters([counter(25)], 1026.0)
    history.observe_counters([counter(56)], 1056.0)
    assert failures(history, 1056.0) == 56
    evidence = history.evidence("u1", 1056.0)
    assert evidence is not None
    assert evidence.events_silenced
    assert (evidence.failures_by_events, evidence.failures_by_counters) == (25, 31)


def test_silence_of_a_spent_budget_is_not_success(make_pod: MakePod, make_event: MakeEvent) -> None:
    history = ProbeHistory(HalfLife(FOREVER))
    history.observe_pod(make_pod(started=1000.0, period=1.0), 1000.0)
    for second in range(1, 26):
        history.observe_event(make_event(second, 1000.0 + second, first=1001.0), 1000.0 + second, listed=False)
    assert history.counts("u1", 1300.0).successes == pytest.approx(0, abs=0.5)
    assert history.counts("u1", 1430.0).successes > 90, "had it failed on, an Event would have come"


def test_prometheus_gone_events_go_on(history: ProbeHistory, make_event: MakeEvent) -> None:
    history.observe_counters([counter(40)], 1100.0)
    assert failures(history, 1100.0) == 40
    history.observe_event(make_event(1, 1105.0), 1105.0, listed=False)
    assert failures(history, 1105.0) == 40, "this one may be in the counter already"
    history.observe_event(make_event(2, 1150.0), 1150.0, listed=False)
    history.observe_event(make_event(3, 1160.0), 1160.0, listed=False)
    assert failures(history, 1160.0) == 42
    history.observe_counters([counter(43)], 1900.0)
    assert failures(history, 1900.0) == 43


def test_events_missing_counters_go_on(history: ProbeHistory) -> None:
    assert history.observe_counters([counter(0, 10)], 1100.0) == set()
    assert history.observe_counters([counter(3, 12)], 1150.0) == {"u1"}
    counts = history.counts("u1", 1150.0)
    assert (counts.failures, counts.successes) == pytest.approx((3, 12))


def test_counters_settle_what_events_reported_sooner(history: ProbeHistory, make_event: MakeEvent) -> None:
    history.observe_counters([counter(0)], 1000.0)
    history.observe_event(make_event(3, 1030.0, first=1010.0), 1030.0, listed=False)
    history.observe_counters([counter(1)], 1031.0)
    assert failures(history, 1031.0) == 3, "Prometheus lags"
    history.observe_counters([counter(3)], 1045.0)
    assert failures(history, 1045.0) == 3


def test_kubelet_restart_starts_the_counters_again(history: ProbeHistory) -> None:
    history.observe_counters([counter(5, 20)], 1100.0)
    history.observe_counters([counter(2, 1)], 1200.0)
    assert failures(history, 1200.0) == 7
    assert history.counts("u1", 1200.0).successes == pytest.approx(21)


def test_a_kill_stands_for_the_failures_that_were_not_reported(
    history: ProbeHistory, make_event: MakeEvent, make_kill: MakeEvent
) -> None:
    history.observe_event(make_event(2, 1020.0, first=1010.0), 1020.0, listed=False)
    assert history.observe_event(make_kill(1, 1030.0), 1030.0, listed=False)
    assert failures(history, 1030.0) == 3
    history.observe_event(make_event(3, 1030.0, first=1010.0), 1031.0, listed=False)
    assert failures(history, 1031.0) == 3, "the third failure's own Event came late"
    history.observe_event(make_kill(3, 1100.0, first=1030.0), 1100.0, listed=False)
    assert failures(history, 1100.0) == 9
    history.observe_counters([counter(9)], 1130.0)
    assert failures(history, 1130.0) == 9


def test_only_a_liveness_kill_counts(history: ProbeHistory, make_event: MakeEvent) -> None:
    stopping = make_event(1, 1010.0, reason="Killing", event_type="Normal", message="Stopping container srv")
    assert not history.observe_event(stopping, 1010.0, listed=False)
    assert failures(history, 1010.0) == 0


def test_a_name_used_again_is_another_pod(history: ProbeHistory, make_pod: MakePod, make_event: MakeEvent) -> None:
    history.observe_event(make_event(5, 1010.0), 1010.0, listed=False)
    history.observe_pod(make_pod("u2", started=1900.0, created=1900.0), 1900.0)
    history.observe_counters([counter(5, 50, uid="")], 1905.0)
    assert failures(history, 1905.0, "u2") == 0, "a counter without a UID may still be the old pod's"
    history.observe_counters([counter(1, 2, uid="")], 1935.0)
    assert failures(history, 1935.0, "u2") == 1
    history.forget("u1")
    assert failures(history, 1935.0, "u1") == 0
    history.observe_counters([counter(2, 5, uid="")], 1950.0)
    assert failures(history, 1950.0, "u2") == 2


def test_nothing_is_counted_again_after_a_restart(
    make_pod: MakePod, make_event: MakeEvent, make_kill: MakeEvent
) -> None:
    before = ProbeHistory(HalfLife(300.0))
    before.observe_pod(make_pod(started=1000.0), 1000.0)
    before.observe_event(make_event(4, 1030.0, first=1000.0), 1030.0, listed=False)
    before.observe_event(make_kill(1, 1031.0), 1031.0, listed=False)
    before.observe_counters([counter(6, 30)], 1040.0)
    stored = before.counts("u1", 1050.0)
    rows = before.export(1050.0)
    assert [row.uid for row in rows] == ["u1"]
    assert before.export(1050.0) == []
    assert len(before.export(1050.0, changed_only=False)) == 1

    after = ProbeHistory(HalfLife(300.0))
    after.restore(rows)
    after.observe_pod(make_pod(started=1000.0), 1060.0)
    after.drop_unused_rows()
    after.observe_event(make_event(4, 1030.0, first=1000.0), 1060.0, listed=True)
    after.observe_event(make_kill(1, 1031.0), 1060.0, listed=True)
    after.observe_counters([counter(6, 30)], 1060.0)
    assert after.counts("u1", 1060.0).failures == pytest.approx(stored.failures * decay(1060.0 - 1050.0, 300.0))
    after.observe_event(make_event(5, 1080.0, first=1000.0), 1080.0, listed=False)
    assert failures(after, 1080.0) == pytest.approx(stored.failures * decay(1080.0 - 1050.0, 300.0) + 1, rel=1e-5)


def test_a_stored_history_of_another_version_is_not_used(make_pod: MakePod, make_event: MakeEvent) -> None:
    history = ProbeHistory(HalfLife(FOREVER))
    history.restore([HappinessRow("u1", "default", "web-1", 1.0, 9.0, 1050.0, '{"other": 1}')])
    history.observe_pod(make_pod(started=1000.0), 1060.0)
    history.observe_event(make_event(4, 1030.0, first=1000.0), 1060.0, listed=True)
    assert failures(history, 1060.0) == 4


def test_pods_without_a_liveness_probe_leave_no_trace(make_pod: MakePod, make_event: MakeEvent) -> None:
    history = ProbeHistory(HalfLife(300.0))
    history.observe_pod(make_pod(liveness=False), 1000.0)
    assert not history.observe_event(make_event(1, 1000.0), 1000.0, listed=False)
    assert history.evidence("u1", 1000.0) is None
    assert history.counts("u1", 1000.0).failures == 0


def test_a_forged_count_adds_no_more_than_the_probe_can_have_failed(make_pod: MakePod, make_event: MakeEvent) -> None:
    history = ProbeHistory(HalfLife(FOREVER))
    history.observe_pod(make_pod(created=1000.0, started=1000.0, period=10.0), 1000.0)
    assert history.observe_event(make_event(1_000_000, 1055.0), 1055.0, listed=False)
    assert failures(history, 1055.0) == 6
    for number in range(50):
        text = f"Liveness probe failed: {number}"
        forged = make_event(1000, 1056.0, name=f"web-1.{number}", uid=f"f{number}", message=text)
        assert not history.observe_event(forged, 1056.0, listed=False)
        errored = make_event(9, 1056.0, name=f"web-1.e{number}", uid=f"x{number}", message="Liveness probe errored")
        assert not history.observe_event(errored, 1056.0, listed=False)
    assert failures(history, 1056.0) == 6
    assert history.observe_event(make_event(2_000_000, 1080.0, first=1055.0), 1080.0, listed=False)
    assert failures(history, 1080.0) == 9


def test_forged_kills_add_no_more_than_the_probe_can_have_failed(make_pod: MakePod, make_kill: MakeEvent) -> None:
    history = ProbeHistory(HalfLife(FOREVER))
    history.observe_pod(make_pod(created=1000.0, started=1000.0, period=10.0), 1000.0)
    history.observe_event(make_kill(1000, 1025.0), 1025.0, listed=False)
    assert failures(history, 1025.0) == 3


def test_a_forged_count_weighs_no_more_than_all_probes_of_an_old_pod(make_pod: MakePod, make_event: MakeEvent) -> None:
    history = ProbeHistory(HalfLife(300.0))
    history.observe_pod(make_pod(created=0.0, started=0.0, period=10.0), 1e6)
    history.observe_event(make_event(1_000_000, 1e6), 1e6, listed=False)
    all_probes = 300.0 / math.log(2) / 10.0
    assert failures(history, 1e6) <= all_probes + 1.01


def test_an_event_of_another_node_or_a_counter_of_another_pod_does_not_count(
    make_pod: MakePod, make_event: MakeEvent
) -> None:
    history = ProbeHistory(HalfLife(FOREVER))
    history.observe_pod(replace(make_pod(created=0.0), node="n1"), 1000.0)
    event = make_event(2, 1000.0)
    assert not history.observe_event(replace(event, host="n2"), 1000.0, listed=False)
    assert history.observe_event(replace(event, host="n1"), 1000.0, listed=False)
    for namespace, pod in (("attacker", "web-1"), ("default", "other")):
        forged = ProbeCounter(namespace, pod, "srv", 0.0, 900.0, 0.0, "u1")
        assert history.observe_counters([forged], 1010.0) == set()
    assert failures(history, 1010.0) == 2


def test_failures_that_the_counters_show_are_told_apart(history: ProbeHistory, make_event: MakeEvent) -> None:
    history.observe_event(make_event(3, 1010.0), 1010.0, listed=False)
    assert history.counts("u1", 1010.0).counted == 0
    history.observe_counters([counter(3.0)], 1020.0)
    assert (failures(history, 1020.0), history.counts("u1", 1020.0).counted) == (3, 3)


def test_a_half_life_of_probes_is_shorter_for_shorter_periods() -> None:
    assert HalfLife(300.0, 8.0).of(1.0) == 8.0
    assert HalfLife(300.0, 8.0).of(10.0) == 80.0
    assert HalfLife(300.0, 8.0).of(60.0) == 300.0
    assert HalfLife(300.0).of(1.0) == HalfLife(300.0, 8.0).of(0.0) == 300.0


def test_two_failures_in_a_row_are_seen_at_every_period(make_pod: MakePod, make_event: MakeEvent) -> None:
    """By the default half-life, goodwill and threshold, after a day without failures; one failure is not enough."""
    from reactor.settings.model import Happiness
    from reactor.state.happiness import half_life, probability

    settings = Happiness()
    for period in (1.0, 2.0, 5.0, 10.0):
        history = ProbeHistory(half_life(settings))
        history.observe_pod(make_pod(started=0.0, created=0.0, period=period), 0.0)
        seen = []
        for number in range(2):
            now = 86400.0 + number * period
            history.observe_event(make_event(count=number + 1, last=now), now, listed=False)
            seen.append(probability(history.counts("u1", now), settings.goodwill) >= settings.threshold)
        assert seen == [True, False]


def test_recent_probes_end_at_a_relief_and_are_kept_across_a_restart(make_pod: MakePod, make_event: MakeEvent) -> None:
    history = ProbeHistory(HalfLife(FOREVER))
    pod = make_pod(started=1000.0, created=1000.0, period=1.0)
    history.observe_pod(pod, 1000.0)
    history.observe_event(make_event(count=3, last=1100.0), 1100.0, listed=False)
    (before,) = history.recent("u1", 1110.0)
    assert (before.failed(), before.passed(1100.0)) == (3.0, 10.0)

    history.relieve("u1", 1110.0)
    history.observe_event(make_event(count=5, last=1120.0), 1120.0, listed=False)
    restarted = ProbeHistory(HalfLife(FOREVER))
    restarted.restore(history.export(1120.0))
    restarted.observe_pod(pod, 1120.0)

    for each in (history, restarted):
        (recent,) = each.recent("u1", 1125.0)
        assert (recent.since, recent.failed(), recent.passed(0.0)) == (1110.0, 2.0, 13.0)
        assert each.counts("u1", 1125.0).failures == 5.0


def test_a_restart_of_the_container_ends_the_recent_probes(make_pod: MakePod, make_event: MakeEvent) -> None:
    history = ProbeHistory(HalfLife(FOREVER))
    history.observe_pod(make_pod(started=1000.0, created=1000.0, period=1.0), 1000.0)
    history.observe_event(make_event(count=3, last=1100.0), 1100.0, listed=False)

    again = make_pod(started=1105.0, created=1000.0, period=1.0)
    container = replace(again.containers[0], restarts=1)
    history.observe_pod(replace(again, containers=(container,)), 1105.0)

    (recent,) = history.recent("u1", 1110.0)
    assert (recent.since, recent.failed()) == (1105.0, 0.0)


def test_failures_before_a_restart_are_a_record_only_when_the_trouble_is_over(
    make_pod: MakePod, make_event: MakeEvent
) -> None:
    """A pod that is killed again and again by the load of its node is not a pod that always fails."""
    history = ProbeHistory(HalfLife(FOREVER))
    history.observe_pod(make_pod(started=1000.0, created=1000.0, period=1.0), 1000.0)
    for kills in (1, 2):
        at = 1000.0 + 300.0 * kills
        history.observe_event(make_event(count=3 * kills, last=at), at, listed=False)
        again = make_pod(started=at + 100.0, created=1000.0, period=1.0)
        container = replace(again.containers[0], restarts=kills)
        history.observe_pod(replace(again, containers=(container,)), at + 100.0)

    (soon,) = history.recent("u1", 1710.0)
    (later,) = history.recent("u1", 2400.0)
    assert (soon.failed(), soon.earlier_share, later.failed()) == (0.0, 0.0, 0.0)
    assert later.earlier_share == pytest.approx(6 / 2400)


def test_a_killed_container_passes_no_probe_until_it_is_started_again(make_pod: MakePod, make_kill: MakeEvent) -> None:
    history = ProbeHistory(HalfLife(FOREVER))
    history.observe_pod(make_pod(started=1000.0, created=1000.0, period=1.0), 1000.0)
    history.observe_event(make_kill(last=1100.0), 1100.0, listed=False)
    (ending,) = history.recent("u1", 1130.0)
    assert ending.passed(1100.0) == 0.0

    again = make_pod(started=1140.0, created=1000.0, period=1.0)
    history.observe_pod(replace(again, containers=(replace(again.containers[0], restarts=1),)), 1140.0)
    (started,) = history.recent("u1", 1150.0)
    assert started.passed(1100.0) == 10.0


def test_many_recent_failures_are_joined_and_none_is_lost(make_pod: MakePod, make_event: MakeEvent) -> None:
    history = ProbeHistory(HalfLife(FOREVER))
    history.observe_pod(make_pod(started=1000.0, created=1000.0, period=1.0), 1000.0)
    for number in range(1, 21):
        history.observe_event(make_event(count=number, last=1000.0 + number), 1000.0 + number, listed=False)

    (recent,) = history.recent("u1", 1030.0)
    assert recent.failed() == 20.0
    assert recent.failed(1015.0) == 5.0
    assert (recent.first_failure(0.0), recent.last_failure) == (1001.0, 1020.0)
