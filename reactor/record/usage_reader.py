"""The usage of a pod, workload or node over time as a document, for the HTTP API, the dashboard and the command.

Keys are camelCase and stay what they are.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from msgspec import Struct

from reactor.history.codes import Floats
from reactor.history.levels import Axis
from reactor.history.usage_series import UsageSeries, finest, read_series
from storage.rows import SeriesKind
from storage.store import Store

UNITS = {
    Axis.CPU: "cores",
    Axis.MEMORY: "bytes",
    Axis.NETWORK: "bits/s",
    Axis.DISK: "bytes/s",
    Axis.THROTTLED: "share",
    Axis.SUCCESSES: "probes/min",
    Axis.FAILURES: "probes/min",
    Axis.READY: "share",
}
_DIGITS = 4
"""Significant ones: the stored numbers have no more."""

Subject = tuple[SeriesKind, str]


class UsageForecast(Struct, frozen=True, rename="camel"):
    """Where an axis goes; one value per horizon. Of a workload, each replica, if it keeps as many as it has; of a node,
    the sum of the pods that are there now."""

    made_at: float
    times: tuple[float, ...]
    """When the horizons end."""
    values: tuple[float, ...]
    peaks: tuple[float, ...]
    """What is not exceeded until then."""
    trust: tuple[str, ...]
    """`calibrated`, `uncalibrated` or `lower bound`."""


class UsageAxis(Struct, frozen=True, rename="camel"):
    """One value per time; None where nothing was measured."""

    axis: str
    unit: str
    mean: tuple[float | None, ...]
    max: tuple[float | None, ...]
    forecast: UsageForecast | None = None
    """None where there is none: without a running controller, and while forecasts are missing or old."""


class UsageEvent(Struct, frozen=True, rename="camel"):
    """A rollout, a scaling, or a change of a node."""

    at: float
    text: str


class UsageDocument(Struct, frozen=True, rename="camel"):
    kind: str
    """pod, workload or node."""
    name: str
    step: int
    """Seconds between two times."""
    times: tuple[float, ...]
    """Oldest first, without gaps."""
    axes: tuple[UsageAxis, ...]
    """Those that were measured in this time."""
    nodes: tuple[str, ...] = ()
    """Of a pod: its node at each time, empty where it is not known."""
    events: tuple[UsageEvent, ...] = ()
    also: tuple[str, ...] = ()
    """What else the name may mean, in other namespaces."""


async def read_usage(store: Store, name: str, namespace: str, now: float, seconds: float) -> UsageDocument | None:
    """The usage of the last so many seconds, of the first that the name may mean and that was ever recorded. Without a
    namespace default comes first, then all others."""
    since, known = now - seconds, () if namespace else await _everywhere(store, name)
    for kind, full in (*subjects_of(name, namespace), *known):
        series = await read_series(store, kind, full, since, now, finest(since, now, now))
        if series is not None:
            also = tuple(other for _, other in known if other != full)
            events = [UsageEvent(event.at, event.text) for event in await store.usage_events(kind, full, since, now)]
            return _document(kind, full, series, events, also)
    return None


async def _everywhere(store: Store, name: str) -> list[Subject]:
    """In all namespaces, unless the name has one."""
    meant = {subject for subject in subjects_of(name, "*") if subject[1].startswith("*/")}
    rows = await store.series("pod", "workload") if meant else []
    return sorted((row.kind, row.name) for row in rows if (row.kind, f"*/{row.name.partition('/')[2]}") in meant)


def subjects_of(name: str, namespace: str = "") -> Iterator[Subject]:
    """What a user may mean by a name: `POD`, `NAMESPACE/POD`, `NODE`, or `TYPE/NAME` as for kubectl."""
    first, slash, rest = name.partition("/")
    kind = _TYPES.get(first.lower()) if slash else None
    space = namespace or "default"
    if kind == "Node":
        yield "node", rest
    elif kind == "Pod":
        yield "pod", f"{space}/{rest}"
    elif kind is not None:
        yield "workload", f"{space}/{kind}/{rest}"
    else:
        space, name = (first, rest) if slash else (space, name)
        yield "pod", f"{space}/{name}"
        yield from (("workload", f"{space}/{each}/{name}") for each in _WORKLOADS)
        if not slash:
            yield "node", name


_WORKLOADS = ("ReplicaSet", "StatefulSet", "DaemonSet", "Job", "Pod")
"""A Deployment is recorded by the name that its ReplicaSets share."""
_TYPES = {
    **dict.fromkeys(("pod", "pods", "po"), "Pod"),
    **dict.fromkeys(("node", "nodes", "no"), "Node"),
    **dict.fromkeys(("deployment", "deployments", "deploy", "replicaset", "rs"), "ReplicaSet"),
    **dict.fromkeys(("statefulset", "statefulsets", "sts"), "StatefulSet"),
    **dict.fromkeys(("daemonset", "daemonsets", "ds"), "DaemonSet"),
    **dict.fromkeys(("job", "jobs"), "Job"),
}


def _document(
    kind: str, name: str, series: UsageSeries, events: Sequence[UsageEvent], also: tuple[str, ...]
) -> UsageDocument:
    axes = tuple(
        UsageAxis(axis.label, UNITS[axis], _numbers(each.mean), _numbers(each.maximum))
        for axis, each in series.axes.items()
    )
    nodes = series.nodes if kind == "pod" else ()
    return UsageDocument(kind, name, series.step, tuple(series.times.tolist()), axes, nodes, tuple(events), also)


def _numbers(values: Floats) -> tuple[float | None, ...]:
    return tuple(None if math.isnan(value) else rounded(value) for value in values.tolist())


def rounded(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")
