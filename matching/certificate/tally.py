"""How many pods of some looks are in each place, and who of them waits on each node for a turn that comes later."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from matching.certificate.view import NOWHERE, Flags, Ints


@dataclass(frozen=True, slots=True)
class Domain:
    """Nodes by the value of a label, or by anything else that makes places of them."""

    place: Ints
    """By node; NOWHERE for a node that is in none."""
    number: int

    @staticmethod
    def of(values: Sequence[str | None], known: Sequence[str | None] = ()) -> Domain:
        """`known` values come first and are counted even where no node has them."""
        index: dict[str, int] = {}
        for value in known:
            if value is not None:
                index.setdefault(value, len(index))
        number = len(index)
        places = [NOWHERE if value is None else index.setdefault(value, len(index)) for value in values]
        return Domain(np.array(places, dtype=int), number or len(index))


class Tally:
    def __init__(self, members: Flags, domain: Domain, everybody: Ints, rows: Ints) -> None:
        """`everybody` and `rows` (those who may move) are pairs of a look and the node where such a pod ends."""
        self.members, self.domain = members, domain
        there = _ends(everybody, members)
        places = domain.place[there]
        self.counts: Ints = np.bincount(places[places != NOWHERE], minlength=domain.number + 1)
        """By place; one more, always 0, for nodes that are in none."""
        self.waiting: Ints = np.bincount(_ends(rows, members), minlength=len(domain.place))
        """By node: those who may move and whose turn has not passed."""

    def without(self, look: int, end: int) -> tuple[Ints, Ints]:
        """Counts and waiting if a pod of that look, whose turn it is, were gone from its end."""
        if end == NOWHERE or not self.members[look]:
            return self.counts, self.waiting
        counts, waiting = self.counts.copy(), self.waiting.copy()
        waiting[end] -= 1
        if self.domain.place[end] != NOWHERE:
            counts[self.domain.place[end]] -= 1
        return counts, waiting

    def beside(self, look: int, end: int) -> Ints:
        """By node: who would be in its place with a pod of that look once those are gone who rank below it there."""
        counts, waiting = self.without(look, end)
        beside: Ints = counts[self.domain.place] - np.where(self.domain.place == NOWHERE, 0, waiting)
        return beside


def _ends(pairs: Ints, members: Flags) -> Ints:
    ends: Ints = pairs[members[pairs[:, 0]] & (pairs[:, 1] != NOWHERE), 1]
    return ends
