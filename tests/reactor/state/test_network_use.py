"""What the links of nodes carry: measured as a whole, with what is stated and what came since."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from predictors.peaks import SigmaOrPercentile
from reactor.cluster.records import Node, Pod
from reactor.signals.measurements import LinkSample, NetworkSample, NodeRateSample
from reactor.signals.usage import UsageHistory
from reactor.state.network_use import NetworkUse
from tests.support.clock import NOW
from tests.support.cluster import make_node, make_pod

MBIT = 1e6


class Links:
    """Nodes n1 and n2 with links of 100 Mbit/s."""

    def __init__(self) -> None:
        self.usage = UsageHistory(60.0, 900.0, SigmaOrPercentile())
        self.network = NetworkUse(self.usage)
        for name in ("n1", "n2"):
            self.node(make_node(name))

    def node(self, node: Node) -> None:
        self.usage.observe_node(node.name)
        self.network.node_changed(None, node)

    def pod(self, pod: Pod, old: Pod | None = None) -> None:
        self.usage.observe_pod(pod)
        self.network.pod_changed(old, pod, NOW)

    def measure(self, pods: dict[str, float], nodes: dict[str, float], at: float = NOW) -> None:
        rates = [NetworkSample("shop", name, rate * MBIT, at) for name, rate in pods.items()]
        totals = [NodeRateSample(name, rate * MBIT, at) for name, rate in nodes.items()]
        links = [LinkSample(name, 100 * MBIT, at) for name in ("n1", "n2")]
        self.usage.record_network(rates, totals, links, at)
        self.network.measured(at)

    def use(self, name: str, now: float = NOW) -> float | None:
        """In percent; None for unknown."""
        shares, slot = self.network.shares(now), self.network.slots_of([name])[0]
        return round(100 * float(shares.use[slot]), 6) if shares.known[slot] else None


def stated(name: str, mbit: float, **fields: object) -> Pod:
    return make_pod(name, annotations={"rematch.io/network-bps": f"{mbit:g}M"}, **fields)


def test_the_node_s_own_traffic_is_included() -> None:
    links = Links()
    links.pod(make_pod("web-1"))
    links.measure({"web-1": 10}, {"n1": 15, "n2": 1})
    assert (links.use("n1"), links.use("n2")) == (15.0, 1.0)


def test_a_stated_demand_takes_the_place_of_the_measured_one() -> None:
    links = Links()
    links.pod(stated("web-1", 30))
    links.measure({"web-1": 10}, {"n1": 15, "n2": 0})
    assert links.use("n1") == 35.0
    links.measure({"web-1": 20}, {"n1": 15, "n2": 0})
    assert links.use("n1") == 30.0, "pods are measured over another time than nodes; nobody sends less than nothing"


def test_what_nobody_measures_cannot_be_judged() -> None:
    links = Links()
    assert links.use("n1") is None
    links.measure({}, {"n1": 15})
    assert (links.use("n1"), links.use("n2")) == (15.0, None)
    assert links.use("n1", NOW + 61) is None, "a measurement expires"


def test_an_unmeasured_pod_is_no_idle_pod() -> None:
    links = Links()
    links.measure({}, {"n1": 15, "n2": 0})
    new = make_pod("web-1", created=NOW + 1)
    links.pod(new)
    assert links.use("n1", NOW + 2) is None, "it came after the measurement"
    links.measure({}, {"n1": 18, "n2": 0}, NOW + 15)
    assert links.use("n1", NOW + 15) == 18.0, "it is in the node's total now"


def test_a_new_replica_counts_like_its_siblings_until_it_is_measured() -> None:
    links = Links()
    links.pod(make_pod("web-1", node="n2"))
    links.measure({"web-1": 4}, {"n1": 10, "n2": 4})
    links.pod(make_pod("web-2", created=NOW + 1))
    assert links.use("n1", NOW + 2) == 14.0
    assert links.network.demand_of(make_pod("web-3", node=None), NOW) == 4 * MBIT
    assert links.network.demand_of(make_pod("other-1", node=None), NOW) is None


def test_a_pod_in_the_network_of_its_host_is_the_node_s_traffic() -> None:
    links = Links()
    links.pod(stated("agent-1", 50, host_network=True))
    links.measure({"agent-1": 15}, {"n1": 15, "n2": 0})
    assert links.use("n1") == 15.0
    assert links.network.demand_of(make_pod("agent-2", host_network=True), NOW) is None


def test_bandwidth_is_stated_or_measured() -> None:
    links = Links()
    links.node(make_node("n1", annotations={"rematch.io/bandwidth-bps": "50M"}))
    links.node(make_node("n2", annotations={"rematch.io/bandwidth-bps": "fast"}))
    links.measure({}, {"n1": 10, "n2": 10})
    assert (links.use("n1"), links.use("n2")) == (20.0, 10.0)


def test_a_node_that_is_gone_is_unknown_and_its_place_is_used_again() -> None:
    links = Links()
    links.measure({}, {"n1": 10, "n2": 10})
    for number in range(3000):
        node = make_node(f"passing-{number}")
        links.network.node_changed(None, node)
        links.network.node_changed(node, None)
    assert links.network.nodes == 2
    assert len(links.network.shares(NOW).known) < 2000
    assert links.network.slots_of(["passing-7"]).tolist() == [-1]


@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from(["n1", "n2", None]), st.integers(0, 40)), max_size=30))
def test_sums_kept_along_the_way_are_those_of_the_pods_that_are_there(
    changes: list[tuple[int, str | None, int]],
) -> None:
    links = Links()
    links.measure({}, {"n1": 10, "n2": 10})
    pods: dict[str, Pod] = {}
    for number, node, mbit in changes:
        name = f"web-{number}"
        new = None if node is None else stated(name, mbit, node=node)
        if new is None:
            links.network.pod_changed(pods.pop(name, None), None, NOW)
        else:
            links.pod(new, pods.get(name))
            pods[name] = new
    kept = [links.use(name) for name in ("n1", "n2")]
    expected = [
        10.0 + sum(float(pod.annotations["rematch.io/network-bps"][:-1]) for pod in pods.values() if pod.node == name)
        for name in ("n1", "n2")
    ]
    assert kept == pytest.approx(expected)
    links.network.measured(NOW)
    assert [links.use(name) for name in ("n1", "n2")] == pytest.approx(expected)
