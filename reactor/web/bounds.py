"""Bounds what is sent to a page: counts everything, then cuts it, unhappy pods first."""

from __future__ import annotations

from heapq import nsmallest

from msgspec.structs import replace

from reactor.web.query import OverviewQuery
from reactor.web.view import NodeSeries, NodeView, Overview, PodChip, PodTotals, Series, Totals

EXPANDED_CHIPS = 1000
SERIES_NODES = 12
SERIES_POINTS = 600
STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600)
"""Seconds between points. Fixed steps of the clock, so that a thinned line does not jump as time goes on."""


def counted(overview: Overview) -> Overview:
    """The overview with its totals. Done once per view, because it looks at every pod."""
    nodes = tuple(replace(node, counts=_count(node.pods)) for node in overview.nodes)
    counts = [node.counts for node in nodes if node.counts] + [_count(overview.pending)]
    values = [pod.happiness for node in nodes for pod in node.pods if pod.managed and pod.happiness is not None]
    totals = Totals(
        nodes=len(nodes),
        matching_nodes=len(nodes),
        pods=sum(count.pods for count in counts),
        managed=sum(count.managed for count in counts),
        unhappy=sum(count.unhappy for count in counts),
        pending=len(overview.pending),
        lowest_happiness=min(values, default=None),
    )
    return replace(overview, nodes=nodes, totals=totals)


def cut(overview: Overview, query: OverviewQuery) -> Overview:
    """What the query selects. Nodes and chips are in the order of their names, so that they stay where they are."""
    matching = [_filtered(node, query.match) for node in overview.nodes if _matches(node, query.match)]
    chosen = sorted(nsmallest(query.nodes, matching, key=_node_urgency), key=lambda node: node.name)
    nodes = tuple(replace(node, pods=_worst(node.pods, _chips_of(node, query))) for node in chosen)
    pending = tuple(pod for pod in overview.pending if query.match in pod.key)
    totals = replace(overview.totals, matching_nodes=len(matching)) if overview.totals else None
    return replace(overview, nodes=nodes, pending=_worst(pending, query.chips), totals=totals)


def cut_series(series: Series) -> Series:
    """The nodes with the highest recent CPU share, and no more points than a chart is wide."""
    chosen = nsmallest(SERIES_NODES, series.nodes, key=lambda node: (-_latest(node), node.name))
    nodes = tuple(sorted(chosen, key=lambda node: node.name))
    return _thinned(replace(series, nodes=nodes, node_count=len(series.nodes)))


def _thinned(series: Series) -> Series:
    times = series.times
    if len(times) <= SERIES_POINTS:
        return series
    step = next((step for step in STEPS if (times[-1] - times[0]) / step < SERIES_POINTS), STEPS[-1])
    newest = {int(at // step): index for index, at in enumerate(times)}
    kept = sorted(newest.values())[-SERIES_POINTS:]

    def pick(column: tuple[float | None, ...]) -> tuple[float | None, ...]:
        return tuple(column[index] for index in kept)

    return replace(
        series,
        times=tuple(times[index] for index in kept),
        availability=pick(series.availability),
        latency_p95=pick(series.latency_p95),
        happiness_min=pick(series.happiness_min),
        happiness_mean=pick(series.happiness_mean),
        nodes=tuple(NodeSeries(node.name, pick(node.cpu), pick(node.memory)) for node in series.nodes),
    )


def _count(pods: tuple[PodChip, ...]) -> PodTotals:
    managed = sum(pod.managed for pod in pods)
    return PodTotals(pods=len(pods), managed=managed, unhappy=sum(pod.managed and not pod.happy for pod in pods))


def _matches(node: NodeView, match: str) -> bool:
    return match in node.name or any(match in pod.key for pod in node.pods)


def _filtered(node: NodeView, match: str) -> NodeView:
    """A node that matches by its name keeps all pods. Otherwise it has only the pods that match."""
    if match in node.name:
        return node
    pods = tuple(pod for pod in node.pods if match in pod.key)
    return replace(node, pods=pods, counts=_count(pods))


def _chips_of(node: NodeView, query: OverviewQuery) -> int:
    return EXPANDED_CHIPS if node.name in query.expand else query.chips


def _worst(pods: tuple[PodChip, ...], most: int) -> tuple[PodChip, ...]:
    chosen = pods if len(pods) <= most else nsmallest(most, pods, key=_pod_urgency)
    return tuple(sorted(chosen, key=lambda pod: pod.key))


def _pod_urgency(pod: PodChip) -> tuple[bool, bool, float, str]:
    return (not pod.managed, pod.happy, 1.0 if pod.happiness is None else pod.happiness, pod.key)


def _node_urgency(node: NodeView) -> tuple[int, bool, str]:
    return (-(node.counts.unhappy if node.counts else 0), node.ready, node.name)


def _latest(node: NodeSeries) -> float:
    return next((value for value in reversed(node.cpu) if value is not None), 0.0)
