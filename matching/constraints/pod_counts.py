"""Counts of pods per topology domain, which all inter-pod constraints read, hard and soft ones.

Pods of one kind have the same rules and are selected by the same rules. A `PodCounter` says which kinds it counts and
which domain each node belongs to; `count_pods` counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from matching.array_types import NOWHERE, Ints, Mask
from matching.constraints import node_affinity, taints
from matching.constraints.node_rules import Domains, NodeIndex, grouping_for
from matching.problem import Node, Pod, PodTerm, Rules, Selector, Spread
from matching.selectors import selector_text, selects

Namespaces = Mapping[str, Mapping[str, str]]
"""Labels of each namespace."""

_NO_LABELS: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class PodSelection:
    """Which pods a term selects, independent of the pod that has the term."""

    selector: Selector | None
    namespaces: tuple[str, ...]
    namespace_selector: Selector | None = None

    def includes(self, namespace: str, labels: Mapping[str, str], known: Namespaces) -> bool:
        """As documented. kube-scheduler (1.36) evaluates the namespace selector of the pod that it schedules once more,
        without labels, so that one with NotIn or DoesNotExist takes in every namespace."""
        if namespace not in self.namespaces and (
            self.namespace_selector is None or not selects(self.namespace_selector, known.get(namespace, _NO_LABELS))
        ):
            return False
        return selects(self.selector, labels)

    def __str__(self) -> str:
        return selector_text(self.selector)


def selection_of(term: PodTerm, own_namespace: str) -> PodSelection:
    if not term.namespaces and term.namespace_selector is None:
        return PodSelection(term.selector, (own_namespace,))
    return PodSelection(term.selector, tuple(sorted(set(term.namespaces))), term.namespace_selector)


_NO_RULES = Rules()

_Key = tuple[int, str, tuple[str | None, ...], bool]


@dataclass(frozen=True, slots=True)
class PodKind:
    rules: Rules
    """Empty for pods without such rules."""
    namespace: str
    labels: Mapping[str, str]
    leaving: bool


@dataclass(frozen=True, slots=True)
class PodKinds:
    kinds: tuple[PodKind, ...]
    of_pod: Ints


def pod_kinds(pods: Sequence[Pod], has_rules: Callable[[Rules], bool], label_keys: Sequence[str]) -> PodKinds:
    """`label_keys` are the labels that some selector reads; other labels make no difference. Pods mostly share their
    rules and labels, so results are cached by identity."""
    index = _KindIndex(has_rules, label_keys)
    known: dict[tuple[int, int, str, bool], int] = {}
    of_pod = []
    for pod in pods:
        key = (id(pod.rules), id(pod.labels), pod.key.partition("/")[0], pod.leaving)
        number = known.get(key)
        if number is None:
            number = known[key] = index.number(pod)
        of_pod.append(number)
    return PodKinds(tuple(index.kinds), np.array(of_pod, dtype=np.int64))


class _KindIndex:
    def __init__(self, has_rules: Callable[[Rules], bool], label_keys: Sequence[str]) -> None:
        self._has_rules, self._keys = has_rules, label_keys
        self._equal_rules: dict[Rules, int] = {_NO_RULES: 0}
        self._numbers: dict[_Key, int] = {}
        self.kinds: list[PodKind] = []

    def number(self, pod: Pod) -> int:
        has_rules = self._has_rules(pod.rules)
        rules = self._equal_rules.setdefault(pod.rules, len(self._equal_rules)) if has_rules else 0
        labels = tuple(pod.labels.get(key) for key in self._keys)
        number = self._numbers.setdefault((rules, pod.namespace, labels, pod.leaving), len(self.kinds))
        if number == len(self.kinds):
            self.kinds.append(PodKind(pod.rules if has_rules else _NO_RULES, pod.namespace, pod.labels, pod.leaving))
        return number


Counts = Sequence[Ints]
"""By counter, then by domain. There is one entry more than domains: index NOWHERE reads it, and it stays 0."""


@dataclass(frozen=True, slots=True)
class PodCounter:
    """Counts the pods of some kinds in each domain."""

    number: int
    domains: Domains
    domain_of: Ints
    """By node: the domain it counts for; NOWHERE for a node that is not eligible."""
    members: Mask
    """By kind of pods: whether they are counted."""

    def domain_name(self, node: int) -> str:
        """`zone a`: the domain of the node, as text."""
        domain = int(self.domains.of_node[node])
        if domain == NOWHERE:
            return f"a node without the label {self.domains.key}"
        return f"{short_key(self.domains.key)} {self.domains.values[domain]}"


def short_key(key: str) -> str:
    short = key.rpartition("/")[2]
    return "node" if short == "hostname" else short


def count_pods(counters: Iterable[PodCounter], kind_of_pod: Ints, at: Ints) -> list[Ints]:
    """`at` has the node of each pod, or NOWHERE."""
    return [_count(counter, kind_of_pod, at) for counter in counters]


def _count(counter: PodCounter, kind_of_pod: Ints, at: Ints) -> Ints:
    domains = counter.domain_of[at[counter.members[kind_of_pod] & (at != NOWHERE)]]
    counts = np.bincount(domains[domains != NOWHERE], minlength=len(counter.domains.values) + 1)
    return counts.astype(np.int64)


_Veto = Callable[[Rules, Node], str]


class PodCounters:
    """Makes the counters of a problem; terms that count the same pods share one."""

    def __init__(self, kinds: Sequence[PodKind], nodes: Sequence[Node], namespaces: Namespaces) -> None:
        self._kinds, self._namespaces = kinds, namespaces
        self._nodes = NodeIndex(nodes)
        self.single_nodes = Domains("node", np.arange(len(nodes), dtype=np.int64), tuple(node.name for node in nodes))
        self.all: list[PodCounter] = []
        self._known: dict[tuple[str, bytes, bytes], PodCounter] = {}
        self._members: dict[tuple[PodSelection, ...], Mask] = {}

    def domains(self, key: str) -> Domains:
        return self._nodes.domains(key)

    def of(self, members: Mask, domains: Domains, eligible: Mask | None = None) -> PodCounter:
        """Only `eligible` nodes count, when given."""
        domain_of = domains.of_node if eligible is None else np.where(eligible, domains.of_node, NOWHERE)
        key = (domains.key, domain_of.tobytes(), members.tobytes())
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = PodCounter(len(self.all), domains, domain_of, members)
            self.all.append(found)
        return found

    def of_term(self, term: PodTerm, kind: PodKind) -> PodCounter:
        """The pods that a term of that kind selects."""
        members = self.kinds_matching((selection_of(term, kind.namespace),))
        return self.of(members, self.domains(term.topology_key))

    def of_spread(self, spread: Spread, together: tuple[Spread, ...], kind: PodKind) -> PodCounter:
        """`together` are all constraints of the pod that are evaluated at once: a node must have all their labels."""
        nodes = self._eligible_nodes(kind.rules, spread, together)
        return self.of(self._kinds_counted(kind, spread.selector), self.domains(spread.topology_key), nodes)

    def kinds_matching(self, selections: tuple[PodSelection, ...]) -> Mask:
        """By kind of pods: whether all of those selections include it."""
        found = self._members.get(selections)
        if found is None:
            matches = [
                all(each.includes(kind.namespace, kind.labels, self._namespaces) for each in selections)
                for kind in self._kinds
            ]
            found = self._members[selections] = np.array(matches, dtype=bool)
        return found

    def no_kinds(self) -> Mask:
        return np.zeros(len(self._kinds), dtype=bool)

    def _kinds_counted(self, kind: PodKind, selector: Selector | None) -> Mask:
        """Pods of the namespace that are not being deleted. kube-scheduler counts no pods by an empty selector."""
        if selector is None or not selector.requirements:
            return self.no_kinds()
        staying = np.array([not each.leaving for each in self._kinds], dtype=bool)
        counted: Mask = self.kinds_matching((PodSelection(selector, (kind.namespace,)),)) & staying
        return counted

    def _eligible_nodes(self, rules: Rules, spread: Spread, together: tuple[Spread, ...]) -> Mask:
        keys = {each.topology_key for each in together}
        nodes: Mask = np.logical_and.reduce([self.domains(key).of_node != NOWHERE for key in sorted(keys)])
        if spread.honor_affinity:
            nodes = nodes & self._passed(rules, (node_affinity.selector_veto, node_affinity.affinity_veto))
        if spread.honor_taints:
            nodes = nodes & self._passed(rules, (taints.taint_veto,))
        return nodes

    def _passed(self, rules: Rules, vetoes: tuple[_Veto, ...]) -> Mask:
        grouping = grouping_for(rules, self._nodes)
        passed = [not any(veto(rules, node) for veto in vetoes) for node in grouping.examples]
        nodes: Mask = np.array(passed, dtype=bool)[grouping.group]
        return nodes
