"""What a cycle records: rows, Events and metrics, and what the dashboard shows of the rows."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
import structlog

from matching.plan import Rejected, Unplaced
from matching.testing import random_problem
from reactor.cluster.records import Pod
from reactor.cluster.writes import Binding, BindingAnswer, Eviction
from reactor.decision.brakes import Brake, BrakeCause, Brakes
from reactor.decision.decide import Decision, Trigger, Unhappy, Wait
from reactor.decision.effects import Trial, Verdict
from reactor.decision.evidence import Evidence, Part, PartName, RecentCounts
from reactor.decision.wait_reasons import Reason
from reactor.execution.binder import Bound
from reactor.execution.cycle_outcome import Outcome, Placement, Rematch
from reactor.record.landings import Landing
from reactor.state.moves import NO_NODE, Move
from reactor.state.snapshot import Snapshot
from tests.support.clock import NOW
from tests.support.cluster import make_happiness, make_node, make_pending, make_pod, make_settings, make_snapshot
from tests.support.moves import active_moves, make_move, make_plan, plan_move
from tests.support.rig import Rig

WEB, DB = make_pod("web-1"), make_pod("db-1")
SETTINGS = make_settings(mode="act")


class Record:
    """A recorder, and a way to hand it outcomes."""

    def __init__(self) -> None:
        self.rig = Rig()
        self.cycle = 0

    def __call__(self, snapshot: Snapshot, **parts: Any) -> None:
        self.cycle += 1
        decision = parts.pop("decision", Decision(snapshot.at, Trigger.UNHAPPY))
        outcome = Outcome(decision, executed=parts.pop("moves", ()), active=snapshot.moves, **parts)
        if outcome.rematch is not None:
            self.rig.recorder.record_plan(f"c{self.cycle}", decision, outcome.rematch, SETTINGS)
        self.rig.recorder.record(f"c{self.cycle}", snapshot, outcome, SETTINGS)

    def events(self) -> list[str]:
        events = []
        while not self.rig.events._queue.empty():
            event = self.rig.events._queue.get_nowait()
            events.append(f"{event.type} {event.name} {event.reason}: {event.message}")
        return events

    def value(self, name: str, **labels: str) -> float | None:
        return self.rig.instruments.registry.get_sample_value(name, labels)


@pytest.fixture
def record() -> Record:
    return Record()


def cluster(*pods: Pod, **more: Any) -> Snapshot:
    return make_snapshot(pods, [make_node("n1"), make_node("n2")], **more)


def waiting(reason: Reason, text: str = "for it") -> Decision:
    return Decision(NOW, Trigger.UNHAPPY, waits=(Wait(WEB.uid, WEB.key, reason, text, NOW + 5),))


def test_a_wait_is_recorded_once_and_again_when_its_reason_changes(record: Record) -> None:
    for reason in (Reason.COOLDOWN, Reason.COOLDOWN, Reason.BRAKED, Reason.COOLDOWN):
        record(cluster(WEB), decision=waiting(reason))

    rows = record.rig.rows.decisions
    assert [(row.kind, row.reason, row.until) for row in rows] == [
        ("wait", "cooldown", NOW + 5),
        ("wait", "braked", NOW + 5),
        ("wait", "cooldown", NOW + 5),
    ]
    assert len({row.id for row in rows}) == 3
    assert record.value("rematch_waits_total", reason="cooldown") == 2
    assert record.events() == [
        "Normal web-1 RematchWaits: cooldown: for it",
        "Normal web-1 RematchWaits: braked: for it",
    ]
    assert [view.reason for view in record.rig.rows.history] == [
        "cooldown",
        "braked",
        "cooldown",
    ]


def test_a_suspected_node_is_reported_on_the_node(record: Record) -> None:
    evidence = Evidence((), RecentCounts(0.0, 5.0, 0.0, 0.0, 5.0), node_suspected=True)
    unhappy = Unhappy(WEB.uid, WEB.key, make_happiness(10.0), "others fail there, too", evidence)

    record(cluster(WEB), decision=Decision(NOW, Trigger.UNHAPPY, (unhappy,)))

    assert any(text.startswith("Warning n1 NodeSuspected: pods of several workloads fail") for text in record.events())
    assert record.value("rematch_suspected_nodes_total", node="n1") == 1


def test_the_log_says_what_the_odds_of_a_decision_are_made_of(record: Record) -> None:
    parts = (Part(PartName.PRIOR, 0.1, "mostly ill itself"), Part(PartName.LOAD, 599.98765, "n1 uses 76% of its cpu"))
    evidence = Evidence(parts, RecentCounts(0.0, 5.0, 0.0, 0.0, 5.0))
    unhappy = Unhappy(WEB.uid, WEB.key, make_happiness(10.0), "n1 is crowded", evidence)
    wait = Wait(DB.uid, DB.key, Reason.APP_FAILS, "it fails everywhere", evidence=evidence)

    with structlog.testing.capture_logs() as lines:
        record(cluster(WEB, DB), decision=Decision(NOW, Trigger.UNHAPPY, (unhappy,), (wait,)))

    assert [(line["event"], line["odds"]) for line in lines if "odds" in line] == [
        ("wait", "prior 0.1 x load 600"),
        ("unhappy", "prior 0.1 x load 600"),
    ]


def test_an_unhappy_pod_and_its_plan_are_recorded(record: Record) -> None:
    unhappy = Unhappy(WEB.uid, WEB.key, make_happiness(10.0), "n1 is crowded")
    rematch = Rematch("plan-1", make_plan(plan_move(WEB, "n2")), random_problem(0))

    record(cluster(WEB), decision=Decision(NOW, Trigger.UNHAPPY, (unhappy,)), rematch=rematch)

    (entry,) = record.rig.rows.history
    assert (entry.kind, entry.reason, entry.pod, entry.plan) == ("rematch", "unhappy", "shop/web-1", "plan-1")
    assert entry.text == "shop/web-1 at 0.33: n1 is crowded"
    assert [(move.source, move.target, move.state) for move in entry.moves] == [("n1", "n2", "planned")]
    (plan,) = record.rig.rows.plans
    assert (plan.id, plan.cycle, plan.mode, plan.trigger, plan.moves) == ("plan-1", "c1", "act", "unhappy", 1)
    assert msgspec.json.decode(plan.document)["moves"][0]["to"] == "n2"
    (event_text,) = record.events()
    assert event_text.startswith(
        "Warning web-1 Unhappy: happiness 0.33 is below 0.8; n1 is crowded; plan plan-1 moves it"
    )
    assert record.value("rematch_plans_total", planner="stable") == 1
    assert record.value("rematch_plan_moves") == 1


def test_an_unhappy_pod_without_a_plan_is_recorded_once(record: Record) -> None:
    """Moves are under way, or the planner refused the problem."""
    for cause in ("n1 is crowded", "n1 is crowded", "n1 throttles it"):
        unhappy = Unhappy(WEB.uid, WEB.key, make_happiness(10.0), cause)
        record(cluster(WEB), decision=Decision(NOW, Trigger.UNHAPPY, (unhappy,)))

    assert [(entry.kind, entry.pod, entry.text) for entry in record.rig.rows.history] == [
        ("rematch", "shop/web-1", "no plan was made; happiness 0.33: n1 throttles it"),
        ("rematch", "shop/web-1", "no plan was made; happiness 0.33: n1 is crowded"),
    ]


@pytest.mark.parametrize(
    ("move", "event"),
    [
        (make_move(WEB, "n2", "evicted", evicted=NOW, answer=Eviction.ACCEPTED), "Normal web-1 Moving"),
        (make_move(WEB, "n2", "done", evicted=NOW - 9, ended=NOW, replacement=DB.uid), "Normal db-1 Moved"),
        (make_move(WEB, "n2", "late", evicted=NOW - 200, replacement=DB.uid), "Warning db-1 MoveLate"),
        (
            make_move(WEB, "n2", "failed", ended=NOW, answer=Eviction.FORBIDDEN, outcome="no"),
            "Warning web-1 MoveFailed",
        ),
        (make_move(WEB, "n2", "skipped", ended=NOW, outcome="n2 is full"), "Normal web-1 MoveSkipped: n2 is full"),
    ],
)
def test_each_state_of_a_move_is_an_event_on_the_pod_that_exists(record: Record, move: Move, event: str) -> None:
    record(cluster(WEB, DB), moves=(move,))

    (event_text,) = record.events()
    assert event_text.startswith(event)
    (row,) = record.rig.rows.moves
    assert (row.id, row.state, row.from_node, row.to_node) == (move.id, move.state, "n1", "n2")
    assert (row.ended is None) == move.active
    assert len(record.rig.rows.history) == 1


def test_evictions_and_ended_moves_are_counted_once(record: Record) -> None:
    flying = make_move(WEB, "n2", "evicted", evicted=NOW, answer=Eviction.ACCEPTED)
    done = make_move(WEB, "n2", "done", evicted=NOW, ended=NOW + 7, answer=Eviction.ACCEPTED, replacement=DB.uid)
    refused = make_move(DB, "n2", "failed", ended=NOW, answer=Eviction.PDB)

    record(cluster(WEB, DB, moves=active_moves({flying: WEB})), moves=(flying, refused))
    assert record.value("rematch_moves_in_flight") == 1
    record(cluster(DB), moves=(done,))

    assert record.value("rematch_evictions_total", answer="accepted") == 1
    assert record.value("rematch_evictions_total", answer="budget") == 1
    assert record.value("rematch_moves_total", outcome="done") == 1
    assert record.value("rematch_moves_total", outcome="failed") == 1
    assert record.value("rematch_move_duration_seconds_sum") == 7
    assert record.value("rematch_moves_in_flight") == 0


def test_a_move_that_is_refused_half_way_is_an_event_and_a_metric(record: Record) -> None:
    stuck = make_move(WEB, "n2", "undoing", refused="takeBack: pods is forbidden")
    record(cluster(WEB, DB, moves=active_moves({stuck: WEB})))

    assert record.value("rematch_moves_refused") == 1
    (event,) = record.events()
    assert "half-way from n1 to n2, takeBack: pods is forbidden" in event
    record(cluster(WEB, DB))
    assert record.value("rematch_moves_refused") == 0


@pytest.mark.parametrize(("helped", "reason"), [(True, "helped"), (False, "didNotHelp")])
def test_a_judged_move_has_an_entry_of_its_own(record: Record, helped: bool, reason: str) -> None:
    trial = Trial("shop", "shop/web", NOW)

    record.rig.recorder.check_moves("c1", {WEB.uid: trial}, [Verdict(trial, "n1", helped, NOW)], cluster(WEB))

    (entry,) = record.rig.rows.history
    assert (entry.kind, entry.reason, entry.pod, entry.cycle) == ("move", reason, "shop/web-1", "c1")
    assert entry.text.endswith("0.0% of probes failed on n1")


def test_brakes_and_effects_show_as_metrics(record: Record) -> None:
    brake = Brake("shop", BrakeCause.NO_EFFECT, "3 moves in shop did not help", NOW, NOW + 60)
    verdict = Verdict(Trial("shop", "Deployment/shop/web", NOW), "n2", False, NOW)

    cluster = Brake("", BrakeCause.NOT_READY, "2 of 3 nodes are not Ready", NOW, NOW + 60)
    record.rig.recorder.record_effects([verdict], Brakes((brake, cluster)), NOW)
    assert record.value("rematch_halted") == 1
    assert record.value("rematch_brake", namespace="shop", cause="movesWithoutEffect") == 1
    assert record.value("rematch_brake", namespace="*", cause="nodesNotReady") == 1
    assert record.value("rematch_move_effects_total", effect="did not help") == 1
    record.rig.recorder.record_effects([], Brakes(), NOW)
    assert record.value("rematch_halted") == 0


def test_only_managed_pods_count_as_unhappy(record: Record) -> None:
    system = make_pod("dns-1", namespace="kube-system")

    record(cluster(WEB, DB, system, failures={"web-1": 10.0, "db-1": 0.1, "dns-1": 10.0}))

    assert record.value("rematch_pods_unhappy") == 1
    assert record.value("rematch_pod_happiness_ratio", namespace="shop", pod="web-1") == pytest.approx(1 / 3)
    record(cluster(DB))
    assert record.value("rematch_pod_happiness_ratio", namespace="shop", pod="web-1") is None


def test_placements_of_pending_pods_and_their_bindings_are_recorded(record: Record) -> None:
    first, second = make_pending("web-2"), make_pending("web-3")
    plan = make_plan(plan_move(first, "n1"), plan_move(second, "n2"))
    bound = (
        Bound(first, plan.moves[0], BindingAnswer(Binding.BOUND)),
        Bound(second, plan.moves[1], BindingAnswer(Binding.FORBIDDEN, "no right to")),
    )

    record.rig.recorder.record_placement("c1", cluster(first, second), Placement(plan, bound, ()))

    assert [(row.kind, row.reason, row.pod_key) for row in record.rig.rows.decisions] == [
        ("place", "pending", "shop/web-2"),
        ("place", "pending", "shop/web-3"),
    ]
    assert record.events() == [
        "Normal web-2 Scheduled: Successfully assigned shop/web-2 to n1",
        "Warning web-3 FailedBinding: binding to n2 failed (forbidden): no right to",
    ]
    assert record.value("rematch_bindings_total", answer="forbidden") == 1
    texts = [view.text for view in record.rig.rows.history]
    assert texts == ["could not be bound to n2: because", "bound to n1: because"]


def test_an_unsupported_constraint_is_named_in_an_event(record: Record) -> None:
    pod = make_pending("web-2", unsupported=("podAntiAffinity", "hostPorts"))

    record.rig.recorder.record_placement("c1", cluster(pod), Placement(None, (), (pod,)))

    assert record.events() == ["Warning web-2 FailedScheduling: unsupported podAntiAffinity, hostPorts"]


def test_a_pod_that_stays_pending_is_not_written_every_cycle(record: Record) -> None:
    """As in mode observe, or where a pod fits nowhere."""
    waiting, unplaced = make_pending("web-2"), make_pending("web-3")
    left = Unplaced(unplaced.key, unplaced.uid, "fits nowhere", (Rejected("n1", "full"),))
    to_n1, to_n2 = (msgspec.structs.replace(waiting), "n1"), (waiting, "n2")

    for pod, target in (to_n1, to_n1, to_n1, to_n2):
        plan = make_plan(plan_move(pod, target))
        plan = type(plan)(plan.planner, plan.moves, (), (left,), plan.certificate, plan.before, plan.after)
        record.rig.recorder.record_placement("c1", cluster(waiting, unplaced), Placement(plan, (), (), observed=True))

    rows = [(row.pod_key, row.reason) for row in record.rig.rows.decisions]
    assert rows == [("shop/web-2", "pending"), ("shop/web-3", "unplaced"), ("shop/web-2", "pending")]
    assert len(record.rig.rows.history) == 3
    assert "Normal web-2 WouldBind: mode is observe: would bind to n1" in record.events()


def test_every_listener_is_called_for_every_cycle(record: Record) -> None:
    heard: list[str] = []
    record.rig.recorder.listen(lambda cycle, _snapshot, _outcome: heard.append(cycle))

    record(cluster())
    record(cluster())

    assert heard == ["c1", "c2"]
    assert record.value("rematch_cycles_total", trigger="unhappy") == 2


def test_the_time_of_a_stage_is_measured(record: Record) -> None:
    with record.rig.recorder.timed("plan"):
        pass

    assert record.value("rematch_cycle_stage_duration_seconds_count", stage="plan") == 1


def test_where_replacements_land_is_counted_once_per_move_that_has_ended(record: Record) -> None:
    def landed(name: str, node: str, target: str = "n2", **fields: Any) -> tuple[Move, Pod]:
        new = make_pod(f"{name}-2", node=node)
        return make_move(make_pod(f"{name}-1"), target, "done", replacement=new.uid, **({"ended": NOW} | fields)), new

    cases = [
        landed("planned", "n2"),
        landed("elsewhere", "n3"),
        landed("source", "n1"),
        landed("flying", "n2", ended=None),
        landed("dumped", "n2", NO_NODE),
    ]
    nodes = [make_node(name) for name in ("n1", "n2", "n3")]
    snapshot = make_snapshot([pod for _, pod in cases], nodes)
    record(snapshot, moves=tuple(move for move, _ in cases))
    record(snapshot, moves=(make_move(make_pod("gone-1"), "n2", "failed", replacement="uid-gone-2", ended=NOW),))
    assert [record.value("rematch_landings_total", result=result) for result in Landing] == [1, 1, 1]
    assert record.rig.recorder.landings.counts == {Landing.PLANNED: 1, Landing.ELSEWHERE: 1, Landing.SOURCE: 1}
