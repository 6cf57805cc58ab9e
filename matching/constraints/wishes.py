"""Soft wishes as one number between 0 (all met) and 1 (none met) for each node; `Options.soft_weight` prices it.

The mean of up to four parts, weighted as kube-scheduler weights its scores; a part the pod has no wish for is left out:
- taints (3): PreferNoSchedule taints it does not tolerate, as a share of the most that any node has;
- nodes (2): the weight of its preferred node terms that do not hold, as a share of all;
- pods (2): likewise for preferred affinity (somebody matches in the node's place) and anti-affinity (nobody does);
- spread (2): ScheduleAnyway constraints: how full the node's place is between the emptiest (0) and the fullest (1).

Taken from where the pods are before the plan, the pod itself left out, so that preferences stay fixed while pods are
matched. What running pods wish of newcomers, and the spread that kube-scheduler wishes for every workload by default,
are not looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from matching.constraints.counting import Counting
from matching.constraints.node_affinity import term_holds
from matching.constraints.node_groups import NodeGroups
from matching.constraints.pod_kinds import PodKinds, pod_kinds
from matching.constraints.taints import tolerated
from matching.constraints.tallies import Tally, count
from matching.constraints.who import Namespaces, label_keys
from matching.problem import Node, Pod, Preferred, Rules, Selector
from matching.shapes import NOWHERE, Floats, Ints, Mask

TAINTS, NODES, PODS, SPREAD = 3.0, 2.0, 2.0, 2.0
_NONE = Preferred()


@dataclass(frozen=True, slots=True)
class _Wishes:
    """Of one kind of pods."""

    fixed: Floats
    """By node: the parts that depend on the node alone, weighted and summed."""
    near: tuple[tuple[int, Tally], ...]
    apart: tuple[tuple[int, Tally], ...]
    spread: tuple[Tally, ...]
    total: float
    """The weights of all parts; 0 when there is no wish."""


class Wishes:
    def __init__(self, kinds: PodKinds, wishes: Sequence[_Wishes], tallies: Sequence[Tally], home: Ints) -> None:
        self._kind_of_pod, self._wishes, self._home = kinds.of_pod, wishes, home
        self._counts = count(tallies, kinds.of_pod, home)
        self.has_any: Mask = np.array([each.total > 0 for each in wishes], dtype=bool)[kinds.of_pod]
        """By pod: whether it wishes anything."""

    def unmet(self, pod: int) -> Floats:
        """By node, between 0 and 1."""
        mine = self._wishes[int(self._kind_of_pod[pod])]
        if not mine.total:
            return mine.fixed
        parts = mine.fixed.copy()
        if mine.near or mine.apart:
            parts += PODS * self._missed_pods(pod, mine)
        if mine.spread:
            parts += SPREAD * np.mean([self._fullness(pod, tally) for tally in mine.spread], axis=0)
        return parts / mine.total

    def _missed_pods(self, pod: int, mine: _Wishes) -> Floats:
        missed = np.zeros(len(mine.fixed))
        for weight, tally in mine.near:
            missed += weight * (self._others(pod, tally)[tally.place] == 0)
        for weight, tally in mine.apart:
            missed += weight * (self._others(pod, tally)[tally.place] > 0)
        shares: Floats = missed / sum(weight for weight, _ in (*mine.near, *mine.apart))
        return shares

    def _fullness(self, pod: int, tally: Tally) -> Floats:
        of_node = tally.domains.of_node
        looked_at = np.unique(tally.place[tally.place != NOWHERE])
        counts = self._others(pod, tally)
        least, most = counts[looked_at].min(initial=counts.max()), counts[looked_at].max(initial=0)
        share = (counts[of_node] - least) / max(1, most - least)
        fullness: Floats = np.where(of_node == NOWHERE, 1.0, share.clip(0.0, 1.0))
        return fullness

    def _others(self, pod: int, tally: Tally) -> Ints:
        counts, home = self._counts[tally.number], int(self._home[pod])
        if home == NOWHERE or tally.place[home] == NOWHERE or not tally.members[self._kind_of_pod[pod]]:
            return counts
        without = counts.copy()
        without[tally.place[home]] -= 1
        return without


def wishes(pods: Sequence[Pod], nodes: Sequence[Node], namespaces: Namespaces, home: Ints) -> Wishes | None:
    """None when nobody wishes anything."""
    shy = any(taint.effect == "PreferNoSchedule" for node in nodes for taint in node.taints)
    distinct = {id(pod.rules): pod.rules for pod in pods}
    if not shy and all(rules.preferred == _NONE for rules in distinct.values()):
        return None
    keys = label_keys(selector for rules in distinct.values() for selector in _selectors(rules.preferred))
    kinds = pod_kinds(pods, lambda rules: shy or rules.preferred != _NONE, sorted(keys))
    counting, groups = Counting(kinds.kinds, nodes, namespaces), NodeGroups(nodes)
    found = []
    for kind in kinds.kinds:
        rules, wanted = kind.rules, kind.rules.preferred
        fixed, weight = _fixed(rules, groups)
        near = tuple((weight, counting.of_term(term, kind)) for weight, term in wanted.with_pods)
        apart = tuple((weight, counting.of_term(term, kind)) for weight, term in wanted.apart_from)
        spread = tuple(counting.of_spread(each, wanted.spread, kind) for each in wanted.spread)
        total = weight + (PODS if near or apart else 0.0) + (SPREAD if spread else 0.0)
        found.append(_Wishes(fixed, near, apart, spread, total))
    return Wishes(kinds, found, counting.tallies.all, home)


def _selectors(wanted: Preferred) -> list[Selector | None]:
    terms = [term for _, term in (*wanted.with_pods, *wanted.apart_from)]
    return [*(term.selector for term in terms), *(spread.selector for spread in wanted.spread)]


def _fixed(rules: Rules, groups: NodeGroups) -> tuple[Floats, float]:
    keys = {requirement.key for _, term in rules.preferred.nodes for requirement in term.expressions}
    alike = groups.alike(keys, by_name=any(term.fields for _, term in rules.preferred.nodes))
    parts, total = np.zeros(len(alike.models)), 0.0
    shunned = np.array([_shunned(rules, node) for node in alike.models], dtype=np.float64)
    if shunned.max(initial=0.0):
        parts, total = parts + TAINTS * shunned / shunned.max(), total + TAINTS
    if rules.preferred.nodes:
        weights = sum(weight for weight, _ in rules.preferred.nodes)
        missed = [sum(w for w, term in rules.preferred.nodes if not term_holds(term, node)) for node in alike.models]
        parts, total = parts + NODES * np.array(missed, dtype=np.float64) / weights, total + NODES
    return parts[alike.group], total


def _shunned(rules: Rules, node: Node) -> int:
    return sum(taint.effect == "PreferNoSchedule" and not tolerated(taint, rules.tolerations) for taint in node.taints)
