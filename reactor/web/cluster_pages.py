"""One frozen state of the cluster, cut into pages: everything is counted, what a query asks for is written out.

A pass over all pods of a large cluster takes too long for the event loop, so this is made and read in threads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import nsmallest

from msgspec.structs import replace

from reactor.cluster.records import Node, Pod
from reactor.decision.causes import node_uses
from reactor.decision.eligibility import Eligibility, Ineligible
from reactor.state.snapshot import MEASURED
from reactor.web.pod_page import pod_resources
from reactor.web.query import OverviewQuery, PodsQuery, TopQuery
from reactor.web.view import (
    Gauge,
    NodeSummary,
    NodeView,
    Overview,
    PodChip,
    PodPage,
    PodResources,
    PodTotals,
    TopPage,
    Totals,
)

CHIPS, FEW_CHIPS, EXPANDED_CHIPS = 24, 8, 1000
"""Pods of a node: where all nodes are shown, where not all are, and where a query asks for all."""
LOAD_BANDS = 10
_PENDING = ""
"""The name under which pods without a node are kept."""


class FrozenCluster:
    """Implements ClusterPages. Pods that are finished, or bound to a node that is not known, are left out."""

    def __init__(self, head: Overview, eligibility: Eligibility) -> None:
        """`head` has what does not depend on a query."""
        self._head = head
        self._eligibility = eligibility
        self._snapshot = eligibility.snapshot
        nodes = self._snapshot.cluster.nodes
        pods = self._snapshot.cluster.pods.values()
        self._pods = [pod for pod in pods if not pod.finished and (pod.node is None or pod.node in nodes)]
        self._by_node: dict[str, list[Pod]] = {_PENDING: [], **{name: [] for name in nodes}}
        for each in self._pods:
            self._by_node[each.node or _PENDING].append(each)
        self._unmanaged = {self._pods[at].uid for at in eligibility.management.excluded(self._pods)}
        managed = (pod for pod in self._pods if pod.uid not in self._unmanaged)
        self._failing = [pod for pod in managed if pod.uid in self._snapshot.happiness]
        unhappy = [pod for pod in self._failing if self._snapshot.happiness[pod.uid].unhappy]
        self._unhappy = {pod.uid for pod in unhappy}
        self._unhappy_on = Counter(pod.node for pod in unhappy)
        self._loads = dict(zip(nodes, map(_fullest, node_uses(list(nodes.values()), self._snapshot)), strict=True))
        self._worst_first = sorted(nodes.values(), key=self._node_urgency)
        self._totals = self._count_all()
        self._summary = self._summarise()

    def overview(self, query: OverviewQuery) -> Overview:
        """All nodes that match in the order of their names where they fit; else a page of them, the worst first."""
        found = self._found(query.search)
        matching = [node for node in self._worst_first if node.name in found]
        if query.search:
            matching.sort(key=lambda node: -self._counted(found[node.name]).unhappy)
        shown = matching[(query.page - 1) * query.nodes : query.page * query.nodes]
        chips_each = query.chips or FEW_CHIPS
        if len(shown) == len(matching):
            shown.sort(key=lambda node: node.name)
            chips_each = query.chips or CHIPS
        limits = {node.name: EXPANDED_CHIPS if node.name in query.expand else chips_each for node in shown}
        worst = {name: self._worst(found[name], limit) for name, limit in limits.items()}
        waiting = self._worst(found.get(_PENDING, ()), query.chips or CHIPS)
        chips = self._chips([*waiting, *(pod for pods in worst.values() for pod in pods)])
        return replace(
            self._head,
            nodes=tuple(self._node_view(node, found[node.name], worst[node.name], chips) for node in shown),
            pending=tuple(chips[pod.uid] for pod in waiting),
            totals=replace(self._totals, matching_nodes=len(matching)),
            node_summary=self._summary,
        )

    def pods(self, query: PodsQuery) -> PodPage:
        """The worst first."""
        named = self._named(query)
        shown = _page(named, query, self._pod_urgency)
        chips = self._chips(shown)
        return PodPage(at=self._snapshot.at, pods=tuple(chips[pod.uid] for pod in shown), totals=self._counted(named))

    def top(self, query: TopQuery) -> TopPage:
        named = [pod for pod in self._named(query) if query.namespace in ("", pod.namespace)]
        shown = _page(named, query, self._pod_urgency if query.sort == "happiness" else self._most_used(query.sort))
        chips = self._chips(shown)
        rows = tuple(PodResources(chips[pod.uid], pod_resources(pod, self._snapshot)) for pod in shown)
        return TopPage(at=self._snapshot.at, pods=rows, totals=self._counted(named))

    def _named(self, query: PodsQuery) -> list[Pod]:
        search = query.search.lower()
        return [pod for pod in self._pods if search in pod.key and query.node in ("", pod.node)]

    def _most_used(self, axis: str) -> Callable[[Pod], tuple[float, str]]:
        """Pods that are not measured come last."""

        def rank(pod: Pod) -> tuple[float, str]:
            usage = self._snapshot.usage.usage(pod.uid)
            used = (usage.memory if axis == "memory" else usage.cpu).fresh
            return (1.0 if used is None else -used, pod.key)

        return rank

    def _found(self, search: str) -> Mapping[str, Sequence[Pod]]:
        """By node the pods that match; all pods of a node that matches by its name. Names have no capital letters."""
        search = search.lower()
        if not search:
            return self._by_node
        found: dict[str, Sequence[Pod]] = {}
        for name, pods in self._by_node.items():
            matching = pods if search in name else [pod for pod in pods if search in pod.key]
            if matching or search in name:
                found[name] = matching
        return found

    def _count_all(self) -> Totals:
        counts = self._counted(self._pods)
        return Totals(
            nodes=len(self._loads),
            matching_nodes=len(self._loads),
            pods=counts.pods,
            managed=counts.managed,
            unhappy=counts.unhappy,
            pending=len(self._by_node[_PENDING]),
            lowest_happiness=self._lowest_happiness(),
        )

    def _counted(self, pods: Sequence[Pod]) -> PodTotals:
        unmanaged = sum(pod.uid in self._unmanaged for pod in pods) if self._unmanaged else 0
        unhappy = sum(pod.uid in self._unhappy for pod in pods) if self._unhappy else 0
        return PodTotals(pods=len(pods), managed=len(pods) - unmanaged, unhappy=unhappy)

    def _lowest_happiness(self) -> float | None:
        """Of the managed pods on nodes whose happiness is known."""
        placed = (pod for pod in self._failing if pod.node is not None)
        lowest = min((self._snapshot.happiness[pod.uid].probability for pod in placed), default=None)
        if lowest is None and any(self._happiness(pod) is not None for pod in self._pods):
            return 1.0
        return lowest

    def _summarise(self) -> NodeSummary:
        nodes = self._snapshot.cluster.nodes.values()
        known = [load for load in self._loads.values() if load is not None]
        bands = Counter(min(int(load * LOAD_BANDS), LOAD_BANDS - 1) for load in known)
        return NodeSummary(
            not_ready=sum(not node.ready for node in nodes),
            unschedulable=sum(node.unschedulable for node in nodes),
            with_unhappy_pods=sum(name is not None for name in self._unhappy_on),
            not_measured=len(self._loads) - len(known),
            load_bands=tuple(bands[band] for band in range(LOAD_BANDS)),
        )

    def _happiness(self, pod: Pod) -> float | None:
        failing = self._snapshot.happiness.get(pod.uid)
        if failing is not None:
            return failing.probability
        managed = pod.node is not None and pod.uid not in self._unmanaged
        return 1.0 if managed and any(container.liveness for container in pod.containers) else None

    def _node_urgency(self, node: Node) -> tuple[int, bool, float, str]:
        return -self._unhappy_on[node.name], node.ready, -(self._loads[node.name] or 0.0), node.name

    def _pod_urgency(self, pod: Pod) -> tuple[bool, bool, float, str]:
        return pod.uid in self._unmanaged, *self._snapshot.happiness_rank(pod), pod.key

    def _worst(self, pods: Sequence[Pod], most: int) -> list[Pod]:
        """In the order of their names, so that they stay where they are."""
        chosen = pods if len(pods) <= most else nsmallest(most, pods, key=self._pod_urgency)
        return sorted(chosen, key=lambda pod: pod.key)

    def _chips(self, pods: Sequence[Pod]) -> dict[str, PodChip]:
        """By UID."""
        why = self._eligibility.why_not_all(pods)
        return {pod.uid: self._chip(pod, ineligible) for pod, ineligible in zip(pods, why, strict=True)}

    def _chip(self, pod: Pod, ineligible: Ineligible | None) -> PodChip:
        managed = pod.uid not in self._unmanaged
        failing = self._snapshot.happiness.get(pod.uid)
        return PodChip(
            uid=pod.uid,
            key=pod.key,
            happiness=self._happiness(pod),
            threshold=failing.threshold.value if failing else self._head.threshold,
            happy=failing is None or not failing.unhappy,
            managed=managed,
            ready=pod.ready,
            phase=pod.status,
            cpu=self._snapshot.usage.usage(pod.uid).cpu.fresh,
            fixed=str(ineligible) if managed and ineligible is not None else "",
            node=pod.node,
        )

    def _node_view(
        self, node: Node, matching: Sequence[Pod], shown: Iterable[Pod], chips: Mapping[str, PodChip]
    ) -> NodeView:
        usage = self._snapshot.usage.node_usage(node.name)
        requested = {axis: sum(pod.requests.get(axis, 0.0) for pod in self._by_node[node.name]) for axis in MEASURED}
        return NodeView(
            name=node.name,
            ready=node.ready,
            unschedulable=node.unschedulable,
            cpu=Gauge(usage.cpu.fresh, node.allocatable.get("cpu", 0.0), "cores", requested["cpu"]),
            memory=Gauge(usage.memory.fresh, node.allocatable.get("memory", 0.0), "bytes", requested["memory"]),
            pods=tuple(chips[pod.uid] for pod in shown),
            counts=self._counted(matching),
        )


def _page(pods: Sequence[Pod], query: PodsQuery, rank: Callable[[Pod], tuple[object, ...]]) -> list[Pod]:
    first = (query.page - 1) * query.limit
    return nsmallest(first + query.limit, pods, key=rank)[first:]


def _fullest(use: Mapping[str, float] | None) -> float | None:
    return None if use is None else max(use.values())
