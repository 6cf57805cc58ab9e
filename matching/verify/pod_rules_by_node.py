"""The rules of `pod_rules` for all nodes at once: which nodes could a pod join once the movable pods there that rank
below it are gone?

All other pods are where the plan puts them, and the pod itself is on no node. Pods are checked in rank order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from matching.problem import PodTerm, Spread
from matching.verify.node_rules import selected
from matching.verify.placement import NO_NODE, Flags, Ints, Placement
from matching.verify.pod_rules import PodCounts, PodKind, ports_conflict, spread_counts_node, spread_counts_pod
from matching.verify.volume_limits import VolumeLimitsByNode


class PodRulesByNode:
    def __init__(self, placement: Placement, ends: Mapping[str, str | None]) -> None:
        self._end = placement.end
        self._every_node: Flags = np.ones(len(placement.nodes), dtype=bool)
        counts = PodCounts(placement.problem, ends)
        known = list(dict.fromkeys(counts.kinds.values()))
        number = {kind: at for at, kind in enumerate(known)}
        kinds = (counts.kinds.get(pod.key) for pod in placement.pods)
        self._kind: Ints = np.array([-1 if kind is None else number[kind] for kind in kinds], dtype=int)
        self._volumes = VolumeLimitsByNode(placement, ends)
        ruled: Flags = self._kind >= 0
        self.involved: Flags = ruled | self._volumes.involved
        """By row: the pod has a rule between pods, or one selects it, or its volumes are limited."""
        names = {node.name: at for at, node in enumerate(placement.nodes)}
        every_pod = [(number[kind], names.get(ends.get(key) or "", NO_NODE)) for key, kind in counts.kinds.items()]
        rows = np.stack([self._kind, self._end], axis=1)[ruled]
        builder = _Builder(placement, counts, known, (np.array(every_pod, dtype=int).reshape(-1, 2), rows))
        self._rules = [list(builder.rules(kind)) for kind in known]
        self._counts = [[each for each in builder.counts() if each.members[at]] for at in range(len(known))]

    def allowed(self, row: int) -> Flags:
        """By node, for a row that is involved."""
        kind, end = int(self._kind[row]), int(self._end[row])
        allowed: Flags = self._every_node.copy()
        for rule in self._rules[kind] if kind >= 0 else ():
            allowed &= rule.allows(kind, end)
        if self._volumes.involved[row]:
            allowed &= self._volumes.allowed(row)
        return allowed

    def advance(self, row: int) -> None:
        """The pod ranks above all pods that are checked from now on."""
        kind, end = int(self._kind[row]), int(self._end[row])
        for counts in self._counts[kind] if end != NO_NODE and kind >= 0 else ():
            counts.below[end] -= 1
        if self._volumes.involved[row]:
            self._volumes.advance(row)

    def advance_all(self, rows: range) -> None:
        for at in np.flatnonzero(self.involved[rows.start : rows.stop]).tolist():
            self.advance(rows[at])


@dataclass(frozen=True, slots=True)
class Domains:
    """Nodes grouped by the value of a label, or by any other value."""

    of_node: Ints
    """By node; NO_NODE for a node that is in none."""
    number: int

    @staticmethod
    def of(values: Sequence[str | None], known: Sequence[str | None] = ()) -> Domains:
        """`known` values come first and are counted even where no node has them."""
        index: dict[str, int] = {}
        for value in known:
            if value is not None:
                index.setdefault(value, len(index))
        number = len(index)
        of_node = [NO_NODE if value is None else index.setdefault(value, len(index)) for value in values]
        return Domains(np.array(of_node, dtype=int), number or len(index))


class DomainCounts:
    """How many pods of some kinds are in each domain, and how many of them are still to be checked on each node."""

    def __init__(self, members: Flags, domains: Domains, every_pod: Ints, rows: Ints) -> None:
        """`every_pod` and `rows` (the movable pods) are pairs of a kind and the node where such a pod ends."""
        self.members, self.domains = members, domains
        there = domains.of_node[_ends(every_pod, members)]
        self.counts: Ints = np.bincount(there[there != NO_NODE], minlength=domains.number + 1)
        """By domain; one more, always 0, for nodes that are in none."""
        self.below: Ints = np.bincount(_ends(rows, members), minlength=len(domains.of_node))
        """By node: movable pods that rank below the pod that is checked, itself included."""

    def without(self, kind: int, end: int) -> tuple[Ints, Ints]:
        """Counts and below if the pod that is checked, of that kind, were gone from its end."""
        if end == NO_NODE or not self.members[kind]:
            return self.counts, self.below
        counts, below = self.counts.copy(), self.below.copy()
        below[end] -= 1
        if self.domains.of_node[end] != NO_NODE:
            counts[self.domains.of_node[end]] -= 1
        return counts, below

    def remaining(self, kind: int, end: int) -> Ints:
        """By node: how many would be in its domain with a pod of that kind once those below it on the node are gone."""
        counts, below = self.without(kind, end)
        of_node = self.domains.of_node
        remaining: Ints = counts[of_node] - np.where(of_node == NO_NODE, 0, below)
        return remaining


def _ends(pairs: Ints, members: Flags) -> Ints:
    ends: Ints = pairs[members[pairs[:, 0]] & (pairs[:, 1] != NO_NODE), 1]
    return ends


class Rule(Protocol):
    def allows(self, kind: int, end: int) -> Flags:
        """By node, for a pod of that kind that the plan puts on `end`."""
        ...


@dataclass(frozen=True, slots=True)
class Apart:
    """Anti-affinity, of the pod or of the pods that are there, and host ports: none of them in the node's domain."""

    others: DomainCounts

    def allows(self, kind: int, end: int) -> Flags:
        clear: Flags = self.others.remaining(kind, end) == 0
        return clear


