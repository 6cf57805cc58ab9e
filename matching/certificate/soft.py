"""How many of its soft wishes a pod would miss on each node (0 none, 1 all), from the meaning of each wish.

Before the plan, the pod itself left out; weights: taints 3, nodes 2, pods 2, spread 2, of those that the pod has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from matching.certificate.crowd import selected
from matching.certificate.rules import admits_by_labels, matches, repelled, repels
from matching.problem import Node, Pod, PodTerm, Preferred, Problem, Spread

Matrix = npt.NDArray[np.float64]
_Part = tuple[float, Matrix]
_MOST_KNOWN = 1000


class Missed:
    """Of the pods in the order given."""

    def __init__(self, problem: Problem, pods: Sequence[Pod], nodes: Sequence[Node]) -> None:
        self._pods, self._view = pods, _View(problem, nodes)
        shy = any(taint.effect == "PreferNoSchedule" for node in nodes for taint in node.taints)
        distinct = {id(pod.rules): pod.rules for pod in pods}
        wishing = {key for key, rules in distinct.items() if shy or rules.preferred != Preferred()}
        some = bool(problem.options.soft_weight) and bool(wishing)
        self.any: npt.NDArray[np.bool_] = np.array([some and id(pod.rules) in wishing for pod in pods], dtype=bool)
        self._known: dict[tuple[object, ...], Matrix] = {}

    def of(self, row: int) -> Matrix:
        """By node. Pods that are alike to their own wishes share an answer."""
        pod = self._pods[row]
        wanted = pod.rules.preferred
        by_company = wanted.with_pods or wanted.apart_from or wanted.spread
        key = (id(pod.rules), (id(pod.labels), pod.namespace, pod.leaving, pod.node) if by_company else None)
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            found = self._known[key] = self._view.missed(pod)
        return found


class _View:
    def __init__(self, problem: Problem, nodes: Sequence[Node]) -> None:
        self._problem, self._nodes = problem, nodes
        self._by_name = {node.name: node for node in nodes}
        self._matches: dict[tuple[str, PodTerm], Counter[str | None]] = {}
        self._counts: dict[tuple[int, str, Spread], Counter[str]] = {}

    def missed(self, pod: Pod) -> Matrix:
        parts = list(self._parts(pod))
        if not parts:
            return np.zeros(len(self._nodes))
        total = np.sum([weight * part for weight, part in parts], axis=0)
        shares: Matrix = total / sum(weight for weight, _ in parts)
        return shares

    def _parts(self, pod: Pod) -> Iterator[_Part]:
        wanted = pod.rules.preferred
        shunned = np.array([self._taints_against(pod, node) for node in self._nodes], dtype=float)
        if shunned.any():
            yield 3.0, shunned / shunned.max()
        if wanted.nodes:
            weights = sum(weight for weight, _ in wanted.nodes)
            missed = [sum(w for w, term in wanted.nodes if not matches(term, node)) for node in self._nodes]
            yield 2.0, np.array(missed, dtype=float) / weights
        if wanted.with_pods or wanted.apart_from:
            yield 2.0, self._company(pod)
        if wanted.spread:
            yield 2.0, np.mean([self._fullness(pod, spread) for spread in wanted.spread], axis=0)

    def _taints_against(self, pod: Pod, node: Node) -> int:
        return sum(taint.effect == "PreferNoSchedule" and repels(taint, pod.rules) for taint in node.taints)

    def _company(self, pod: Pod) -> Matrix:
        wanted = pod.rules.preferred
        missed = np.zeros(len(self._nodes))
        for weight, term in wanted.with_pods:
            missed += weight * (self._others_there(pod, term) == 0)
        for weight, term in wanted.apart_from:
            missed += weight * (self._others_there(pod, term) > 0)
        shares: Matrix = missed / sum(weight for weight, _ in (*wanted.with_pods, *wanted.apart_from))
        return shares

    def _others_there(self, pod: Pod, term: PodTerm) -> Matrix:
        """By node: how many others the term means in its place; none on a node without the label."""
        known = self._matches.get((pod.namespace, term))
        if known is None:
            known = self._matches[pod.namespace, term] = Counter(
                self._by_name[other.node].labels.get(term.topology_key)
                for other in self._problem.pods
                if other.node in self._by_name and self._about(pod, term, other)
            )
        there = np.array(
            [0 if value is None else known[value] for value in self._values(term.topology_key)], dtype=float
        )
        return self._less_itself(pod, term.topology_key, there) if self._about(pod, term, pod) else there

    def _less_itself(self, pod: Pod, key: str, there: Matrix) -> Matrix:
        home = self._by_name.get(pod.node or "")
        if home is None or key not in home.labels:
            return there
        others: Matrix = there - np.array([value == home.labels[key] for value in self._values(key)], dtype=float)
        return others

    def _values(self, key: str) -> list[str | None]:
        return [node.labels.get(key) for node in self._nodes]

    def _about(self, pod: Pod, term: PodTerm, other: Pod) -> bool:
        if not term.namespaces and term.namespace_selector is None:
            inside = other.namespace == pod.namespace
        else:
            labels = self._problem.namespaces.get(other.namespace, {})
            inside = other.namespace in term.namespaces or selected(term.namespace_selector, labels)
        return inside and selected(term.selector, other.labels)

    def _fullness(self, pod: Pod, spread: Spread) -> Matrix:
        counts = Counter(self._counted_there(pod, spread))
        home = self._by_name.get(pod.node or "")
        if home is not None and _eligible(pod, spread, home) and _counted(pod, spread, pod):
            counts[home.labels[spread.topology_key]] -= 1
        least, most = min(counts.values(), default=0), max(counts.values(), default=0)
        shares = [
            1.0 if value is None else max(0.0, (counts.get(value, 0) - least) / max(1, most - least))
            for value in self._values(spread.topology_key)
        ]
        return np.array(shares)

    def _counted_there(self, pod: Pod, spread: Spread) -> Counter[str]:
        key = (id(pod.rules), pod.namespace, spread)
        known = self._counts.get(key)
        if known is None:
            looked_at = {n.name: n.labels[spread.topology_key] for n in self._nodes if _eligible(pod, spread, n)}
            known = self._counts[key] = Counter(dict.fromkeys(looked_at.values(), 0))
            for other in self._problem.pods:
                if other.node in looked_at and _counted(pod, spread, other):
                    known[looked_at[other.node]] += 1
        return known


def _eligible(pod: Pod, spread: Spread, node: Node) -> bool:
    return (
        all(each.topology_key in node.labels for each in pod.rules.preferred.spread)
        and (not spread.honor_affinity or admits_by_labels(pod.rules, node))
        and (not spread.honor_taints or not repelled(pod.rules, node))
    )


def _counted(pod: Pod, spread: Spread, other: Pod) -> bool:
    if spread.selector is None or not spread.selector.requirements:
        return False
    return other.namespace == pod.namespace and not other.leaving and selected(spread.selector, other.labels)
