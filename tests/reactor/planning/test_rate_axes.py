"""The network and disk axes of a problem: what pods send, what nodes carry beside them, and what is unknown."""

from __future__ import annotations

from matching.problem import Node as ProblemNode
from matching.problem import Pod as ProblemPod
from matching.problem import Problem
from predictors.peaks import SigmaOrPercentile
from reactor.cluster.records import Pod
from reactor.planning.rate_axes import for_planner, rate_axes
from reactor.settings.model import Planner, Settings
from reactor.signals.measurements import DiskSample, LinkSample, NetworkSample, NodeRateSample
from reactor.signals.usage import UsageHistory
from reactor.state.moves import ActiveMoves
from reactor.state.snapshot import Needs, Snapshot
from tests.support.clock import NOW
from tests.support.cluster import make_node, make_pod, make_settings, make_view

NETWORK = make_settings(planner={"name": "network"})


def problem_of(
    pods: list[Pod],
    rates: dict[str, float],
    totals: dict[str, float],
    settings: Settings = NETWORK,
    needs: Needs = Needs.METRICS,
) -> Problem:
    usage = UsageHistory(60.0, 900.0, SigmaOrPercentile())
    nodes = [make_node("n1", annotations={"rematch.io/disk-bandwidth-bytes-per-second": "4e8"}), make_node("n2")]
    for node in nodes:
        usage.observe_node(node.name)
    for pod in pods:
        usage.observe_pod(pod)
    samples = [NetworkSample("shop", name, rate, NOW) for name, rate in rates.items()]
    of_nodes = [NodeRateSample(name, rate, NOW) for name, rate in totals.items()]
    usage.record_network(samples, of_nodes, [LinkSample(node.name, 1e9, NOW) for node in nodes], NOW)
    usage.record_disk([DiskSample("shop", name, rate, NOW) for name, rate in rates.items()], of_nodes, NOW)
    seen = Snapshot(NOW, make_view(pods, nodes), usage.freeze(NOW), {}, ActiveMoves(), needs)
    amounts = (1.0, 1.0)
    plain = Problem(
        ("cpu", "memory"),
        tuple(ProblemPod(pod.key, pod.uid, amounts, amounts, amounts, node=pod.node) for pod in pods),
        tuple(ProblemNode(node.name, (4.0, 8.0)) for node in nodes),
    )
    return for_planner(plain, seen, settings)


def test_the_node_s_own_traffic_is_what_its_pods_do_not_send() -> None:
    pods = [make_pod("web-1"), make_pod("agent-1", host_network=True)]
    found = problem_of(pods, {"web-1": 2e8, "agent-1": 3e8}, {"n1": 3e8, "n2": 1e7})
    assert [pod.usage[-1] for pod in found.pods] == [2e8, 0.0]
    assert [pod.unknown for pod in found.pods] == [(), ("network",)], "what is measured there is the node's"
    assert [node.background for node in found.nodes] == [(0.0, 0.0, 1e8), (0.0, 0.0, 1e7)]
    assert [node.unknown for node in found.nodes] == [(), ()]


def test_a_node_whose_traffic_nobody_measures_cannot_be_judged() -> None:
    found = problem_of([make_pod("web-1")], {"web-1": 2e8}, {"n2": 1e7})
    assert [node.unknown for node in found.nodes] == [("network",), ()]


def test_an_unmeasured_pod_is_part_of_its_node_s_traffic() -> None:
    found = problem_of([make_pod("web-1"), make_pod("db-1")], {"web-1": 2e8}, {"n1": 3e8, "n2": 0.0})
    assert [pod.unknown for pod in found.pods] == [(), ("network",)]
    assert found.nodes[0].background[-1] == 1e8


def test_a_file_has_no_traffic_but_what_it_states() -> None:
    stated = make_pod("web-1", annotations={"rematch.io/network-bps": "10M"})
    found = problem_of([stated], {}, {}, needs=Needs.REQUESTS)
    assert found.pods[0].usage[-1] == 1e7
    assert [(node.background[-1], node.unknown) for node in found.nodes] == [(0.0, ()), (0.0, ())]


def test_disk_is_an_axis_where_weights_name_it() -> None:
    settings = make_settings(planner={"name": "genetic", "parameters": {"weights": {"cpu": 1, "disk": 1}}})
    found = problem_of([make_pod("web-1")], {"web-1": 1e8}, {"n1": 1.5e8, "n2": 1e7}, settings)
    assert found.axes == ("cpu", "memory", "disk")
    assert found.pods[0].usage[-1] == 1e8
    assert [node.allocatable[-1] for node in found.nodes] == [4e8, 0.0]
    assert [node.background[-1] for node in found.nodes] == [5e7, 1e7]
    assert [node.unknown for node in found.nodes] == [(), ("disk",)], "what its disk can do is not stated"


def test_axes_are_those_that_a_planner_names() -> None:
    assert rate_axes(Planner(name="stable")) == ()
    assert rate_axes(Planner(name="network")) == ("network",)
    assert rate_axes(Planner(name="network", parameters={"axis": "disk"})) == ("disk",)
    by_node = {"nodeWeights": {"strong": {"network": 0.5, "disk": 0.5}}}
    assert rate_axes(Planner(name="genetic", parameters=by_node)) == ("network", "disk")
