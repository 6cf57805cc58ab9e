"""The questions that rules between pods ask of the tallies, for one kind of pods.

The pod in question is already taken out of the counts. Each answers for all nodes at once (`allows`) and says in words
why it refuses one (`why_not`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from matching.constraints.tallies import Counts, Tally, short_key
from matching.shapes import NOWHERE, Ints, Mask


class Scene(Protocol):
    @property
    def counts(self) -> Counts: ...

    def someone(self, tally: Tally, node: int) -> str:
        """The name of a pod that the tally counts in the place of that node."""


class Check(Protocol):
    """What kube-scheduler would ask."""

    def allows(self, counts: Counts) -> Mask: ...

    def why_not(self, scene: Scene, node: int) -> str: ...


@dataclass(frozen=True, slots=True)
class NearOthers:
    """Required affinity: a pod that matches all terms in the node's place, for each term's topology key.

    The first pod of a group that likes its own kind would wait for ever: when nobody matches anywhere, such a pod may
    go to every node that has the labels.
    """

    terms: tuple[tuple[Tally, str], ...]
    likes_itself: bool

    def allows(self, counts: Counts) -> Mask:
        labelled = np.logical_and.reduce([tally.place != NOWHERE for tally, _ in self.terms])
        if self.likes_itself and not any(counts[tally.number].any() for tally, _ in self.terms):
            return np.asarray(labelled, dtype=bool)
        met: Mask = np.logical_and.reduce([counts[tally.number][tally.place] > 0 for tally, _ in self.terms])
        return met

    def why_not(self, scene: Scene, node: int) -> str:
        for tally, who in self.terms:
            if not scene.counts[tally.number][tally.place[node]]:
                return f"affinity: no pod with {who} on {tally.where(node)}"
        return "affinity to other pods"


@dataclass(frozen=True, slots=True)
class ApartFrom:
    """Required anti-affinity, the pod's own and that of pods already there; host ports are the same question."""

    tally: Tally
    words: str
    """With `{who}` for a pod that is in the way and `{where}` for the place."""

    def allows(self, counts: Counts) -> Mask:
        clear: Mask = counts[self.tally.number][self.tally.place] == 0
        return clear

    def why_not(self, scene: Scene, node: int) -> str:
        return self.words.format(who=scene.someone(self.tally, node), where=self.tally.where(node))


@dataclass(frozen=True, slots=True)
class Evenness:
    """One spread constraint: pods per domain, with the fewest that a domain may be compared with."""

    tally: Tally
    eligible: Ints
    """Domains with at least one node that is looked at."""
    max_skew: int
    min_domains: int
    who: str

    def fewest(self, counts: Ints) -> int:
        if len(self.eligible) < self.min_domains or not len(self.eligible):
            return 0
        return int(counts[self.eligible].min())

    def skew(self, counts: Ints) -> int:
        most = int(counts[self.eligible].max(initial=0))
        return most - self.fewest(counts)

    def words(self, skew: int) -> str:
        over = short_key(self.tally.domains.key)
        return f"would make the skew of {self.who} over {over} {skew} (max {self.max_skew})"


@dataclass(frozen=True, slots=True)
class Spreads:
    """The pod's own constraint: where it goes there must not be too many already. Nodes without the label are out."""

    evenness: Evenness
    counts_itself: bool

    def allows(self, counts: Counts) -> Mask:
        of_node = self.evenness.tally.domains.of_node
        fine: Mask = (of_node != NOWHERE) & (self._skews(counts)[of_node] <= self.evenness.max_skew)
        return fine

    def why_not(self, scene: Scene, node: int) -> str:
        domains = self.evenness.tally.domains
        domain = int(domains.of_node[node])
        if domain == NOWHERE:
            return f"topology spread: the node has no label {domains.key}"
        return self.evenness.words(int(self._skews(scene.counts)[domain]))

    def _skews(self, counts: Counts) -> Ints:
        mine = counts[self.evenness.tally.number]
        return mine + int(self.counts_itself) - self.evenness.fewest(mine)
