"""The live state: what signals make of it, and when it wakes the controller."""

from __future__ import annotations

import asyncio
from copy import deepcopy

import pytest
from msgspec.structs import replace

from reactor.cluster.kinds import CLUSTER_KINDS, Kind
from reactor.cluster.records import Container, Namespace, Probe
from reactor.cluster.writes import Binding
from reactor.signals.measurements import ProbeCounter
from reactor.state.live_state import ASSUMED_FOR, State
from reactor.state.moves import ActiveMoves
from tests.support.clock import NOW
from tests.support.cluster import make_event, make_node, make_pdb, make_pending, make_pod, make_settings
from tests.support.moves import make_plan, plan_move
from tests.support.rig import Rig


@pytest.fixture
def rig() -> Rig:
    return Rig()


def failures(state: State) -> dict[str, float]:
    found = state.freeze(ActiveMoves()).happiness
    return {uid: happiness.counts.failures for uid, happiness in found.items()}


async def calls(rig: Rig) -> set[str]:
    """The keys that were added since the last call."""
    waiting = asyncio.create_task(rig.work_queue.next(0.0))
    await rig.clock.advance(0.01)
    return set(await waiting)


def test_nothing_is_synced_before_every_kind_was_listed(rig: Rig) -> None:
    kinds = list(CLUSTER_KINDS)
    for kind in kinds[:-1]:
        rig.state.mirror.replaced(kind, [])
        assert not rig.state.synced

    rig.state.mirror.replaced(kinds[-1], [])

    assert rig.state.synced


def test_events_that_are_listed_before_their_pods_count_all_the_same(rig: Rig) -> None:
    pod = make_pod()
    rig.state.mirror.replaced(Kind.EVENTS, [make_event(pod, 8)])
    rig.state.mirror.replaced(Kind.PODS, [pod])
    assert failures(rig.state) == {}

    rig.sync()

    assert failures(rig.state)[pod.uid] == pytest.approx(8.0)


def test_the_first_list_is_dated_and_what_comes_later_is_now(rig: Rig) -> None:
    old, new = make_pod("web-1"), make_pod("db-1")
    rig.sync(old, new, make_event(old, 8, last=NOW - 80))

    rig.put(make_event(new, 8, last=NOW - 80))

    found = failures(rig.state)
    assert found[old.uid] == pytest.approx(4.0)
    assert found[new.uid] == pytest.approx(8.0)


def test_a_repeated_delivery_is_not_counted_twice(rig: Rig) -> None:
    pod = make_pod()
    rig.sync(pod)

    for count in (3, 3, 5, 5):
        rig.put(make_event(pod, count))

    assert failures(rig.state)[pod.uid] == pytest.approx(5.0)


@pytest.mark.parametrize(("cores", "relieved"), [(0.5, True), (0.1, False)])
def test_a_pod_of_some_size_that_leaves_relieves_the_others(rig: Rig, cores: float, relieved: bool) -> None:
    pod, other = make_pod("web-1"), make_pod("db-1", requests={"cpu": cores})
    rig.sync(pod, other, make_node())
    rig.fail(pod, 8)
    rig.clock.set(NOW + 5)

    rig.state.mirror.remove(Kind.PODS, other.uid)

    (recent,) = rig.snapshot().recent_probes[pod.uid]
    assert (recent.failed() == 0.0) is relieved
    assert failures(rig.state)[pod.uid] > 7.0


def test_counts_are_the_same_after_a_restart(rig: Rig) -> None:
    pod = make_pod()
    event = make_event(pod, 9)
    rig.sync(pod)
    rig.put(event)
    before = rig.snapshot().happiness[pod.uid]
    rows = rig.state.probes.export(rig.clock.now())

    rig.restart()
    rig.state.restore(rows)
    rig.sync(pod, event)

    after = rig.snapshot().happiness[pod.uid]
    assert after.counts.failures == pytest.approx(before.counts.failures)
    assert after.counts.successes == pytest.approx(before.counts.successes)


def test_a_snapshot_before_the_first_list_does_not_forget_what_was_restored(rig: Rig) -> None:
    pod = make_pod()
    rig.sync(pod)
    rig.fail(pod, 9)
    rows = rig.state.probes.export(rig.clock.now())

    rig.restart()
    rig.state.restore(rows)
    rig.snapshot()
    rig.sync(pod)

    assert failures(rig.state)[pod.uid] == pytest.approx(9.0)