@dataclass(frozen=True, slots=True)
class Affinity:
    """A matching pod in the domain of each term, or none anywhere if the pod matches its own terms."""

    terms: Sequence[DomainCounts]
    matches_itself: bool

    def allows(self, kind: int, end: int) -> Flags:
        labelled = np.logical_and.reduce([term.domains.of_node != NO_NODE for term in self.terms])
        met = np.logical_and.reduce([term.remaining(kind, end) > 0 for term in self.terms])
        if self.matches_itself:
            alone = [counts.sum() == below for counts, below in (term.without(kind, end) for term in self.terms)]
            met |= np.logical_and.reduce(alone)
        allowed: Flags = labelled & met
        return allowed


@dataclass(frozen=True, slots=True)
class OwnSpread:
    """The pod's own topology spread: not too many pods in the domain already."""

    counted: DomainCounts
    labels: Domains
    """All nodes by the label, numbered as in `counted`, which counts on some of them only."""
    spread: Spread
    itself: bool

    def allows(self, kind: int, end: int) -> Flags:
        counts, below = self.counted.without(kind, end)
        here, fewest, _ = _levels(self.counted.domains, self.spread, counts, below)
        known = self.labels.of_node < self.counted.domains.number
        elsewhere = np.where(known, counts[np.where(known, self.labels.of_node, NO_NODE)], 0)
        here = np.where(self.counted.domains.of_node == NO_NODE, elsewhere, here)
        fine: Flags = (self.labels.of_node != NO_NODE) & (here + int(self.itself) - fewest <= self.spread.max_skew)
        return fine


@dataclass(frozen=True, slots=True)
class SpreadOfOthers:
    """A running pod does not raise the skew of a spread that counts it above the limit, or above what it is."""

    counted: DomainCounts
    spread: Spread

    def allows(self, kind: int, end: int) -> Flags:
        domains = self.counted.domains
        if end == NO_NODE or not domains.number:
            return np.ones(len(domains.of_node), dtype=bool)
        counts, below = self.counted.without(kind, end)
        _, fewest, most = _levels(domains, self.spread, self.counted.counts, below)
        _, fewest_after, most_after = _levels(domains, self.spread, counts, below, arrives=1)
        fine: Flags = most_after - fewest_after <= np.maximum(self.spread.max_skew, most - fewest)
        return fine


@dataclass(frozen=True, slots=True)
class RequiredByOthers:
    """A running pod does not leave a pod whose affinity requires one like it."""

    owner: DomainCounts
    matches: DomainCounts
    itself: bool
    """The owner matches its own terms."""

    def allows(self, kind: int, end: int) -> Flags:
        of_node = self.owner.domains.of_node
        allowed: Flags = np.ones(len(of_node), dtype=bool)
        if end == NO_NODE or of_node[end] == NO_NODE:
            return allowed
        owners, matches = self.owner.without(kind, end)[0], self.matches.without(kind, end)[0]
        if owners[of_node[end]] > 0 and matches[of_node[end]] <= int(self.itself):
            allowed = of_node == of_node[end]
        return allowed


def _levels(domains: Domains, spread: Spread, counts: Ints, below: Ints, arrives: int = 0) -> tuple[Ints, Ints, Ints]:
    """By node, if the pods `below` were gone from it and so many came: how many pods would be in its domain, in the
    emptiest domain and in the fullest. A node that is in no domain changes nothing."""
    of_node, inside = domains.of_node, domains.of_node != NO_NODE
    counted = counts[: domains.number]
    here: Ints = np.where(inside, counts[of_node] - below + arrives, 0)
    fewest, most = int(counted.min(initial=counted.max(initial=0))), int(counted.max(initial=0))
    least_of_others, most_of_others = _of_others(counted)
    emptiest: Ints = np.where(inside, np.minimum(least_of_others[of_node], here), fewest)
    fullest: Ints = np.where(inside, np.maximum(most_of_others[of_node], here), most)
    if not domains.number or domains.number < spread.min_domains:
        emptiest = np.zeros_like(emptiest)
    return here, emptiest, fullest


def _of_others(counts: Ints) -> tuple[Ints, Ints]:
    """For each domain the least and the most of all other domains; beyond any count where there is no other."""
    far = np.iinfo(counts.dtype).max // 2
    ends = np.concatenate([counts, [far, far, -far, -far]])
    ends.sort()
    lowest, second = ends[2], ends[3]
    highest, next_to = ends[-3], ends[-4]
    least = np.where(counts == lowest, second, lowest)
    most = np.where(counts == highest, next_to, highest)
    return np.append(least, far), np.append(most, -far)


