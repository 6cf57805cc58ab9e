"""Network rates and link speeds: from Prometheus' answers into the history; speeds only when the planner uses them."""

from __future__ import annotations

from predictors.peaks import SigmaOrPercentile
from reactor.cluster.records import Pod
from reactor.planning.network import prometheus_queries
from reactor.settings.load import parse_settings
from reactor.signals.measurements import LinkSample, NetworkSample
from reactor.signals.prometheus_samples import VectorSample, link_speeds, network_rates
from reactor.signals.usage import UsageHistory


def test_series_become_samples() -> None:
    pod = VectorSample({"namespace": "shop", "pod": "web-1"}, 8e6, 10.0)
    node = VectorSample({"instance": "10.0.0.1:9100"}, 1e9, 10.0)
    assert network_rates([pod]) == [NetworkSample("shop", "web-1", 8e6, 10.0)]
    assert link_speeds([node]) == [LinkSample("10.0.0.1", 1e9, 10.0)]


def test_rates_and_speeds_are_kept_while_they_are_fresh() -> None:
    history = UsageHistory(60.0, 900.0, SigmaOrPercentile())
    history.observe_pod(Pod("u1", "shop", "web-1", "1", {}, {}, created=0.0))
    history.observe_node("n1", ["10.0.0.1"])
    rates = [NetworkSample("shop", "web-1", 8e6, 100.0), NetworkSample("shop", "nobody", 1.0, 100.0)]
    history.record_network(rates, [LinkSample("10.0.0.1", 1e9, 100.0), LinkSample("n9", 1.0, 100.0)], 100.0)
    view = history.freeze(110.0)
    assert view.network("u1").fresh == 8e6
    assert view.link_speed("n1").fresh == 1e9
    assert history.freeze(200.0).network("u1").fresh is None
    assert view.usage("u1").cpu.fresh is None, "nothing else was measured"


def test_links_are_queried_only_while_the_planner_uses_the_network() -> None:
    def queries(planner: str) -> tuple[bool, bool]:
        queries = prometheus_queries(parse_settings(f"planner: {planner}", "here")).queries
        return bool(queries.node_bandwidth), bool(queries.pod_network)

    assert queries("{name: stable}") == (False, True)
    assert queries("{name: network}") == (True, True)
    assert queries("{name: greedy, parameters: {weights: {network: 1}}}") == (True, True)
