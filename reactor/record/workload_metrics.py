"""Current and predicted load of workloads as Prometheus metrics, for autoscalers; made when they are scraped.

The number of series is bounded: the largest workloads are exported, and one that is exported stays so while it exists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from reactor.forecasts.load_ahead import AHEAD
from reactor.forecasts.pod_forecasts import OLD
from reactor.history.levels import Axis
from reactor.settings.duration import format_duration
from reactor.settings.model import FORECAST_HORIZONS, Settings
from reactor.state.live_state import State

MOST_GROWING = 100
"""Pods whose memory grows towards their limit; the first ones to reach it."""
_WORKLOAD = ("namespace", "kind", "workload")


@dataclass(frozen=True, slots=True)
class _Exported:
    axis: Axis
    suffix: str
    text: str


_AXES = (_Exported(Axis.CPU, "cpu_cores", "CPU"), _Exported(Axis.MEMORY, "memory_bytes", "Memory"))


@dataclass(frozen=True, slots=True)
class WorkloadLoad:
    """What one workload uses now, all replicas together; None where a replica has no fresh sample."""

    cpu: float
    memory: float
    pods: int

    def of(self, axis: Axis) -> float:
        return self.cpu if axis is Axis.CPU else self.memory


class WorkloadMetrics(Collector):
    def __init__(self, state: State, settings: Callable[[], Settings]) -> None:
        self._state = state
        self._settings = settings
        self._exported: set[str] = set()

    def describe(self) -> list[Metric]:
        return []

    def collect(self) -> Iterator[Metric]:
        settings = self._settings().forecasting
        loads = self._loads()
        names, left_out = self._chosen(loads, settings.exported_workloads)
        for each in _AXES:
            family = GaugeMetricFamily(
                f"rematch_current_{each.suffix}", f"{each.text} that a workload uses, all replicas.", labels=_WORKLOAD
            )
            for name in names:
                family.add_metric(_labels(name), loads[name].of(each.axis))
            yield family
        yield from self._predicted(names)
        yield GaugeMetricFamily(
            "rematch_workloads_not_exported", "Beyond forecasting.exportedWorkloads.", value=float(left_out)
        )
        yield self._growing()

    def _loads(self) -> dict[str, WorkloadLoad]:
        usage = self._state.usage.freeze(self._state.cluster().at)
        return {name: WorkloadLoad(*found) for name, found in usage.by_workload().items()}

    def _chosen(self, loads: dict[str, WorkloadLoad], most: int) -> tuple[list[str], int]:
        by_size = sorted(loads, key=lambda name: (name not in self._exported, -loads[name].cpu, name))
        self._exported = set(by_size[:most])
        return sorted(self._exported), len(loads) - len(self._exported)

    def _predicted(self, names: list[str]) -> Iterator[Metric]:
        forecasts = self._state.forecasts
        fresh = self._state.cluster().at - forecasts.at <= OLD
        labels = (*_WORKLOAD, "horizon")
        for each in _AXES:
            value = GaugeMetricFamily(
                f"rematch_predicted_{each.suffix}", f"{each.text} of a workload at the horizon.", labels=labels
            )
            peak = GaugeMetricFamily(
                f"rematch_predicted_peak_{each.suffix}",
                f"{each.text} that a workload stays below until the horizon, by forecasting.coverage.",
                labels=(*labels, "trust"),
            )
            if each.axis is Axis.CPU:
                self._one_minute_ahead(value, names)
            for name in names if fresh else ():
                for horizon in FORECAST_HORIZONS:
                    found = forecasts.workloads.of(name, each.axis, horizon)
                    if found is not None:
                        shown = (*_labels(name), str(format_duration(horizon)))
                        value.add_metric(shown, found.value)
                        peak.add_metric((*shown, found.trust), found.peak)
            yield value
            yield peak

    def _one_minute_ahead(self, family: GaugeMetricFamily, names: list[str]) -> None:
        """The most until then, of workloads that are autoscaled."""
        now = self._state.cluster().at
        for name in names:
            most = self._state.load_ahead.most(name, now)
            if most is not None:
                family.add_metric((*_labels(name), str(format_duration(AHEAD))), most)

    def _growing(self) -> Metric:
        family = GaugeMetricFamily(
            "rematch_pod_memory_limit_seconds",
            "Until the memory of a pod reaches its limit if it goes on growing; the first 100 pods.",
            labels=("namespace", "pod"),
        )
        growth = self._state.forecasts.growth
        for name in sorted(growth, key=lambda name: growth[name].seconds_to_limit)[:MOST_GROWING]:
            namespace, _, pod = name.partition("/")
            family.add_metric((namespace, pod), growth[name].seconds_to_limit)
        return family


def _labels(name: str) -> tuple[str, str, str]:
    namespace, kind, workload = name.split("/", 2)
    return namespace, kind, workload
