"""Probes are counted by the load of their node, and only those that say something about it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from reactor.background import failing_workloads
from reactor.background.failing_workloads import WATCHED_FOR
from reactor.background.probe_counting import ProbeCounting
from reactor.background.probing_pods import SETTLED_AFTER
from reactor.cluster.records import Container, Pod, Probe
from reactor.signals.measurements import ProbeCounter
from reactor.state.calibration import EXPECTED, FAILURES, LOAD, PROBES
from tests.support.clock import NOW
from tests.support.cluster import GIB, make_node, make_owner, make_pod, make_settings
from tests.support.rig import Rig

ROUND = 30.0


class Counted:
    """A rig whose nodes are measured in rounds. Each node has 4 cores."""

    def __init__(self, *pods: Pod, **loads: float) -> None:
        self.rig = Rig()
        self.loads = loads or {"n1": 0.5}
        self.rig.sync(*(make_node(name) for name in self.loads), *pods)
        self.counting = ProbeCounting(self.rig.state, lambda: self.rig.settings, self.rig.clock)

    async def round(self, seconds: float = ROUND, *, measured: bool = True) -> None:
        self.rig.clock.set(self.rig.clock.now() + seconds)
        if measured:
            self.rig.measure({}, {name: 4.0 * load for name, load in self.loads.items()})
        await self.counting.count()

    def total(self, column: int) -> float:
        """Rounded: they decay, by a little."""
        return round(float(self.rig.state.calibration.table[:, column].sum()), 2)

    @property
    def bins(self) -> dict[float, tuple[float, float]]:
        """Probes and failures by the mean load of the bin."""
        used = [row for row in self.rig.state.calibration.table.tolist() if row[PROBES] > 0]
        return {round(row[LOAD] / row[PROBES], 3): (round(row[PROBES], 2), round(row[FAILURES], 2)) for row in used}

    def fail(self, pod: Pod, count: int) -> None:
        """The kubelet's counters, as Prometheus reads them."""
        self.rig.state.observe_counters(
            [ProbeCounter(pod.namespace, pod.name, "srv", 0.0, float(count), self.rig.clock.now(), pod.uid)]
        )


async def begun(*pods: Pod, **loads: float) -> Counted:
    counted = Counted(*pods, **loads)
    await counted.round(0.0)
    return counted


def owned(name: str, **fields: Any) -> Pod:
    return make_pod(name, owner=make_owner(f"{name.partition('-')[0]}-1a2b"), **fields)


WEB, API = owned("web-1", node="n1"), owned("api-1", node="n2")


async def test_probes_are_counted_under_the_load_of_their_node() -> None:
    counted = await begun(WEB, API, n1=0.3, n2=0.97)
    await counted.round()
    period = WEB.containers[0].liveness.period  # type: ignore[union-attr]
    assert counted.bins == {0.3: (ROUND / period, 0.0), 0.97: (ROUND / period, 0.0)}
    curve = counted.rig.state.calibration.curve
    expected = 3 * (curve.probability(0.3) + curve.probability(0.97))
    assert counted.total(EXPECTED) == pytest.approx(expected, abs=0.01)


async def test_the_worst_axis_is_the_load() -> None:
    counted = await begun(WEB, n1=0.1)
    counted.rig.clock.set(NOW + ROUND)
    counted.rig.measure({}, {"n1": 0.4}, memory=7.2 * GIB)
    await counted.counting.count()
    assert list(counted.bins) == [0.9]


async def test_failures_are_counted_once_and_under_the_load_they_happened_at() -> None:
    counted = await begun(WEB, API, n1=0.3, n2=0.97)
    counted.fail(API, 100)
    await counted.round()
    assert counted.total(FAILURES) == 0, "a first counter value may be of any time"
    counted.fail(API, 102)
    await counted.round()
    await counted.round()
    assert counted.bins[0.97] == (9.0, 2.0)
    assert counted.bins[0.3][1] == 0


async def test_failures_that_events_report_are_counted_unless_they_are_history() -> None:
    counted = await begun(API, n2=0.97)
    counted.rig.fail(API, 2)
    await counted.round()
    assert counted.total(FAILURES) == 2


@pytest.mark.parametrize(
    "change",
    [
        {"created": NOW, "started": NOW},
        {"phase": "Pending"},
        {"deleting": NOW},
        {"namespace": "kube-system"},
        {"containers": (Container("srv"),)},
        {"containers": (Container("srv", Probe(), started=None),)},
        {"node": "unknown"},
    ],
    ids=["just started", "not running", "being deleted", "not managed", "no probe", "not started", "unknown node"],
)
async def test_pods_that_say_nothing_are_left_out(change: dict[str, Any]) -> None:
    counted = await begun(replace(WEB, **change), n1=0.9)
    await counted.round()
    assert counted.total(PROBES) == 0