class _Builder:
    """Makes the rules of each kind; rules that count the same pods in the same domains share their counts."""

    def __init__(self, placement: Placement, counts: PodCounts, kinds: list[PodKind], pods: tuple[Ints, Ints]) -> None:
        """`pods`: all pods, and those that may move, each by kind and end."""
        self._nodes, self._pod_counts, self._kinds, self._pods = placement.nodes, counts, kinds, pods
        self._number = {kind: at for at, kind in enumerate(kinds)}
        self._known: dict[tuple[bytes, bytes, int], DomainCounts] = {}
        self._domains: dict[str, Domains] = {}
        self._spreads: dict[tuple[PodKind, Spread], DomainCounts] = {}
        self._each_node = Domains.of([node.name for node in placement.nodes])

    def counts(self) -> list[DomainCounts]:
        return list(self._known.values())

    def rules(self, kind: PodKind) -> Iterator[Rule]:
        yield from {id(counts): Apart(counts) for counts in self._kept_apart(kind)}.values()
        terms = kind.rules.pod_affinity
        if terms:
            matching = self._matching(kind, terms)
            near = [self._count(matching, self._domains_of(term.topology_key)) for term in terms]
            yield Affinity(near, matches_itself=bool(matching[self._number[kind]]))
        for spread in kind.rules.spread:
            yield self._own_spread(kind, spread)
        yield from self._rules_of_others(kind)

    def _kept_apart(self, kind: PodKind) -> Iterator[DomainCounts]:
        for term in kind.rules.pod_anti_affinity:
            yield self._count(self._matching(kind, (term,)), self._domains_of(term.topology_key))
        keys = {term.topology_key for other in self._kinds for term in other.rules.pod_anti_affinity}
        for key in sorted(keys):
            owners = [self._repels(other, key, kind) for other in self._kinds]
            if any(owners):
                yield self._count(np.array(owners, dtype=bool), self._domains_of(key))
        if kind.rules.ports:
            taken = [
                any(ports_conflict(mine, port) for mine in kind.rules.ports for port in other.rules.ports)
                for other in self._kinds
            ]
            yield self._count(np.array(taken, dtype=bool), self._each_node)

    def _repels(self, owner: PodKind, key: str, other: PodKind) -> bool:
        terms = owner.rules.pod_anti_affinity
        return any(term.topology_key == key and self._pod_counts.matches(term, owner, other) for term in terms)

    def _own_spread(self, kind: PodKind, spread: Spread) -> OwnSpread:
        counted, key = self._spread(kind, spread), spread.topology_key
        inside = [node.labels[key] if spread_counts_node(kind, spread, node) else None for node in self._nodes]
        labels = Domains.of([node.labels.get(key) for node in self._nodes], known=inside)
        return OwnSpread(counted, labels, spread, selected(spread.selector, dict(kind.labels)))

    def _rules_of_others(self, kind: PodKind) -> Iterator[Rule]:
        mine = self._number[kind]
        for owner in self._kinds:
            for spread in owner.rules.spread:
                counted = self._spread(owner, spread)
                if counted.members[mine]:
                    yield SpreadOfOthers(counted, spread)
            terms = owner.rules.pod_affinity
            if terms and all(self._pod_counts.matches(term, owner, kind) for term in terms):
                itself = all(self._pod_counts.matches(term, owner, owner) for term in terms)
                just_owner = np.arange(len(self._kinds)) == self._number[owner]
                for domains in (self._domains_of(term.topology_key) for term in terms):
                    matches = self._count(self._matching(owner, terms), domains)
                    yield RequiredByOthers(self._count(just_owner, domains), matches, itself)

    def _spread(self, owner: PodKind, spread: Spread) -> DomainCounts:
        if (owner, spread) not in self._spreads:
            key = spread.topology_key
            values = [node.labels[key] if spread_counts_node(owner, spread, node) else None for node in self._nodes]
            members = np.array([spread_counts_pod(owner, spread, kind) for kind in self._kinds], dtype=bool)
            self._spreads[owner, spread] = self._count(members, Domains.of(values))
        return self._spreads[owner, spread]

    def _matching(self, owner: PodKind, terms: tuple[PodTerm, ...]) -> Flags:
        """By kind: whether all of those terms of the owner select it."""
        matching = [all(self._pod_counts.matches(term, owner, other) for term in terms) for other in self._kinds]
        return np.array(matching, dtype=bool)

    def _domains_of(self, key: str) -> Domains:
        if key not in self._domains:
            self._domains[key] = Domains.of([node.labels.get(key) for node in self._nodes])
        return self._domains[key]

    def _count(self, members: Flags, domains: Domains) -> DomainCounts:
        key = (members.tobytes(), domains.of_node.tobytes(), domains.number)
        if key not in self._known:
            self._known[key] = DomainCounts(members, domains, *self._pods)
        return self._known[key]
