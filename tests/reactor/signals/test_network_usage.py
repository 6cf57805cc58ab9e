"""Network rates and link speeds: from Prometheus' answers into the history."""

from __future__ import annotations

from predictors.peaks import SigmaOrPercentile
from reactor.cluster.records import Pod
from reactor.signals.measurements import LinkSample, NetworkSample, NodeRateSample
from reactor.signals.prometheus_samples import VectorSample, link_speeds, network_rates, node_rates
from reactor.signals.usage import UsageHistory


def test_series_become_samples() -> None:
    pod = VectorSample({"namespace": "shop", "pod": "web-1"}, 8e6, 10.0)
    node = VectorSample({"instance": "10.0.0.1:9100"}, 1e9, 10.0)
    assert network_rates([pod]) == [NetworkSample("shop", "web-1", 8e6, 10.0)]
    assert node_rates([node]) == [NodeRateSample("10.0.0.1", 1e9, 10.0)]
    assert link_speeds([node]) == [LinkSample("10.0.0.1", 1e9, 10.0)]


def test_rates_and_speeds_are_kept_while_they_are_fresh() -> None:
    history = UsageHistory(60.0, 900.0, SigmaOrPercentile())
    history.observe_pod(Pod("u1", "shop", "web-1", "1", {}, {}, created=0.0))
    history.observe_node("n1", ["10.0.0.1"])
    rates = [NetworkSample("shop", "web-1", 8e6, 100.0), NetworkSample("shop", "nobody", 1.0, 100.0)]
    nodes = [NodeRateSample("10.0.0.1", 9e6, 100.0)]
    history.record_network(rates, nodes, [LinkSample("10.0.0.1", 1e9, 100.0), LinkSample("n9", 1.0, 100.0)], 100.0)
    view = history.freeze(110.0)
    assert view.network("u1").fresh == 8e6
    assert view.link_speed("n1").fresh == 1e9
    assert view.node_network("n1").fresh == 9e6
    assert history.freeze(200.0).network("u1").fresh is None
    assert view.usage("u1").cpu.fresh is None, "nothing else was measured"