async def test_a_pod_counts_from_a_while_after_its_start() -> None:
    counted = await begun(replace(WEB, created=NOW, started=NOW), n1=0.9)
    await counted.round(SETTLED_AFTER - 10)
    assert counted.total(PROBES) == 0
    await counted.round(30.0)
    assert counted.total(PROBES) == pytest.approx(2.0)


async def test_a_pod_that_changes_or_goes_counts_as_it_is_now() -> None:
    counted = await begun(WEB, n1=0.3, n2=0.9)
    await counted.round()
    counted.rig.put(replace(WEB, node="n2"))
    await counted.round()
    assert counted.bins == {0.3: (3.0, 0.0), 0.9: (3.0, 0.0)}
    counted.rig.remove(WEB)
    await counted.round()
    assert counted.total(PROBES) == 6.0
    counted.rig.put(replace(API, node="n1"))
    await counted.round()
    assert counted.bins[0.3] == (6.0, 0.0)


async def test_a_node_without_fresh_metrics_or_not_ready_counts_for_nothing() -> None:
    counted = await begun(WEB, API, n1=0.3, n2=0.9)
    counted.rig.put(replace(make_node("n2"), ready=False))
    await counted.round()
    assert list(counted.bins) == [0.3]
    freshness = counted.rig.settings.metrics.freshness
    for _ in range(10):
        await counted.round(freshness / 3, measured=False)
    assert counted.total(PROBES) <= (ROUND + freshness) / 10 + 1


async def test_nothing_is_counted_for_a_gap_in_the_measurements() -> None:
    counted = await begun(WEB, n1=0.3)
    counted.rig.fail(WEB, 1)
    await counted.round(100_000.0)
    assert counted.total(PROBES) == counted.total(FAILURES) == 0
    await counted.round()
    assert counted.total(PROBES) == 3.0


async def test_other_settings_change_who_counts() -> None:
    counted = await begun(WEB, n1=0.3)
    counted.rig.settings = make_settings(managed={"namespaces": ["other"]})
    await counted.round()
    assert counted.total(PROBES) == 0
    counted.rig.settings = make_settings(managed={"namespaces": ["shop"]})
    await counted.round()
    assert counted.total(PROBES) == 3.0


async def test_a_pod_whose_events_are_silenced_is_left_out() -> None:
    """Without counters nobody knows whether its probes fail."""
    counted = await begun(API, n2=0.97)
    counted.rig.fail(API, 40)
    for _ in range(5):
        await counted.round()
    assert counted.total(PROBES) == counted.total(FAILURES) == 0


async def test_a_broken_workload_does_not_teach_that_quiet_nodes_fail() -> None:
    broken = owned("web-2", node="n1")
    counted = await begun(WEB, broken, API, n1=0.3, n2=0.3)
    counted.fail(broken, 0)
    for number in range(1, int(3 * WATCHED_FOR / ROUND)):
        counted.fail(broken, 3 * number)
        await counted.round()
    assert counted.total(FAILURES) == 0
    assert counted.total(PROBES) == pytest.approx(3.0 * (3 * WATCHED_FOR / ROUND - 1), rel=0.01), "those of the other"


async def test_a_workload_that_fails_now_and_then_is_counted_later() -> None:
    counted = await begun(API, n2=0.3)
    counted.fail(API, 0)
    counted.fail(API, 1)
    rounds = int(WATCHED_FOR / ROUND) + 1
    for number in range(rounds):
        assert counted.total(PROBES) == 0, number
        await counted.round()
    await counted.round()
    assert counted.total(FAILURES) == pytest.approx(1.0, rel=0.01)
    assert counted.total(PROBES) == pytest.approx(3.0 * (rounds + 1), rel=0.01)


async def test_where_too_many_workloads_fail_on_quiet_nodes_the_others_are_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first, second = owned("web-1", node="n1"), owned("api-1", node="n1")
    counted = await begun(first, second, n1=0.3)
    monkeypatch.setattr(counted.counting._failing, "_free", [1])
    for pod in (first, second):
        counted.fail(pod, 0)
        counted.fail(pod, 1)
    for _ in range(int(WATCHED_FOR / ROUND) + 2):
        await counted.round()
    assert counted.total(FAILURES) == pytest.approx(1.0, rel=0.01)
    assert failing_workloads.LEFT_OUT not in counted.counting._pods.group, "until their time is over"


async def test_a_thousand_pods_of_many_nodes_are_counted_as_one_by_one() -> None:
    random = np.random.default_rng(3)
    loads = {f"n{number}": float(load) for number, load in enumerate(random.uniform(0, 1.3, 20))}
    pods = [owned(f"app{n % 40}-{n}", node=f"n{random.integers(20)}") for n in range(1000)]
    counted = await begun(*pods, **loads)
    await counted.round()
    expected: dict[int, float] = {}
    for pod in pods:
        at = min(29, int(loads[pod.node or ""] / 0.05))
        expected[at] = expected.get(at, 0.0) + 3.0
    table = counted.rig.state.calibration.table
    assert {at: row[PROBES] for at, row in enumerate(table.tolist()) if row[PROBES]} == pytest.approx(expected)
