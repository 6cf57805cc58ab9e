"""Required pod affinity and anti-affinity: the pod's own terms, and those of pods that are already there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from matching.array_types import NOWHERE, Mask
from matching.constraints.inter_pod_checks import CheckTable, CountedPods, NoPodCounted
from matching.constraints.pod_counts import Counts, PodCounter, PodSelection, selection_of


@dataclass(frozen=True, slots=True)
class RequiredAffinity:
    """For each term's topology key, the node's domain has a pod that matches all terms.

    The first pod of a group with affinity to itself would wait for ever. So when no pod matches anywhere, a pod that
    matches its own terms may go to every node that has the labels.
    """

    terms: tuple[tuple[PodCounter, str], ...]
    """Each with its selector as text."""
    selects_itself: bool

    def allows(self, counts: Counts) -> Mask:
        labelled = np.logical_and.reduce([counter.domain_of != NOWHERE for counter, _ in self.terms])
        if self.selects_itself and not any(counts[counter.number].any() for counter, _ in self.terms):
            return np.asarray(labelled, dtype=bool)
        met: Mask = np.logical_and.reduce([counts[counter.number][counter.domain_of] > 0 for counter, _ in self.terms])
        return met

    def why_not(self, counted: CountedPods, node: int) -> str:
        for counter, selector in self.terms:
            if not counted.counts[counter.number][counter.domain_of[node]]:
                return f"affinity: no pod with {selector} on {counter.domain_name(node)}"
        return "affinity to other pods"


@dataclass(frozen=True, slots=True)
class AffinityOfOthers:
    """A move must not take the last match away from a pod that requires one in its domain."""

    counter: PodCounter
    """The pods that match."""
    others: PodCounter
    """Pods that require a match and do not match themselves."""
    members: PodCounter
    """Pods that require a match and match themselves: one of them must not be left alone."""

    def allows(self, counts: Counts, here: int) -> Mask:
        domain_of = self.counter.domain_of
        if domain_of[here] == NOWHERE or not self._missed(counts, int(domain_of[here])):
            return np.ones(len(domain_of), dtype=bool)
        same: Mask = domain_of == domain_of[here]
        return same

    def why_not(self, counted: CountedPods, here: int, node: int) -> str:
        domain = int(self.counter.domain_of[here])
        left_alone = self.others if counted.counts[self.others.number][domain] else self.members
        where, not_where = self.counter.domain_name(here), self.counter.domain_name(node)
        return f"{counted.example(left_alone, here)} requires it on {where}, not on {not_where}"

    def _missed(self, counts: Counts, domain: int) -> bool:
        left = counts[self.counter.number][domain]
        others, members = counts[self.others.number][domain], counts[self.members.number][domain]
        return bool((left == 0 and others > 0) or (left == 1 and members == 1))


def add_affinity(table: CheckTable) -> None:
    """One pod has to match all terms, as kube-scheduler counts."""
    counters, required = table.counters, dict[int, tuple[PodCounter, Mask]]()
    for number, kind in enumerate(table.kinds):
        terms = kind.rules.pod_affinity
        if not terms:
            continue
        selections = tuple(selection_of(term, kind.namespace) for term in terms)
        matches = counters.kinds_matching(selections)
        found = [counters.of(matches, counters.domains(term.topology_key)) for term in terms]
        named = tuple(zip(found, map(str, selections), strict=True))
        table.arrivals[number].append(RequiredAffinity(named, selects_itself=bool(matches[number])))
        for counter in found:
            required.setdefault(counter.number, (counter, counters.no_kinds()))[1][number] = True
    for counter, owners in required.values():
        others = counters.of(owners & ~counter.members, counter.domains)
        members = counters.of(owners & counter.members, counter.domains)
        table.add_departure(counter, AffinityOfOthers(counter, others, members))


def add_anti_affinity(table: CheckTable) -> None:
    """The pods' own terms."""
    for number, kind in enumerate(table.kinds):
        for term in kind.rules.pod_anti_affinity:
            check = NoPodCounted(table.counters.of_term(term, kind), "anti-affinity with {pod} on {domain}")
            table.arrivals[number].append(check)


def add_anti_affinity_of_others(table: CheckTable) -> None:
    """The terms of the pods that are already there."""
    counters, owners = table.counters, dict[tuple[PodSelection, str], Mask]()
    for number, kind in enumerate(table.kinds):
        for term in kind.rules.pod_anti_affinity:
            key = (selection_of(term, kind.namespace), term.topology_key)
            owners.setdefault(key, counters.no_kinds())[number] = True
    for (selection, topology_key), having in owners.items():
        counter = counters.of(having, counters.domains(topology_key))
        check = NoPodCounted(counter, "anti-affinity of {pod} on {domain}")
        table.add_arrival(counters.kinds_matching((selection,)), check)
