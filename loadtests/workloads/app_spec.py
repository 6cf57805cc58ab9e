"""What a lab pod runs, read from its annotations."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields

from reactor.errors import InputError

PREFIX = "lab.rematch.io/"


class AppSpecError(InputError):
    """An annotation cannot be used; the message names it, its value and what would do."""


@dataclass(frozen=True, slots=True)
class AppSpec:
    """A web app's appetite. Field names are the annotation names with dashes for underscores."""

    work_ms: float = 20.0
    """CPU per request."""
    work_spread: float = 0.1
    """Each request's work is drawn evenly from work_ms * (1 +- spread)."""
    probe_work_ms: float = 1.0
    """CPU per answer of the liveness and readiness endpoints."""
    workers: int = 8
    """Requests worked on at the same time: the app's threads, so also the most cores it can use."""
    backlog: int = 32
    """Requests that may wait for a worker; one more is closed at once."""
    memory_mib: float = 64.0
    memory_per_request_mib: float = 1.0
    startup_ms: float = 200.0
    """CPU spent by one thread before the app listens: on a busy node a start takes longer."""
    drain_ms: float = 300.0
    """After the signal to end, requests are still taken for so long: routes need time to notice."""
    echo_port: int = 0
    """Beside the app, `rematch latency-server` answers at this UDP port; 0: it does not run."""

    def annotations(self) -> dict[str, str]:
        return {PREFIX + _dashed(item.name): f"{getattr(self, item.name):g}" for item in fields(self)}


def parse_app_spec(annotations: Mapping[str, str]) -> AppSpec:
    """Defaults where nothing is said; an unknown name under our prefix is an error, since it is a misspelt one."""
    known = {PREFIX + _dashed(item.name): item for item in fields(AppSpec)}
    values: dict[str, float | int] = {}
    for name, text in annotations.items():
        if not name.startswith(PREFIX):
            continue
        if name not in known:
            raise AppSpecError(f"annotation {name}: unknown; use one of {', '.join(sorted(known))}")
        item = known[name]
        values[item.name] = _whole(name, text) if isinstance(item.default, int) else _number(name, text)
    spec = AppSpec(**values)  # type: ignore[arg-type]
    if spec.work_spread >= 1:
        raise AppSpecError(f"annotation {PREFIX}work-spread: must be below 1, got {spec.work_spread:g}")
    if spec.work_ms <= 0 or spec.probe_work_ms <= 0 or spec.workers < 1:
        raise AppSpecError(f"annotations {PREFIX}work-ms, probe-work-ms and workers must be positive")
    return spec


def _dashed(name: str) -> str:
    return name.replace("_", "-")


def _number(name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or value < 0:
        raise AppSpecError(f"annotation {name}: {text!r} is not a number of at least 0")
    return value


def _whole(name: str, text: str) -> int:
    if not text.isdecimal():
        raise AppSpecError(f"annotation {name}: {text!r} is not a whole number of at least 0")
    return int(text)
