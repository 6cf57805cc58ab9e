"""`rematch top`: what pods and nodes use now, beside what they request and the peak that plans count."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import click

from reactor.cli.client import fetch
from reactor.cli.output import show, table, to_json
from reactor.errors import InputError
from reactor.web.view import AxisView, Gauge, NodeView, Overview, PodResources, TopPage

T = TypeVar("T")

UNKNOWN = "<unknown>"
MOST_NODES = 5000


@dataclass(frozen=True, slots=True)
class TopRequest:
    namespace: str
    node: str
    search: str
    sort_by: str
    limit: int
    output: str
    server: str


def repeat(every: float | None, text: Callable[[], str]) -> None:
    """Print once, or again and again until Ctrl-C."""
    while True:
        shown = text()
        if every is not None:
            click.clear()
        show(shown)
        if every is None:
            return
        time.sleep(every)


def top_pods(request: TopRequest) -> str:
    query = {"limit": str(request.limit), "sort": request.sort_by, "search": request.search}
    page = fetch(request.server, "top", TopPage, **query, namespace=request.namespace, node=request.node)
    found = _answered(page, request.server)
    if request.output == "json":
        return to_json(found)
    return render_pods(found) if found.pods else _why_no_pod(request)


def _why_no_pod(request: TopRequest) -> str:
    """A name that nothing has is rather a mistake than an empty selection."""
    if request.node and request.node not in {node.name for node in _all_nodes(request.server)}:
        return f"there is no node {request.node}"
    if request.namespace:
        page = fetch(request.server, "top", TopPage, limit="1", namespace=request.namespace)
        if not _answered(page, request.server).totals.pods:
            return f"there is no namespace {request.namespace}, or no pod in it"
    return "no pod matches"


def top_nodes(request: TopRequest) -> str:
    nodes = _all_nodes(request.server)
    if request.output != "json" and request.node and request.node not in {node.name for node in nodes}:
        return f"there is no node {request.node}"
    shown = sorted(nodes, key=lambda node: _rank(node, request.sort_by))
    named = [node for node in shown if request.node in ("", node.name) and request.search in node.name]
    return to_json(named[: request.limit]) if request.output == "json" else render_nodes(named[: request.limit])


def _all_nodes(server: str) -> tuple[NodeView, ...]:
    return _answered(fetch(server, "overview", Overview, nodes=str(MOST_NODES), chips="1"), server).nodes


def render_pods(page: TopPage) -> str:
    rows = [_pod_row(row) for row in page.pods]
    headers = ("pod", "node", "cpu", "request", "peak", "memory", "request", "peak", "happiness", "ready")
    lines = [table(headers, rows) if rows else "no pod matches"]
    if len(rows) < page.totals.pods:
        lines.append(f"{len(rows)} of {page.totals.pods} pods; --limit shows more, -n, --node and --search select")
    return "\n".join(lines)


def render_nodes(nodes: list[NodeView]) -> str:
    headers = ("node", "cpu", "cpu %", "requested", "memory", "memory %", "requested", "pods", "unhappy")
    rows = [(node.name, *_gauge(node.cpu), *_gauge(node.memory), *_counts(node)) for node in nodes]
    return table(headers, rows) if rows else "no node matches"


def _answered(answer: T | None, server: str) -> T:
    if answer is None:
        raise InputError(f"{server} does not know this question: it is no Rematch controller, or an older one")
    return answer


def _pod_row(row: PodResources) -> tuple[object, ...]:
    pod = row.pod
    amounts = [_amount(value, axis.unit) for axis in row.resources for value in _values(axis)]
    happiness = "<none>" if pod.happiness is None else f"{pod.happiness:.2f}" + ("" if pod.happy else " unhappy")
    return pod.key, pod.node, *amounts, happiness, "yes" if pod.ready else f"no, {pod.phase}"


def _values(axis: AxisView) -> tuple[float | None, ...]:
    return axis.usage, axis.request, axis.peak


def _gauge(gauge: Gauge | None) -> tuple[str, str, str]:
    if gauge is None:
        return UNKNOWN, UNKNOWN, UNKNOWN
    share = UNKNOWN if gauge.used is None or not gauge.capacity else f"{gauge.used / gauge.capacity:.0%}"
    return _amount(gauge.used, gauge.unit), share, _amount(gauge.requested, gauge.unit)


def _counts(node: NodeView) -> tuple[object, ...]:
    counts = node.counts
    return (UNKNOWN, UNKNOWN) if counts is None else (counts.pods, counts.unhappy)


def _amount(value: float | None, unit: str) -> str:
    """As kubectl writes it: millicores and mebibytes."""
    if value is None:
        return UNKNOWN
    return f"{value * 1000:.0f}m" if unit == "cores" else f"{value / 2**20:.0f}Mi"


def _rank(node: NodeView, sort_by: str) -> tuple[float, str]:
    if sort_by == "happiness":
        return (0.0 if node.counts is None else -node.counts.unhappy, node.name)
    gauge = node.memory if sort_by == "memory" else node.cpu
    if gauge is None or gauge.used is None or not gauge.capacity:
        return (1.0, node.name)
    return (-gauge.used / gauge.capacity, node.name)