def test_forgiven_failures_and_pods_that_are_gone_leave_the_snapshot(rig: Rig) -> None:
    pod, gone = make_pod("web-1"), make_pod("db-1")
    rig.sync(pod, gone)
    rig.fail(pod, 2)
    rig.fail(gone, 2)

    rig.remove(gone)
    assert set(failures(rig.state)) == {pod.uid}
    rig.clock.set(NOW + 300 * 10)
    assert failures(rig.state) == {}


def test_the_half_life_can_change_while_it_runs(rig: Rig) -> None:
    pod = make_pod()
    rig.sync(pod)
    rig.fail(pod, 8)

    rig.settings = make_settings(happiness={"half_life": "10s"})
    rig.state.start_cycle()
    rig.clock.set(NOW + 10)

    assert failures(rig.state)[pod.uid] == pytest.approx(4.0)


def test_thresholds_come_from_annotations_before_the_settings(rig: Rig) -> None:
    by_pod = make_pod("web-1", annotations={"rematch.io/threshold": "0.1"})
    by_namespace = make_pod("db-1")
    namespace = Namespace("shop", "uid-shop", "", {}, {"rematch.io/threshold": "0.95"})
    rig.sync(by_pod, by_namespace, namespace)
    rig.fail(by_pod, 10)
    rig.fail(by_namespace, 1)

    found = rig.snapshot().happiness

    assert found[by_pod.uid].threshold.value == 0.1
    assert not found[by_pod.uid].unhappy
    assert found[by_namespace.uid].threshold.value == 0.95


def test_a_binding_is_believed_until_the_watch_shows_it_or_the_time_is_up(rig: Rig) -> None:
    pod = make_pending("web-1")
    rig.sync(pod, make_node())
    rig.state.assume_bound(pod, "n1")
    rig.clock.set(NOW + 3600)
    assert [found.uid for found in rig.snapshot().cluster.pods_on("n1")] == [pod.uid], "no answer yet"

    rig.state.confirm_binding(pod, Binding.BOUND)
    rig.clock.set(NOW + 3600 + ASSUMED_FOR - 1)
    assert [found.uid for found in rig.snapshot().cluster.pods_on("n1")] == [pod.uid]
    rig.clock.set(NOW + 3600 + ASSUMED_FOR)
    assert rig.snapshot().cluster.pods[pod.uid].node is None


def test_a_binding_that_failed_is_not_believed(rig: Rig) -> None:
    pod = make_pending("web-1")
    rig.sync(pod, make_node())
    rig.state.assume_bound(pod, "n1")
    rig.state.release_binding(pod)
    assert rig.snapshot().cluster.pods[pod.uid].node is None


def test_what_the_watch_shows_wins_over_what_was_assumed(rig: Rig) -> None:
    pod = make_pending("web-1")
    rig.sync(pod)
    rig.state.assume_bound(pod, "n1")

    rig.put(replace(pod, node="n2"))

    assert rig.snapshot().cluster.pods[pod.uid].node == "n2"


def everything_in(state: State) -> object:
    probes, mirror = state.probes, state.mirror
    return deepcopy(
        (
            state._failing,
            state._assumed,
            state._ready,
            state.version,
            probes.half_life,
            probes._entries,
            probes._changed,
            {kind: dict(mirror.records(kind)) for kind in Kind},
        )
    )


@pytest.mark.parametrize("seconds", [0, 20, 3000])
def test_taking_a_snapshot_changes_nothing(rig: Rig, seconds: float) -> None:
    """Also when failures are negligible, an assumed binding is over and the half-life has changed."""
    pod, pending = make_pod("web-1"), make_pending("db-1")
    rig.sync(pod, pending, make_node())
    rig.fail(pod, 8)
    rig.state.assume_bound(pending, "n1")
    rig.clock.set(NOW + seconds)
    rig.settings = make_settings(happiness={"half_life": "10s"})
    before = everything_in(rig.state)

    first, second = rig.snapshot(), rig.snapshot()

    assert everything_in(rig.state) == before
    assert (first.happiness, first.cluster) == (second.happiness, second.cluster)


def test_reading_whether_it_is_synced_changes_nothing(rig: Rig) -> None:
    pod = make_pod()
    rig.put(pod, make_event(pod, 8))
    before = everything_in(rig.state)

    assert not rig.state.synced
    assert everything_in(rig.state) == before


def test_a_cycle_drops_what_time_has_ended(rig: Rig) -> None:
    pod, pending = make_pod("web-1"), make_pending("db-1")
    rig.sync(pod, pending)
    rig.fail(pod, 8)
    rig.state.assume_bound(pending, "n1")
    rig.state.confirm_binding(pending, Binding.BOUND)

    rig.state.start_cycle()
    assert (rig.state._failing, set(rig.state._assumed)) == ({pod.uid}, {pending.uid})
    rig.clock.set(NOW + 3600)
    rig.state.start_cycle()

    assert (rig.state._failing, rig.state._assumed) == (set(), {})


