"""Durations such as `30s` and `1h30m`, as in Kubernetes and Prometheus."""

from __future__ import annotations

import re

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
DURATION_PATTERN = r"^(\d+(\.\d+)?(ms|s|m|h|d))+$"


def parse_duration(value: object) -> object:
    """Seconds as a float for `1h30m`, `250ms`, `30s`; other types are left to the schema."""
    if not isinstance(value, str):
        return value
    text = value.strip()
    parts = _PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ValueError(f"{value!r} is not a duration; write e.g. 30s, 5m or 1h30m")
    return sum(float(number) * _UNITS[unit] for number, unit in parts)


def format_duration(seconds: float) -> str | float:
    """`1h30m` where that is exact, else the plain number of seconds."""
    parts = []
    rest = round(seconds * 1000)
    for unit, size in reversed(_UNITS.items()):
        count, rest = divmod(rest, round(size * 1000))
        if count:
            parts.append(f"{count}{unit}")
    text = "".join(parts) or "0s"
    return text if parse_duration(text) == seconds else seconds
