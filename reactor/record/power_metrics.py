"""What the nodes draw, as Prometheus metrics; estimated when they are scraped."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import nan

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from reactor.settings.model import Settings
from reactor.state.live_state import State
from reactor.state.node_power import power_now


class PowerMetrics(Collector):
    def __init__(self, state: State, settings: Callable[[], Settings]) -> None:
        self._state = state
        self._settings = settings

    def describe(self) -> list[Metric]:
        return []

    def collect(self) -> Iterator[Metric]:
        """NaN while no node is measured."""
        cluster = self._state.cluster()
        found = power_now(cluster, self._state.usage.freeze(cluster.at), self._settings().energy)
        drawn = GaugeMetricFamily(
            "rematch_power_watts",
            "What the measured nodes draw, by their CPU; idle nodes are those without a pod that could run elsewhere.",
            labels=("nodes",),
        )
        drawn.add_metric(("idle",), nan if found is None else found.idle_watts)
        drawn.add_metric(("in use",), nan if found is None else found.watts - found.idle_watts)
        yield drawn