def test_a_snapshot_does_not_change_any_more(rig: Rig) -> None:
    pod = make_pod()
    rig.sync(pod, make_node())
    snapshot = rig.snapshot()

    rig.fail(pod, 10)
    rig.remove(pod)

    assert pod.uid in snapshot.cluster.pods
    assert snapshot.happiness == {}


async def test_a_pod_below_its_threshold_wakes_the_controller(rig: Rig) -> None:
    pod = make_pod()
    rig.sync(pod)
    await calls(rig)

    rig.fail(pod, 25)

    assert await calls(rig) == {pod.uid}


async def test_a_failing_pod_above_its_threshold_does_not(rig: Rig) -> None:
    pod = make_pod()
    rig.sync(pod)
    await calls(rig)

    rig.fail(pod, 1)

    assert await calls(rig) == set()
    assert set(failures(rig.state)) == {pod.uid}


async def test_failures_that_only_the_counters_report_wake_it_too(rig: Rig) -> None:
    pod = make_pod(containers=(Container("srv", Probe(), 0, NOW - 3600),))
    rig.sync(pod)
    await calls(rig)

    rig.state.observe_counters([ProbeCounter("shop", "web-1", "srv", 10.0, 0.0, NOW, pod.uid)])
    rig.clock.set(NOW + 30)
    rig.state.observe_counters([ProbeCounter("shop", "web-1", "srv", 10.0, 90.0, NOW + 30, pod.uid)])

    assert await calls(rig) == {pod.uid}


async def test_a_change_of_a_running_pod_wakes_it_only_while_moves_are_under_way(rig: Rig) -> None:
    pod = make_pod()
    rig.sync(pod, make_node())
    await calls(rig)

    rig.put(replace(pod, ready=False))
    assert await calls(rig) == set()

    rig.executor.adopt(make_plan(plan_move(pod, "n2")), "plan-1", rig.snapshot())
    rig.put(replace(pod, ready=True))
    assert await calls(rig) == {"moves"}


async def test_a_budget_that_opens_wakes_it_while_moves_are_under_way(rig: Rig) -> None:
    pod = make_pod()
    rig.sync(pod)
    rig.put(make_pdb("web-pdb", 0))
    await calls(rig)

    rig.put(make_pdb("web-pdb", 1))
    assert await calls(rig) == set()

    rig.executor.adopt(make_plan(plan_move(pod, "n2")), "plan-1", rig.snapshot())
    rig.put(make_pdb("web-pdb", 0))
    assert await calls(rig) == {"moves"}


async def test_pending_pods_of_ours_wake_it_when_they_come_and_when_they_are_bound_or_gone(rig: Rig) -> None:
    rig.sync()
    pod, other = make_pending("web-1"), make_pending("db-1", scheduler_name="default-scheduler")
    await calls(rig)

    rig.put(pod, other)
    assert await calls(rig) == {pod.uid}
    rig.put(replace(pod, node="n1"))
    assert await calls(rig) == {pod.uid}
    rig.remove(pod)
    rig.remove(other)
    assert await calls(rig) == set()


async def test_new_measurements_wake_it_only_when_a_pod_fails(rig: Rig) -> None:
    pod = make_pod()
    rig.sync(pod)
    await calls(rig)

    rig.state.usage_changed()
    assert await calls(rig) == set()
    rig.fail(pod, 1)
    rig.state.usage_changed()
    assert await calls(rig) == {"metrics"}


async def test_the_first_list_wakes_it(rig: Rig) -> None:
    rig.sync()

    assert await calls(rig) == {"synced"}


def test_usage_follows_pods_and_nodes(rig: Rig) -> None:
    pod, node = make_pod(), make_node()
    rig.sync(pod, node)
    rig.measure({"web-1": 0.5}, {"n1": 1.5})

    usage = rig.snapshot().usage
    assert usage.usage(pod.uid).cpu.fresh == 0.5
    assert usage.node_usage("n1").cpu.fresh == 1.5
    rig.remove(pod)
    rig.state.mirror.remove(Kind.NODES, "n1")
    usage = rig.snapshot().usage
    assert usage.usage(pod.uid).cpu.fresh is None
    assert usage.node_usage("n1").cpu.fresh is None


def test_every_change_shows_in_the_version(rig: Rig) -> None:
    before = rig.state.version

    rig.put(make_node())

    assert rig.state.version > before
