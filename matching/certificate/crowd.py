"""Who is where, for the rules between pods: pods by how they look to such rules, counted per node and per place."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from matching.certificate.rules import satisfied
from matching.problem import Node, Pod, PodTerm, Problem, Rules, Selector


@dataclass(frozen=True, slots=True)
class Look:
    """All that a rule between pods can see of a pod."""

    namespace: str
    labels: tuple[tuple[str, str], ...]
    rules: Rules
    leaving: bool
    code: int = field(compare=False)
    """Looks are looked up all the time, and the hash of rules takes long."""

    def __hash__(self) -> int:
        return self.code


class Crowd:
    """The pods on their nodes; `ends` has the node of each, by key. Only pods that some rule sees or that have one
    are kept."""

    def __init__(self, problem: Problem, ends: Mapping[str, str | None]) -> None:
        self.nodes = {node.name: node for node in problem.nodes}
        self._namespaces = problem.namespaces
        self._matches: dict[tuple[PodTerm, str, Look], bool] = {}
        distinct = {id(pod.rules): pod.rules for pod in problem.pods}
        ruling = {key: rules for key, rules in distinct.items() if _has_rules(rules)}
        terms = [term for rules in ruling.values() for term in (*rules.pod_affinity, *rules.pod_anti_affinity)]
        spreads = [spread for rules in ruling.values() for spread in rules.spread]
        self._keys = {term.topology_key for term in terms} | {spread.topology_key for spread in spreads}
        self._selectors = {term.selector for term in terms} | {spread.selector for spread in spreads}
        self.looks = self._looks_of(problem) if ruling else {}
        self.where: dict[str, str | None] = {}
        self.on_node: defaultdict[str, Counter[Look]] = defaultdict(Counter)
        self.at_place: defaultdict[tuple[str, str], Counter[Look]] = defaultdict(Counter)
        for key in self.looks:
            self.move(key, ends.get(key))

    def move(self, key: str, target: str | None) -> None:
        """Nothing happens for a pod that no rule is about."""
        look = self.looks.get(key)
        if look is None:
            return
        self._count(look, self.where.get(key), -1)
        self._count(look, target, 1)
        self.where[key] = target

    def about(self, term: PodTerm, owner: Look, other: Look) -> bool:
        """Whether a term of the owner's rules means the other one."""
        question = (term, owner.namespace, other)
        known = self._matches.get(question)
        if known is None:
            known = self._matches[question] = self._means(term, owner.namespace, other)
        return known

    def place(self, key: str, node: Node) -> Counter[Look]:
        """Who is where that label has the same value as on the node; nobody for a node without it."""
        value = node.labels.get(key)
        return Counter() if value is None else self.at_place[key, value]

    def _count(self, look: Look, name: str | None, by: int) -> None:
        node = self.nodes.get(name or "")
        if node is None:
            return
        counters = [self.on_node[node.name]]
        counters += [self.at_place[key, node.labels[key]] for key in self._keys if key in node.labels]
        for counter in counters:
            counter[look] += by
            if not counter[look]:
                del counter[look]

    def _means(self, term: PodTerm, namespace: str, other: Look) -> bool:
        if not term.namespaces and term.namespace_selector is None:
            inside = other.namespace == namespace
        else:
            labels = self._namespaces.get(other.namespace, {})
            inside = other.namespace in term.namespaces or selected(term.namespace_selector, labels)
        return inside and selected(term.selector, dict(other.labels))

    def _looks_of(self, problem: Problem) -> dict[str, Look]:
        seen: dict[tuple[int, int, str, bool], Look | None] = {}
        looks = {}
        for pod in problem.pods:
            kind = (id(pod.labels), id(pod.rules), pod.key.partition("/")[0], pod.leaving)
            if kind not in seen:
                seen[kind] = self._look(pod)
            look = seen[kind]
            if look is not None:
                looks[pod.key] = look
        return looks

    def _look(self, pod: Pod) -> Look | None:
        """The namespace is left out of the question who is seen: a pod too many does no harm."""
        if not _has_rules(pod.rules) and not any(selected(selector, pod.labels) for selector in self._selectors):
            return None
        labels = tuple(sorted(pod.labels.items()))
        return Look(pod.namespace, labels, pod.rules, pod.leaving, hash((pod.namespace, labels, pod.rules)))


def selected(selector: Selector | None, labels: Mapping[str, str]) -> bool:
    if selector is None:
        return False
    return all(satisfied(requirement, labels.get(requirement.key)) for requirement in selector.requirements)


def _has_rules(rules: Rules) -> bool:
    return bool(rules.pod_affinity or rules.pod_anti_affinity or rules.spread or rules.ports)
