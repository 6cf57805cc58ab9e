"""A chart in the terminal: columns of eighths of a line for means, a dot where the maximum is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from reactor.clock import rfc3339
from reactor.record.usage_reader import UsageAxis, UsageDocument

_EIGHTHS = " ▁▂▃▄▅▆▇█"
_DOT = "·"
_HEIGHT = 6
_LABEL = 9

Values = Sequence[float | None]


def plot(document: UsageDocument, width: int) -> str:
    """All axes, one below the other."""
    charts = [_chart(axis, document.times, max(10, width - _LABEL - 1)) for axis in document.axes]
    events = [f"{rfc3339(event.at)}  {event.text}" for event in document.events]
    head = f"{document.kind} {document.name}, in steps of {document.step // 60} min, UTC"
    return "\n\n".join([head, *charts, *(["\n".join(events)] if events else [])])


def _chart(axis: UsageAxis, times: Sequence[float], width: int) -> str:
    means, maxima = _squeezed(axis.mean, width, _average), _squeezed(axis.max, width, max)
    top = max((value for value in maxima if value is not None), default=0.0) or 1.0
    lines = [
        f"{_amount(top, axis.unit) if row == _HEIGHT - 1 else '':>{_LABEL}} {line}"
        for row, line in reversed(list(enumerate(_rows(means, maxima, top))))
    ]
    begin, end = rfc3339(times[0])[:16], rfc3339(times[-1])[:16]
    axis_line = f"{'0':>{_LABEL}} {begin}{end:>{max(len(end) + 1, len(means) - len(begin))}}"
    return "\n".join([f"{axis.axis} ({axis.unit})", *lines, axis_line])


def _rows(means: Values, maxima: Values, top: float) -> Iterator[str]:
    """The lowest first."""
    for row in range(_HEIGHT):
        yield "".join(_cell(mean, most, top, row) for mean, most in zip(means, maxima, strict=True)).rstrip()


def _cell(mean: float | None, most: float | None, top: float, row: int) -> str:
    if mean is None or most is None:
        return " "
    filled = round(min(max(mean / top * _HEIGHT - row, 0.0), 1.0) * 8)
    return _DOT if not filled and int(most / top * (_HEIGHT - 0.01)) == row else _EIGHTHS[filled]


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
