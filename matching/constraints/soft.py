"""Soft constraints as one number between 0 (all met) and 1 (none met) for each node; `Options.soft_weight` weights it.

The mean of up to four parts, weighted as kube-scheduler weights its scores. A part that the pod has no constraint for
is left out:
- taints (3): PreferNoSchedule taints it does not tolerate, as a share of the most that any node has;
- nodes (2): the weight of its preferred node terms that do not match, as a share of all;
- pods (2): the same for preferred affinity (no pod matches in the node's domain) and anti-affinity (a pod matches);
- spread (2): ScheduleAnyway constraints: how full the node's domain is between the emptiest (0) and the fullest (1).

The counts are those before the plan, without the pod itself, so that preferences stay fixed while pods are matched. Not
covered: soft constraints that running pods have about a new one. kube-scheduler's default topology spread is in
`default_spread`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from matching.array_types import NOWHERE, Floats, Ints, Mask
from matching.constraints.node_affinity import term_matches
from matching.constraints.node_rules import NodeIndex
from matching.constraints.pod_counts import Namespaces, PodCounter, PodCounters, PodKinds, count_pods, pod_kinds
from matching.constraints.taints import tolerated
from matching.problem import Node, Pod, Preferred, Rules, Selector
from matching.selectors import label_keys

TAINTS, NODES, PODS, SPREAD = 3.0, 2.0, 2.0, 2.0

_NONE = Preferred()


@dataclass(frozen=True, slots=True)
class _KindConstraints:
    """Of one kind of pods."""

    fixed: Floats
    """By node: the parts that depend on the node alone, weighted and summed."""
    near: tuple[tuple[int, PodCounter], ...]
    apart: tuple[tuple[int, PodCounter], ...]
    spread: tuple[PodCounter, ...]
    total: float
    """The weights of all parts; 0 when there is no soft constraint."""


class SoftConstraints:
    def __init__(
        self,
        kinds: PodKinds,
        by_kind: Sequence[_KindConstraints],
        counters: Sequence[PodCounter],
        current: Ints,
    ) -> None:
        self._kind_of_pod, self._by_kind, self._current = kinds.of_pod, by_kind, current
        self._counts = count_pods(counters, kinds.of_pod, current)
        self.has_any: Mask = np.array([each.total > 0 for each in by_kind], dtype=bool)[kinds.of_pod]
        """By pod: whether it has soft constraints."""

    def unmet(self, pod: int) -> Floats:
        """By node, between 0 and 1."""
        own = self._by_kind[int(self._kind_of_pod[pod])]
        if not own.total:
            return own.fixed
        parts = own.fixed.copy()
        if own.near or own.apart:
            parts += PODS * self._missed_pods(pod, own)
        if own.spread:
            parts += SPREAD * np.mean([self._fullness(pod, counter) for counter in own.spread], axis=0)
        return parts / own.total

    def _missed_pods(self, pod: int, own: _KindConstraints) -> Floats:
        missed = np.zeros(len(own.fixed))
        for weight, counter in own.near:
            missed += weight * (self._others(pod, counter)[counter.domain_of] == 0)
        for weight, counter in own.apart:
            missed += weight * (self._others(pod, counter)[counter.domain_of] > 0)
        shares: Floats = missed / sum(weight for weight, _ in (*own.near, *own.apart))
        return shares

    def _fullness(self, pod: int, counter: PodCounter) -> Floats:
        of_node = counter.domains.of_node
        eligible = np.unique(counter.domain_of[counter.domain_of != NOWHERE])
        counts = self._others(pod, counter)
        least, most = counts[eligible].min(initial=counts.max()), counts[eligible].max(initial=0)
        share = (counts[of_node] - least) / max(1, most - least)
        fullness: Floats = np.where(of_node == NOWHERE, 1.0, share.clip(0.0, 1.0))
        return fullness

    def _others(self, pod: int, counter: PodCounter) -> Ints:
        counts, current = self._counts[counter.number], int(self._current[pod])
        if current == NOWHERE or counter.domain_of[current] == NOWHERE or not counter.members[self._kind_of_pod[pod]]:
            return counts
        without = counts.copy()
        without[counter.domain_of[current]] -= 1
        return without


def soft_constraints(
    pods: Sequence[Pod], all_rules: Collection[Rules], nodes: Sequence[Node], namespaces: Namespaces, current: Ints
) -> SoftConstraints | None:
    """None when no pod has any. `all_rules`: each that some pod has."""
    tainted = any(taint.effect == "PreferNoSchedule" for node in nodes for taint in node.taints)
    if not tainted and all(rules.preferred == _NONE for rules in all_rules):
        return None
    keys = label_keys(selector for rules in all_rules for selector in _selectors(rules.preferred))
    kinds = pod_kinds(pods, lambda rules: tainted or rules.preferred != _NONE, sorted(keys))
    counters, index = PodCounters(kinds.kinds, nodes, namespaces), NodeIndex(nodes)
    found = []
    for kind in kinds.kinds:
        rules, wanted = kind.rules, kind.rules.preferred
        fixed, weight = _fixed(rules, index)
        near = tuple((weight, counters.of_term(term, kind)) for weight, term in wanted.with_pods)
        apart = tuple((weight, counters.of_term(term, kind)) for weight, term in wanted.apart_from)
        spread = tuple(counters.of_spread(each, wanted.spread, kind) for each in wanted.spread)
        total = weight + (PODS if near or apart else 0.0) + (SPREAD if spread else 0.0)
        found.append(_KindConstraints(fixed, near, apart, spread, total))
    return SoftConstraints(kinds, found, counters.all, current)


def _selectors(wanted: Preferred) -> list[Selector | None]:
    terms = [term for _, term in (*wanted.with_pods, *wanted.apart_from)]
    return [*(term.selector for term in terms), *(spread.selector for spread in wanted.spread)]


def _fixed(rules: Rules, index: NodeIndex) -> tuple[Floats, float]:
    keys = {requirement.key for _, term in rules.preferred.nodes for requirement in term.expressions}
    grouping = index.grouping(keys, by_name=any(term.fields for _, term in rules.preferred.nodes))
    parts, total = np.zeros(len(grouping.examples)), 0.0
    avoided = np.array([_avoided_taints(rules, node) for node in grouping.examples], dtype=np.float64)
    if avoided.max(initial=0.0):
        parts, total = parts + TAINTS * avoided / avoided.max(), total + TAINTS
    if rules.preferred.nodes:
        weights = sum(weight for weight, _ in rules.preferred.nodes)
        missed = [
            sum(w for w, term in rules.preferred.nodes if not term_matches(term, node)) for node in grouping.examples
        ]
        parts, total = parts + NODES * np.array(missed, dtype=np.float64) / weights, total + NODES
    return parts[grouping.group], total


def _avoided_taints(rules: Rules, node: Node) -> int:
    return sum(taint.effect == "PreferNoSchedule" and not tolerated(taint, rules.tolerations) for taint in node.taints)
