"""What rules between pods ask of the tallies, for all nodes at once.

`look` is the pod's, `end` the node on which the plan has it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from matching.certificate.tally import Domain, Tally
from matching.certificate.view import NOWHERE, Flags, Ints
from matching.problem import Spread


class Objection(Protocol):
    def allows(self, look: int, end: int) -> Flags: ...


@dataclass(frozen=True, slots=True)
class Apart:
    """Anti-affinity, of the pod or of those who are there, and host ports: nobody of them in the node's place."""

    tally: Tally

    def allows(self, look: int, end: int) -> Flags:
        clear: Flags = self.tally.beside(look, end) == 0
        return clear


@dataclass(frozen=True, slots=True)
class Company:
    """Required affinity: somebody in the place of each term, or nobody anywhere if the pod would match itself."""

    terms: Sequence[Tally]
    likes_itself: bool

    def allows(self, look: int, end: int) -> Flags:
        labelled = np.logical_and.reduce([tally.domain.place != NOWHERE for tally in self.terms])
        met = np.logical_and.reduce([tally.beside(look, end) > 0 for tally in self.terms])
        if self.likes_itself:
            alone = [counts.sum() == waiting for counts, waiting in (tally.without(look, end) for tally in self.terms)]
            met |= np.logical_and.reduce(alone)
        allowed: Flags = labelled & met
        return allowed


@dataclass(frozen=True, slots=True)
class OwnSpread:
    """The pod's own constraint: not too many in the place already."""

    tally: Tally
    labels: Domain
    """All nodes by the label, numbered as in the tally; it looks at some of them only."""
    spread: Spread
    itself: bool

    def allows(self, look: int, end: int) -> Flags:
        counts, waiting = self.tally.without(look, end)
        here, fewest, _ = _levels(self.tally.domain, self.spread, counts, waiting)
        known = self.labels.place < self.tally.domain.number
        elsewhere = np.where(known, counts[np.where(known, self.labels.place, NOWHERE)], 0)
        here = np.where(self.tally.domain.place == NOWHERE, elsewhere, here)
        fine: Flags = (self.labels.place != NOWHERE) & (here + int(self.itself) - fewest <= self.spread.max_skew)
        return fine


@dataclass(frozen=True, slots=True)
class KeepsEven:
    """A running pod makes no spread that counts it worse than allowed, or than it is."""

    tally: Tally
    spread: Spread

    def allows(self, look: int, end: int) -> Flags:
        domain = self.tally.domain
        if end == NOWHERE or not domain.number:
            return np.ones(len(domain.place), dtype=bool)
        counts, waiting = self.tally.without(look, end)
        _, fewest, most = _levels(domain, self.spread, self.tally.counts, waiting)
        _, fewest_after, most_after = _levels(domain, self.spread, counts, waiting, arrives=1)
        fine: Flags = most_after - fewest_after <= np.maximum(self.spread.max_skew, most - fewest)
        return fine


@dataclass(frozen=True, slots=True)
class StillNeeded:
    """A running pod does not leave somebody who requires one like it beside."""

    owner: Tally
    matches: Tally
    itself: bool
    """The owner matches its own terms."""

    def allows(self, look: int, end: int) -> Flags:
        place = self.owner.domain.place
        allowed: Flags = np.ones(len(place), dtype=bool)
        if end == NOWHERE or place[end] == NOWHERE:
            return allowed
        owners, matches = self.owner.without(look, end)[0], self.matches.without(look, end)[0]
        if owners[place[end]] > 0 and matches[place[end]] <= int(self.itself):
            allowed = place == place[end]
        return allowed


def _levels(domain: Domain, spread: Spread, counts: Ints, waiting: Ints, arrives: int = 0) -> tuple[Ints, Ints, Ints]:
    """By node, with those gone who wait there and so many come: how many in its place, in the emptiest place, in the
    fullest. A node that is in no place changes nothing."""
    place, inside = domain.place, domain.place != NOWHERE
    counted = counts[: domain.number]
    here: Ints = np.where(inside, counts[place] - waiting + arrives, 0)
    fewest, most = int(counted.min(initial=counted.max(initial=0))), int(counted.max(initial=0))
    least_of_others, most_of_others = _of_others(counted)
    emptiest: Ints = np.where(inside, np.minimum(least_of_others[place], here), fewest)
    fullest: Ints = np.where(inside, np.maximum(most_of_others[place], here), most)
    if not domain.number or domain.number < spread.min_domains:
        emptiest = np.zeros_like(emptiest)
    return here, emptiest, fullest


def _of_others(counts: Ints) -> tuple[Ints, Ints]:
    """For each place the least and the most of all other places; beyond any count where there is no other."""
    far = np.iinfo(counts.dtype).max // 2
    ends = np.concatenate([counts, [far, far, -far, -far]])
    ends.sort()
    lowest, second = ends[2], ends[3]
    highest, next_to = ends[-3], ends[-4]
    least = np.where(counts == lowest, second, lowest)
    most = np.where(counts == highest, next_to, highest)
    return np.append(least, far), np.append(most, -far)
