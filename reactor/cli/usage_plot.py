"""A chart in the terminal: columns of eighths of a line for means, a dot where the maximum is. Beside it the forecast:
a wide column per horizon for the value, shaded up to the peak."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from reactor.clock import rfc3339
from reactor.record.usage_reader import UsageAxis, UsageDocument, UsageForecast
from reactor.settings.duration import format_duration

_EIGHTHS = " ▁▂▃▄▅▆▇█"
_DOT = "·"
_SHADE = "░"
_TRUST = {
    "uncalibrated": "too few forecasts of this kind could be compared with what followed",
    "lower bound": "usage was cut by a limit or a full node: it would have been at least this",
}
_HORIZON_WIDTH = 4
_HEIGHT = 6
_LABEL = 9

Values = Sequence[float | None]


def plot(document: UsageDocument, width: int) -> str:
    """All axes, one below the other."""
    charts = [_chart(axis, document.times, width - _LABEL - 1) for axis in document.axes]
    events = [f"{rfc3339(event.at)}  {event.text}" for event in document.events]
    head = f"{document.kind} {_subject(document)}, in steps of {document.step // 60} min, UTC"
    if document.also:
        head += f"\nof this name, too (-n NAMESPACE): {', '.join(document.also)}"
    return "\n\n".join([head, *charts, *(["\n".join(events)] if events else []), "\n".join(_legend(document))])


def _subject(document: UsageDocument) -> str:
    """A Deployment is recorded by the name that its ReplicaSets share: no ReplicaSet has it."""
    namespace, _, rest = document.name.partition("/")
    kind, slash, name = rest.partition("/")
    if not slash:
        return document.name
    return f"{namespace}/{name} ({'Deployment or ReplicaSet' if kind == 'ReplicaSet' else kind})"


def _legend(document: UsageDocument) -> Iterator[str]:
    yield f"columns: mean; {_DOT} maximum"
    forecasts = [axis.forecast for axis in document.axes if axis.forecast is not None]
    if forecasts:
        yield f"right of ┊: forecast; {_SHADE} up to the peak that is not exceeded until then"
    for trust in sorted({trust for forecast in forecasts for trust in forecast.trust} & _TRUST.keys()):
        yield f"{trust}: {_TRUST[trust]}"


def _chart(axis: UsageAxis, times: Sequence[float], width: int) -> str:
    forecast = axis.forecast
    beside = 2 + _HORIZON_WIDTH * len(forecast.times) if forecast is not None else 0
    columns = max(10, width - beside)
    means, maxima = _squeezed(axis.mean, columns, _average), _squeezed(axis.max, columns, max)
    peaks = () if forecast is None else forecast.peaks
    top = max((value for value in (*maxima, *peaks) if value is not None), default=0.0) or 1.0
    rows = list(_rows(means, maxima, top))
    if forecast is not None:
        rows = [f"{row:{len(means)}} ┊{band}" for row, band in zip(rows, _bands(forecast, top), strict=True)]
    lines = [
        f"{_amount(top, axis.unit) if number == _HEIGHT - 1 else '':>{_LABEL}} {row.rstrip()}"
        for number, row in reversed(list(enumerate(rows)))
    ]
    begin, end = rfc3339(times[0])[:16], rfc3339(times[-1])[:16]
    axis_line = f"{'0':>{_LABEL}} {begin}{end:>{max(len(end) + 1, len(means) - len(begin))}}"
    if forecast is None:
        return "\n".join([f"{axis.axis} ({axis.unit})", *lines, axis_line])
    axis_line += "  " + "".join(f"{text:>{_HORIZON_WIDTH}}" for text in _horizons(forecast))
    return "\n".join([f"{axis.axis} ({axis.unit})", *lines, axis_line, _said(forecast, axis.unit)])


def _rows(means: Values, maxima: Values, top: float) -> Iterator[str]:
    """The lowest first."""
    for row in range(_HEIGHT):
        yield "".join(_cell(mean, most, top, row) for mean, most in zip(means, maxima, strict=True))


def _bands(forecast: UsageForecast, top: float) -> Iterator[str]:
    """The lowest first."""
    for row in range(_HEIGHT):
        cells = (_band(value, peak, top, row) for value, peak in zip(forecast.values, forecast.peaks, strict=True))
        yield "".join(f" {cell * (_HORIZON_WIDTH - 1)}" for cell in cells)


def _band(value: float, peak: float, top: float, row: int) -> str:
    filled = _filled(value, top, row)
    return _SHADE if not filled and peak / top * _HEIGHT > row else _EIGHTHS[filled]


def _horizons(forecast: UsageForecast) -> Iterator[str]:
    return (str(format_duration(at - forecast.made_at)) for at in forecast.times)


def _said(forecast: UsageForecast, unit: str) -> str:
    """The numbers of the forecast, and how far to trust them."""
    said = (
        f"in {horizon} {_amount(value, unit)} (at most {_amount(peak, unit)}, {trust})"
        for horizon, value, peak, trust in zip(
            _horizons(forecast), forecast.values, forecast.peaks, forecast.trust, strict=True
        )
    )
    return f"forecast: {'; '.join(said)}"


def _cell(mean: float | None, most: float | None, top: float, row: int) -> str:
    if mean is None or most is None:
        return " "
    filled = _filled(mean, top, row)
    return _DOT if not filled and int(most / top * (_HEIGHT - 0.01)) == row else _EIGHTHS[filled]


def _filled(value: float, top: float, row: int) -> int:
    """Eighths of this row."""
    return round(min(max(value / top * _HEIGHT - row, 0.0), 1.0) * 8)


def _squeezed(values: Values, width: int, together: Callable[[Sequence[float]], float]) -> list[float | None]:
    """At most so many columns."""
    each = -(-len(values) // width)
    groups = ([v for v in values[at : at + each] if v is not None] for at in range(0, len(values), each))
    return [together(group) if group else None for group in groups]


def _average(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _amount(value: float, unit: str) -> str:
    if unit in ("cores", "share", "probes/min"):
        return f"{value:.3g}"
    steps = ("", "k", "M", "G", "T", "P")
    power = 0
    while value >= 1000 and power < len(steps) - 1:
        value, power = value / 1000, power + 1
    return f"{value:.3g}{steps[power]}"
