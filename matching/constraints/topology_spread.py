"""Topology spread constraints with DoNotSchedule: the pod's own, and those that count a pod which moves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from matching.array_types import NOWHERE, Ints, Mask
from matching.constraints.inter_pod_checks import CheckTable, CountedPods
from matching.constraints.pod_counts import Counts, PodCounter, short_key
from matching.problem import Spread
from matching.selectors import selector_text, selects


@dataclass(frozen=True, slots=True)
class SpreadConstraint:
    """Counts of pods per domain, and the skew they make."""

    counter: PodCounter
    eligible: Ints
    """Domains with at least one eligible node."""
    max_skew: int
    min_domains: int
    selector: str

    def fewest(self, counts: Ints) -> int:
        """The global minimum that domains are compared with."""
        if len(self.eligible) < self.min_domains or not len(self.eligible):
            return 0
        return int(counts[self.eligible].min())

    def skew(self, counts: Ints) -> int:
        most = int(counts[self.eligible].max(initial=0))
        return most - self.fewest(counts)

    def reason(self, skew: int) -> str:
        over = short_key(self.counter.domains.key)
        return f"would make the skew of {self.selector} over {over} {skew} (max {self.max_skew})"


@dataclass(frozen=True, slots=True)
class SpreadCheck:
    """The pod's own constraint: it must not raise the skew above the limit. Nodes without the label are refused."""

    spread: SpreadConstraint
    counts_itself: bool

    def allows(self, counts: Counts) -> Mask:
        of_node = self.spread.counter.domains.of_node
        fine: Mask = (of_node != NOWHERE) & (self._skews(counts)[of_node] <= self.spread.max_skew)
        return fine

    def why_not(self, counted: CountedPods, node: int) -> str:
        domains = self.spread.counter.domains
        domain = int(domains.of_node[node])
        if domain == NOWHERE:
            return f"topology spread: the node has no label {domains.key}"
        return self.spread.reason(int(self._skews(counted.counts)[domain]))

    def _skews(self, counts: Counts) -> Ints:
        own = counts[self.spread.counter.number]
        return own + int(self.counts_itself) - self.spread.fewest(own)


@dataclass(frozen=True, slots=True)
class SpreadAfterMove:
    """A move must not raise the skew of a constraint that counts the pod above the limit, or above what it is now."""

    spread: SpreadConstraint

    def allows(self, counts: Counts, here: int) -> Mask:
        after, limit = self._skews(counts, here)
        fine: Mask = after[self.spread.counter.domain_of] <= limit
        return fine

    def why_not(self, counted: CountedPods, here: int, node: int) -> str:
        after, _ = self._skews(counted.counts, here)
        return self.spread.reason(int(after[self.spread.counter.domain_of[node]]))

    def _skews(self, counts: Counts, here: int) -> tuple[Ints, int]:
        """The skew if the pod went to each domain (the last entry: to a node that does not count), and its limit."""
        spread, own = self.spread, counts[self.spread.counter.number]
        before = own.copy()
        if spread.counter.domain_of[here] != NOWHERE:
            before[spread.counter.domain_of[here]] += 1
        after = np.full(len(own), spread.skew(own), dtype=np.int64)
        if len(spread.eligible):
            after[spread.eligible] = _skews_with_one_more(spread, own[spread.eligible])
        return after, max(spread.max_skew, spread.skew(before))


def _skews_with_one_more(spread: SpreadConstraint, counts: Ints) -> Ints:
    highest: Ints = np.maximum(counts + 1, counts.max())
    if len(counts) < spread.min_domains:
        return highest
    lowest, runner_up = np.partition(np.append(counts, counts.max() + 1), 1)[:2].tolist()
    lifted = np.where(counts == lowest, min(lowest + 1, runner_up), lowest)
    skews: Ints = highest - lifted
    return skews


def add_topology_spread(table: CheckTable) -> None:
    known: dict[tuple[int, int, int], SpreadConstraint] = {}
    for number, kind in enumerate(table.kinds):
        for spread in kind.rules.spread:
            counter = table.counters.of_spread(spread, kind.rules.spread, kind)
            key = (counter.number, spread.max_skew, spread.min_domains)
            found = known.get(key)
            if found is None:
                found = known[key] = _constraint(counter, spread)
            table.arrivals[number].append(SpreadCheck(found, counts_itself=selects(spread.selector, kind.labels)))
    for found in known.values():
        table.add_departure(found.counter, SpreadAfterMove(found))


def _constraint(counter: PodCounter, spread: Spread) -> SpreadConstraint:
    eligible = np.unique(counter.domain_of[counter.domain_of != NOWHERE])
    return SpreadConstraint(counter, eligible, spread.max_skew, spread.min_domains, selector_text(spread.selector))
