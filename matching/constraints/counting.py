"""Who is counted where: what required rules and wishes between pods have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from matching.constraints import node_affinity, node_selector, taints
from matching.constraints.classes import alike_for
from matching.constraints.node_groups import Domains, NodeGroups
from matching.constraints.pod_kinds import PodKind
from matching.constraints.tallies import Tallies, Tally
from matching.constraints.who import Namespaces, Who, whom
from matching.problem import Node, PodTerm, Rules, Selector, Spread
from matching.shapes import NOWHERE, Mask

_Veto = Callable[[Rules, Node], str]


class Counting:
    def __init__(self, kinds: Sequence[PodKind], nodes: Sequence[Node], namespaces: Namespaces) -> None:
        self._kinds, self._namespaces = kinds, namespaces
        self._groups = NodeGroups(nodes)
        self.single_nodes = Domains("node", np.arange(len(nodes), dtype=np.int64), tuple(node.name for node in nodes))
        self.tallies = Tallies()
        self._members: dict[tuple[Who, ...], Mask] = {}

    def domains(self, key: str) -> Domains:
        return self._groups.domains(key)

    def of_term(self, term: PodTerm, kind: PodKind) -> Tally:
        """The pods that a term of that kind of pods is about."""
        return self.tallies.of(self.who_matches((whom(term, kind.namespace),)), self.domains(term.topology_key))

    def of_spread(self, spread: Spread, beside: tuple[Spread, ...], kind: PodKind) -> Tally:
        """`beside` are all constraints of the pod that are judged together: a node must have all their labels."""
        nodes = self._looked_at(kind.rules, spread, beside)
        return self.tallies.of(self._counted(kind, spread.selector), self.domains(spread.topology_key), nodes)

    def who_matches(self, who: tuple[Who, ...]) -> Mask:
        """By kind of pods: whether all of those selections include it."""
        found = self._members.get(who)
        if found is None:
            matches = [
                all(each.includes(kind.namespace, kind.labels, self._namespaces) for each in who)
                for kind in self._kinds
            ]
            found = self._members[who] = np.array(matches, dtype=bool)
        return found

    def nobody(self) -> Mask:
        return np.zeros(len(self._kinds), dtype=bool)

    def _counted(self, kind: PodKind, selector: Selector | None) -> Mask:
        """Pods of the namespace that are not being deleted. kube-scheduler counts nobody by an empty selector."""
        if selector is None or not selector.requirements:
            return self.nobody()
        staying = np.array([not each.leaving for each in self._kinds], dtype=bool)
        counted: Mask = self.who_matches((Who(selector, (kind.namespace,)),)) & staying
        return counted

    def _looked_at(self, rules: Rules, spread: Spread, beside: tuple[Spread, ...]) -> Mask:
        keys = {each.topology_key for each in beside}
        nodes: Mask = np.logical_and.reduce([self.domains(key).of_node != NOWHERE for key in sorted(keys)])
        if spread.honor_affinity:
            nodes = nodes & self._passed(rules, (node_selector.veto, node_affinity.veto))
        if spread.honor_taints:
            nodes = nodes & self._passed(rules, (taints.repels,))
        return nodes

    def _passed(self, rules: Rules, vetoes: tuple[_Veto, ...]) -> Mask:
        alike = alike_for(rules, self._groups)
        passed = [not any(veto(rules, node) for veto in vetoes) for node in alike.models]
        nodes: Mask = np.array(passed, dtype=bool)[alike.group]
        return nodes
