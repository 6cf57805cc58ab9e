"""Constraints that depend on other pods: affinity, anti-affinity, topology spread, host ports, volume limits.

`InterPodConstraints` has the checks of a problem, built once. `InterPodState` applies them while a planner tries
placements; the ledger owns one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from matching.array_types import NOWHERE, Ints, Mask
from matching.constraints import validation
from matching.constraints.host_ports import add_host_ports
from matching.constraints.inter_pod_checks import CheckTable
from matching.constraints.pod_affinity import add_affinity, add_anti_affinity, add_anti_affinity_of_others
from matching.constraints.pod_counts import (
    Counts,
    Namespaces,
    PodCounter,
    PodCounters,
    PodKinds,
    count_pods,
    pod_kinds,
)
from matching.constraints.topology_spread import add_topology_spread
from matching.constraints.volume_limits import VolumeLimits, VolumeState, volume_limits
from matching.problem import Node, Pod, Rules, Selector
from matching.selectors import label_keys


class InterPodConstraints:
    def __init__(self, pods: Sequence[Pod], kinds: PodKinds, table: CheckTable, limits: VolumeLimits | None) -> None:
        self.pods = pods
        self.volume_limits = limits
        self.kind_of_pod = kinds.of_pod
        self.counters = table.counters.all
        self.arrivals, self.departures = table.arrivals, table.departures
        """By kind."""
        self.counters_of_kind = _by_kind(self.counters, len(kinds.kinds))
        own = np.array([has_inter_pod_rules(kind.rules) for kind in kinds.kinds], dtype=bool)
        counted = np.array([bool(each) for each in self.counters_of_kind], dtype=bool)
        checked = np.array([bool(each) for each in table.arrivals], dtype=bool)
        self.has_rules: Mask = own[kinds.of_pod]
        """By pod: whether its own rules depend on other pods."""
        self.selected: Mask = ((counted | checked) & ~own)[kinds.of_pod]
        """By pod: whether it has no such rules, but those of another pod select it."""
        self.involved: Mask = self.has_rules | self.selected | (limits is not None and limits.involved)
        """By pod. A pod that is not involved goes wherever it fits, and no check depends on where it is."""
        self.surges: Mask = np.array([pod.strategy.surges for pod in pods], dtype=bool)
        """By pod: whether its old pod is still there when the new one is scheduled."""


def inter_pod_constraints(
    pods: Sequence[Pod], examples: Sequence[Pod], nodes: Sequence[Node], namespaces: Namespaces
) -> InterPodConstraints | None:
    """None when no pod has a rule that depends on other pods, and none a volume that is limited. `examples`: pods that
    have all rules that any pod has."""
    having = [pod.rules for pod in examples if has_inter_pod_rules(pod.rules)]
    limits = volume_limits(pods, nodes)
    if not having and limits is None:
        return None
    for pod in examples:
        validation.check(f"pod {pod.key}", pod.rules)
    keys = label_keys(selector for rules in having for selector in pod_selectors(rules))
    kinds = pod_kinds(pods, has_inter_pod_rules, sorted(keys))
    table = CheckTable(kinds.kinds, PodCounters(kinds.kinds, nodes, namespaces))
    for add in (add_affinity, add_anti_affinity, add_topology_spread, add_anti_affinity_of_others, add_host_ports):
        add(table)
    return InterPodConstraints(pods, kinds, table, limits)


def has_inter_pod_rules(rules: Rules) -> bool:
    """Whether these rules depend on other pods."""
    return bool(rules.pod_affinity or rules.pod_anti_affinity or rules.spread or rules.ports)


def pod_selectors(rules: Rules) -> list[Selector | None]:
    """The selectors of other pods in these rules."""
    terms = (*rules.pod_affinity, *rules.pod_anti_affinity)
    return [*(term.selector for term in terms), *(spread.selector for spread in rules.spread)]


def _by_kind(counters: Sequence[PodCounter], kinds: int) -> tuple[tuple[PodCounter, ...], ...]:
    counted: list[list[PodCounter]] = [[] for _ in range(kinds)]
    for counter in counters:
        for kind in np.flatnonzero(counter.members).tolist():
            counted[kind].append(counter)
    return tuple(map(tuple, counted))


class InterPodState:
    """Where the pods are while a planner tries placements, and what the inter-pod constraints allow then.

    The state is always one that a cluster could be in: a running pod counts where it is until it is put somewhere else.
    So a planner that puts pods one after the other gets a placement that moves in that order can reach. Each move would
    pass kube-scheduler at its turn (the pod itself gone from its node; with a surge also while it is still there) and
    makes no constraint of another pod worse. A pod may always stay where it is. `constraints` None: there are none, and
    everything here costs nothing.
    """

    def __init__(self, constraints: InterPodConstraints | None, nodes: int, current: Ints, at: Ints) -> None:
        """`at` has the node of each pod; a pod that is NOWHERE there counts on its `current` node."""
        self._constraints = constraints
        self._everywhere = np.ones(nodes, dtype=bool)
        self._everywhere.flags.writeable = False
        self._current = current
        self._counts: list[Ints] | None = None
        self._volume_state: VolumeState | None = None
        if constraints is not None:
            self._at = np.where(at == NOWHERE, current, at)

    @property
    def constrains(self) -> bool:
        """Whether any pod has such a constraint."""
        return self._constraints is not None

    def allows(self, pod: int) -> Mask:
        """The nodes that the constraints of all pods allow now. Read-only."""
        if self._constraints is None:
            return self._everywhere
        kind, here = int(self._constraints.kind_of_pod[pod]), int(self._at[pod])
        arrivals, departures = (
            self._constraints.arrivals[kind],
            self._constraints.departures[kind] if here != NOWHERE else (),
        )
        limited = self._has_limited_volumes(pod)
        if not arrivals and not departures and not limited:
            return self._everywhere
        counts = self.counts
        answers = [check.allows(counts) for check in arrivals] if self._surges_from(pod, here) else []
        self._change(pod, here, -1)
        answers += [check.allows(counts) for check in arrivals]
        answers += [check.allows(counts, here) for check in departures]
        if limited and self._volume_state is not None:
            answers.append(self._volume_state.allows(pod))
        self._change(pod, here, 1)
        allowed: Mask = np.logical_and.reduce(answers)
        if here != NOWHERE:
            allowed[here] = True
        return allowed

    def allows_on(self, pod: int, node: int) -> bool:
        return self._constraints is None or bool(self.allows(pod)[node])

    def affects_others(self, pod: int) -> bool:
        """Whether a move of this pod can change what any constraint allows."""
        if self._constraints is None:
            return False
        return self._has_limited_volumes(pod) or bool(
            self._constraints.counters_of_kind[self._constraints.kind_of_pod[pod]]
        )

    def why_not(self, pod: int, node: int) -> str:
        """The first constraint that keeps the pod from the node, as text; empty when none does."""
        here = NOWHERE if self._constraints is None else int(self._at[pod])
        if self._constraints is None or node == here:
            return ""
        counts = self.counts
        beside = self._refused_beside_old(pod, node, counts) if self._surges_from(pod, here) else ""
        self.remove(pod)
        found = next(self._refusals(pod, here, node, counts), "") or beside
        self._at[pod] = here
        self._change(pod, here, 1)
        return found

    def _surges_from(self, pod: int, here: int) -> bool:
        """Whether the pod is on its own node and stays there until the new one is available. Where a planner has put it
        for a try its old pod is not, and the order of the moves is found with all pods on their own nodes."""
        assert self._constraints is not None
        return bool(self._constraints.surges[pod]) and here != NOWHERE and here == self._current[pod]

    def _refused_beside_old(self, pod: int, node: int, counts: Counts) -> str:
        assert self._constraints is not None
        checks = self._constraints.arrivals[int(self._constraints.kind_of_pod[pod])]
        refusing = next((check for check in checks if not check.allows(counts)[node]), None)
        return "" if refusing is None else f"{refusing.why_not(self, node)}, while its old pod is still there"

    def _refusals(self, pod: int, here: int, node: int, counts: Counts) -> Iterator[str]:
        assert self._constraints is not None
        kind = int(self._constraints.kind_of_pod[pod])
        for check in self._constraints.arrivals[kind]:
            if not check.allows(counts)[node]:
                yield check.why_not(self, node)
        for departure in self._constraints.departures[kind] if here != NOWHERE else ():
            if not departure.allows(counts, here)[node]:
                yield departure.why_not(self, here, node)
        if self._volume_state is not None and (full := self._volume_state.why_not(pod, node)):
            yield full

    def _has_limited_volumes(self, pod: int) -> bool:
        limits = None if self._constraints is None else self._constraints.volume_limits
        return limits is not None and bool(limits.involved[pod])

    def put(self, pod: int, node: int) -> None:
        """Move the pod to the node."""
        if self._constraints is None:
            return
        if self._counts is not None:
            self._change(pod, int(self._at[pod]), -1)
            self._change(pod, node, 1)
        self._at[pod] = node

    def put_unconstrained(self, pods: Ints, nodes: Ints) -> None:
        """Several pods without inter-pod constraints at once; NOWHERE leaves a pod where it is."""
        if self._constraints is not None:
            self._at[pods] = np.where(nodes == NOWHERE, self._at[pods], nodes)

    def take(self, pod: int) -> None:
        """A pending pod counts nowhere at once; a running one counts where it is until it is put somewhere else."""
        if self._current[pod] == NOWHERE:
            self.remove(pod)

    def remove(self, pod: int) -> None:
        """The pod counts nowhere."""
        if self._constraints is None:
            return
        if self._counts is not None:
            self._change(pod, int(self._at[pod]), -1)
        self._at[pod] = NOWHERE

    @property
    def counts(self) -> Counts:
        """Made on first use: most ledgers never need them."""
        if self._counts is None:
            self._counts = self._count_all()
        return self._counts

    def _count_all(self) -> list[Ints]:
        assert self._constraints is not None
        limits = self._constraints.volume_limits
        self._volume_state = None if limits is None else VolumeState(limits, self._at)
        return count_pods(self._constraints.counters, self._constraints.kind_of_pod, self._at)

    def example(self, counter: PodCounter, node: int) -> str:
        assert self._constraints is not None
        placed = np.flatnonzero(counter.members[self._constraints.kind_of_pod] & (self._at != NOWHERE))
        there = placed[counter.domain_of[self._at[placed]] == counter.domain_of[node]]
        return self._constraints.pods[int(there[0])].key if len(there) else "a pod"

    def _change(self, pod: int, node: int, by: int) -> None:
        if node == NOWHERE:
            return
        assert self._constraints is not None
        assert self._counts is not None
        for counter in self._constraints.counters_of_kind[self._constraints.kind_of_pod[pod]]:
            domain = counter.domain_of[node]
            if domain != NOWHERE:
                self._counts[counter.number][domain] += by
        if self._volume_state is not None:
            self._volume_state.change(pod, node, by)
