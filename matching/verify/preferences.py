"""Which nodes a pod strictly prefers to the one it ends on: by group, then distance, then name.

A pod without a node, or one that ends on its own node and may not stay there, prefers any other. Pods are checked in
rank order: each sees the pods that rank above it where they end and all others where they were.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from matching.problem import Availability, Node, Pod, PodTerm, Preferred, Problem, Spread
from matching.verify.node_rules import admits_by_labels, matches, may_stay, repelled, repels, selected
from matching.verify.placement import NO_NODE, TOLERANCE, Flags, Ints, Matrix, Placement, worst_share
from matching.verify.replicas import Replicas

_CURED_NODE, _RELIEVING, _OWN, _OTHER = range(4)
DECIMALS = 9
_ROUNDED = 2e-9
"""More than rounding can change a distance and what it is compared with."""
_MAX_CACHED = 1000


class Preferences:
    def __init__(self, placement: Placement) -> None:
        self._placement = placement
        self.untouched: Matrix = np.where(placement.hard_only, 0.0, placement.allocatable - placement.fixed_usage)
        self.room: Matrix = np.ascontiguousarray(np.maximum(self.untouched, 0.0).T)
        """By axis and node."""
        self.used: Matrix = np.zeros_like(self.untouched)
        """By the pods that rank above the one that is checked."""
        self.after = placement.options.availability is Availability.AFTER
        self.soft = SoftConstraints(placement.problem, placement.pods, placement.nodes)
        self.replicas = Replicas(placement)
        self.may_stay: Flags = (placement.end != NO_NODE) & ~_evicted_by_taint(placement)
        running = placement.current != NO_NODE
        self.load: Matrix = placement.fixed_peak.copy()
        np.add.at(self.load, placement.current[running], placement.peak[running])
        self._before = worst_share(self.load, placement.allocatable)
        self._plain: Flags = ~(placement.unhappy | self.soft.any | self.replicas.any)
        """By row: for this pod, the distance of a node is that of its room alone, less the inertia."""

    def preferred(self, row: int) -> Flags:
        """By node."""
        placement, end = self._placement, int(self._placement.end[row])
        distance = self._distances(np.array([row]))[0]
        group = self._groups(row) if placement.unhappy[row] else np.full(len(placement.nodes), _OTHER)
        if not self.may_stay[row]:
            preferred: Flags = np.ones(len(placement.nodes), dtype=bool)
        else:
            earlier_name = np.arange(len(placement.nodes)) < end
            nearer = (distance < distance[end]) | ((distance == distance[end]) & earlier_name)
            preferred = (group < group[end]) | ((group == group[end]) & nearer)
        if end != NO_NODE:
            preferred[end] = False
        return preferred

    def not_content(self, rows: range) -> Ints:
        """Without those that certainly prefer no node: a pod that stays, whose node is nearer than any node can be
        whose room is within the bounds of all. That is most of the pods where nodes are alike."""
        every = np.arange(rows.start, rows.stop)
        if self.after:
            return every
        placement, usage = self._placement, self._placement.usage[every]
        stays = self._plain[every] & self.may_stay[every] & (placement.current[every] == placement.end[every])
        bounds = self.room.min(axis=1), self.room.max(axis=1)
        least = np.sqrt(np.square(usage - usage.clip(*bounds)).sum(axis=1))
        content: Flags = stays & (least > self._limits(every))
        return every[~content]

    def may_prefer(self, rows: Ints) -> Flags:
        """By row and node: at least what `preferred` says of happy pods, and every node for the others."""
        placement = self._placement
        if self.after:
            return np.ones((len(rows), len(placement.nodes)), dtype=bool)
        each, end = np.arange(len(rows)), placement.end[rows]
        if self._plain[rows].all():
            limits = self._limits(rows)
            nearer: Flags = self._squares(rows) <= np.where(limits < 0, -1.0, np.square(limits))[:, None]
            away = np.flatnonzero((placement.current[rows] != NO_NODE) & (placement.current[rows] != end))
            nearer[away, placement.current[rows][away]] = True
        else:
            distance = self._distances(rows)
            nearer = distance <= distance[each, end][:, None]
        nearer[each, end] = False
        nearer[placement.unhappy[rows] | ~self.may_stay[rows]] = True
        return nearer

    def _limits(self, rows: Ints) -> Matrix:
        """By row, of plain pods: no node is preferred that is farther than this."""
        placement, end = self._placement, self._placement.end[rows]
        distance = np.sqrt(np.square(self.room[:, end].T - placement.usage[rows]).sum(axis=1))
        stays = (end != NO_NODE) & (placement.current[rows] == end)
        limits: Matrix = distance - np.where(stays, placement.options.inertia, 0.0) + _ROUNDED
        return limits

    def advance(self, row: int) -> None:
        """The pod goes to its end; the next one is checked."""
        placement, current, end = self._placement, self._placement.current[row], self._placement.end[row]
        if placement.moves_cost and current not in (NO_NODE, end):
            self.load[current] -= placement.peak[row]
            if end != NO_NODE:
                self.load[end] += placement.peak[row]
        if self.after and end != NO_NODE:
            self.used[end] += placement.usage[row]
            self.room[:, end] = np.maximum(self.untouched[end] - self.used[end], 0.0)

    def advance_all(self, rows: range) -> None:
        """One after the other. Only pods that move change what the next ones see, unless room is what is left."""
        some = slice(rows.start, rows.stop)
        moved = self._placement.current[some] != self._placement.end[some]
        for at in np.flatnonzero(moved | self.after).tolist():
            self.advance(rows[at])

    def _squares(self, rows: Ints) -> Matrix:
        """By row and node, of the distances without anything else that counts."""
        squares = np.zeros((len(rows), len(self._placement.nodes)))
        part = np.empty_like(squares)
        for room, usage in zip(self.room, self._placement.usage[rows].T, strict=True):
            np.subtract(room, usage[:, None], out=part)
            squares += np.square(part, out=part)
        return squares

    def _distances(self, rows: Ints) -> Matrix:
        """By row and node, less the inertia of a happy pod on its current node."""
        placement = self._placement
        distance = np.sqrt(self._squares(rows))
        for at in np.flatnonzero(self.soft.any[rows]).tolist():
            distance[at] += placement.options.soft_weight * self.soft.broken(int(rows[at]))
        rounded: Matrix = distance.round(DECIMALS)
        for at in np.flatnonzero(self.replicas.any[rows]).tolist():
            row = int(rows[at])
            broken = self.soft.broken(row) if self.soft.any[row] else np.zeros(len(placement.nodes))
            rounded[at] = (rounded[at] + self.replicas.added(row, broken)).round(DECIMALS)
        staying = np.flatnonzero((placement.current[rows] != NO_NODE) & ~placement.unhappy[rows])
        current = placement.current[rows][staying]
        rounded[staying, current] = np.round(rounded[staying, current] - placement.options.inertia, DECIMALS)
        return rounded

    def _groups(self, row: int) -> Ints:
        """Of an unhappy pod."""
        placement = self._placement
        current, limit = placement.current[row], 1 - placement.options.headroom
        here = worst_share(self.load[current], placement.allocatable[current])
        there = worst_share(self.load + placement.peak[row], placement.allocatable)
        group: Ints = np.where(there <= here - placement.options.relief + TOLERANCE, _RELIEVING, _OTHER)
        cured = self._before[current] > limit + TOLERANCE and here < limit - TOLERANCE
        group[current] = _CURED_NODE if cured else _OWN
        return group


def _evicted_by_taint(placement: Placement) -> Flags:
    evicted = np.zeros(len(placement.pods), dtype=bool)
    for row in np.flatnonzero((placement.current == placement.end) & placement.no_execute).tolist():
        evicted[row] = not may_stay(placement.pods[row].rules, placement.nodes[placement.current[row]])
    return evicted


class SoftConstraints:
    """The share of its soft constraints that a pod would break on each node (0 none, 1 all).

    Before the plan, without the pod itself. Weights: taints 3, nodes 2, pods 2, spread 2, of those that the pod has.
    """

    def __init__(self, problem: Problem, pods: Sequence[Pod], nodes: Sequence[Node]) -> None:
        self._pods, self._nodes, self._problem = pods, nodes, problem
        tainted = any(taint.effect == "PreferNoSchedule" for node in nodes for taint in node.taints)
        distinct = {id(pod.rules): pod.rules for pod in pods}
        soft = {key for key, rules in distinct.items() if tainted or rules.preferred != Preferred()}
        some = bool(problem.options.soft_weight) and bool(soft)
        self.any: Flags = np.array([some and id(pod.rules) in soft for pod in pods], dtype=bool)
        """By row: the pod has a soft constraint."""
        self._by_name = {node.name: node for node in nodes}
        self._known: dict[tuple[object, ...], Matrix] = {}
        self._matching: dict[tuple[str, PodTerm], Counter[str | None]] = {}
        self._spread_counts: dict[tuple[int, str, Spread], Counter[str]] = {}

    def broken(self, row: int) -> Matrix:
        """By node. Pods that their own soft constraints cannot tell apart share an answer."""
        pod = self._pods[row]
        wanted = pod.rules.preferred
        about_pods = wanted.with_pods or wanted.apart_from or wanted.spread
        key = (id(pod.rules), (id(pod.labels), pod.namespace, pod.leaving, pod.node) if about_pods else None)
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= _MAX_CACHED:
                self._known.clear()
            found = self._known[key] = self._share(pod)
        return found

    def _share(self, pod: Pod) -> Matrix:
        parts = list(self._parts(pod))
        if not parts:
            return np.zeros(len(self._nodes))
        total = np.sum([weight * part for weight, part in parts], axis=0)
        shares: Matrix = total / sum(weight for weight, _ in parts)
        return shares

    def _parts(self, pod: Pod) -> Iterator[tuple[float, Matrix]]:
        wanted = pod.rules.preferred
        taints = np.array([self._taints_against(pod, node) for node in self._nodes], dtype=float)
        if taints.any():
            yield 3.0, taints / taints.max()
        if wanted.nodes:
            weights = sum(weight for weight, _ in wanted.nodes)
            missed = [sum(w for w, term in wanted.nodes if not matches(term, node)) for node in self._nodes]
            yield 2.0, np.array(missed, dtype=float) / weights
        if wanted.with_pods or wanted.apart_from:
            yield 2.0, self._pod_affinity(pod)
        if wanted.spread:
            yield 2.0, np.mean([self._fullness(pod, spread) for spread in wanted.spread], axis=0)

    def _taints_against(self, pod: Pod, node: Node) -> int:
        return sum(taint.effect == "PreferNoSchedule" and repels(taint, pod.rules) for taint in node.taints)

    def _pod_affinity(self, pod: Pod) -> Matrix:
        wanted = pod.rules.preferred
        missed = np.zeros(len(self._nodes))
        for weight, term in wanted.with_pods:
            missed += weight * (self._others_there(pod, term) == 0)
        for weight, term in wanted.apart_from:
            missed += weight * (self._others_there(pod, term) > 0)
        shares: Matrix = missed / sum(weight for weight, _ in (*wanted.with_pods, *wanted.apart_from))
        return shares

    def _others_there(self, pod: Pod, term: PodTerm) -> Matrix:
        """By node: how many others in its domain the term selects; none on a node without the label."""
        known = self._matching.get((pod.namespace, term))
        if known is None:
            known = self._matching[pod.namespace, term] = Counter(
                self._by_name[other.node].labels.get(term.topology_key)
                for other in self._problem.pods
                if other.node in self._by_name and self._selects(pod, term, other)
            )
        values = self._values(term.topology_key)
        there = np.array([0 if value is None else known[value] for value in values], dtype=float)
        return self._less_itself(pod, term.topology_key, there) if self._selects(pod, term, pod) else there

    def _less_itself(self, pod: Pod, key: str, there: Matrix) -> Matrix:
        current = self._by_name.get(pod.node or "")
        if current is None or key not in current.labels:
            return there
        others: Matrix = there - np.array([value == current.labels[key] for value in self._values(key)], dtype=float)
        return others

    def _values(self, key: str) -> list[str | None]:
        return [node.labels.get(key) for node in self._nodes]

    def _selects(self, pod: Pod, term: PodTerm, other: Pod) -> bool:
        if not term.namespaces and term.namespace_selector is None:
            inside = other.namespace == pod.namespace
        else:
            labels = self._problem.namespaces.get(other.namespace, {})
            inside = other.namespace in term.namespaces or selected(term.namespace_selector, labels)
        return inside and selected(term.selector, other.labels)

    def _fullness(self, pod: Pod, spread: Spread) -> Matrix:
        counts = Counter(self._counted_there(pod, spread))
        current = self._by_name.get(pod.node or "")
        if current is not None and _counts_node(pod, spread, current) and _counts_pod(pod, spread, pod):
            counts[current.labels[spread.topology_key]] -= 1
        least, most = min(counts.values(), default=0), max(counts.values(), default=0)
        shares = [
            1.0 if value is None else max(0.0, (counts.get(value, 0) - least) / max(1, most - least))
            for value in self._values(spread.topology_key)
        ]
        return np.array(shares)

    def _counted_there(self, pod: Pod, spread: Spread) -> Counter[str]:
        key = (id(pod.rules), pod.namespace, spread)
        known = self._spread_counts.get(key)
        if known is None:
            domain = {n.name: n.labels[spread.topology_key] for n in self._nodes if _counts_node(pod, spread, n)}
            known = self._spread_counts[key] = Counter(dict.fromkeys(domain.values(), 0))
            for other in self._problem.pods:
                if other.node in domain and _counts_pod(pod, spread, other):
                    known[domain[other.node]] += 1
        return known


def _counts_node(pod: Pod, spread: Spread, node: Node) -> bool:
    return (
        all(each.topology_key in node.labels for each in pod.rules.preferred.spread)
        and (not spread.honor_affinity or admits_by_labels(pod.rules, node))
        and (not spread.honor_taints or not repelled(pod.rules, node))
    )


def _counts_pod(pod: Pod, spread: Spread, other: Pod) -> bool:
    if spread.selector is None or not spread.selector.requirements:
        return False
    return other.namespace == pod.namespace and not other.leaving and selected(spread.selector, other.labels)
