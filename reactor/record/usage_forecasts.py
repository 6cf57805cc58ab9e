"""Adds to the usage of a pod, workload or node what is forecast of it."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from reactor.forecasts.forecasts import Forecasts, KindForecasts
from reactor.forecasts.pod_forecasts import OLD
from reactor.history.levels import Axis
from reactor.record.usage_reader import UsageDocument, UsageForecast, rounded
from reactor.settings.model import FORECAST_HORIZONS

_AXES = {axis.label: axis for axis in Axis}


def with_forecasts(
    document: UsageDocument, forecasts: Forecasts, replicas: Mapping[str, int], now: float
) -> UsageDocument:
    """`replicas`: by workload. The usage of a workload is that of one replica, its forecast that of all together."""
    if now - forecasts.at > OLD:
        return document
    shares = replicas.get(document.name, 0) if document.kind == "workload" else 1
    if not shares:
        return document
    of_kind = {"pod": forecasts.pods, "workload": forecasts.workloads, "node": forecasts.nodes}[document.kind]
    axes = (
        replace(each, forecast=_forecast(of_kind, document.name, _AXES[each.axis], forecasts.at, shares))
        for each in document.axes
    )
    return replace(document, axes=tuple(axes))


def _forecast(of_kind: KindForecasts, name: str, axis: Axis, at: float, shares: int) -> UsageForecast | None:
    found = {horizon: of_kind.of(name, axis, horizon) for horizon in FORECAST_HORIZONS}
    known = {horizon: each for horizon, each in found.items() if each is not None}
    if not known:
        return None
    return UsageForecast(
        at,
        tuple(at + horizon for horizon in known),
        tuple(rounded(each.value / shares) for each in known.values()),
        tuple(rounded(each.peak / shares) for each in known.values()),
        tuple(each.trust.value for each in known.values()),
    )
