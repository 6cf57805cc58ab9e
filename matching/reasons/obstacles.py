"""What stands between a pod and each node: the rules, or what is on the node already."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import IntEnum
from functools import cached_property, lru_cache

import numpy as np

from matching.arrays import Floats, Ints
from matching.case import Case
from matching.constraints import pod_count, requests
from matching.ledger import Ledger
from matching.plan import Rejected
from matching.reasons.wording import amount, percent, plural

MOST_LISTED = 10


class Kind(IntEnum):
    NOTHING = 0
    CROWDED = 1
    TOO_LITTLE = 2
    TOO_MANY = 3
    NEIGHBOURS = 4
    RULE = 5


_COUNTED = {
    Kind.NOTHING: "liked less",
    Kind.CROWDED: "too crowded at peak",
    Kind.TOO_LITTLE: "too little left by requests",
    Kind.TOO_MANY: pod_count.REASON,
    Kind.NEIGHBOURS: "kept away by rules between pods",
}


class Obstacles:
    """For one pod, as things are at its turn. The kinds are found for all nodes at once, words only where asked."""

    def __init__(self, case: Case, ledger: Ledger, pod: int) -> None:
        self._case, self._ledger, self._pod = case, ledger, pod
        arrays = case.arrays
        self.allowed = case.candidates.of(pod)
        kind = np.where(ledger.fits_peak(pod, arrays.options.headroom), Kind.NOTHING, Kind.CROWDED)
        kind[~ledger.fits_requests(pod)] = Kind.TOO_LITTLE
        kind[~pod_count.fits(ledger.slots)] = Kind.TOO_MANY
        kind[~ledger.between.allows(pod)] = Kind.NEIGHBOURS
        kind[~self.allowed] = Kind.RULE
        self.kind: Ints = kind

    def text(self, node: int) -> str:
        """Empty when nothing but the pod's taste speaks against the node."""
        match int(self.kind[node]):
            case Kind.RULE:
                return self._case.candidates.why_not(self._pod, node)
            case Kind.NEIGHBOURS:
                return self._ledger.between.why_not(self._pod, node)
            case Kind.TOO_MANY:
                return f"{pod_count.REASON} ({self._case.arrays.max_pods[node]})"
            case Kind.TOO_LITTLE:
                return f"requests: lacks {self.missing(node)}"
            case Kind.CROWDED:
                return self._crowded(node)
            case _:
                return ""

    def missing(self, node: int) -> str:
        arrays = self._case.arrays
        lacking = self.shortfall([node])[:, 0] * arrays.unit
        return " and ".join(amount(axis, value) for axis, value in zip(arrays.axes, lacking, strict=True) if value > 0)

    def shortfall(self, nodes: list[int]) -> Floats:
        return requests.shortfall(self._ledger.free[:, nodes], self._case.arrays.request[:, self._pod])

    def counted(self, nodes: Ints) -> str:
        """How many of those nodes were rejected for which kind of reason, the commonest first."""
        kinds = self.kind[nodes]
        numbers = np.bincount(kinds, minlength=len(Kind)).tolist()
        counts = [(numbers[kind], words) for kind, words in _COUNTED.items() if numbers[kind]]
        if numbers[Kind.RULE]:
            refusals = self._case.candidates.refusals(self._pod, nodes[kinds == Kind.RULE])
            counts += [(number, reason) for reason, number in refusals.items()]
        counts.sort(key=lambda counted: -counted[0])
        return ", ".join(f"{number} {reason}" for number, reason in counts)

    def listed(self, nodes: Ints, word: Callable[[int], str]) -> tuple[Rejected, ...]:
        """The first few nodes one by one, the rest as counts under the name `*`."""
        names = self._case.arrays.nodes
        single = tuple(Rejected(names[node].name, word(node)) for node in nodes[:MOST_LISTED].tolist())
        rest = nodes[MOST_LISTED:]
        if not len(rest):
            return single
        return (*single, Rejected("*", f"{plural(len(rest), 'more node')}: {self.counted(rest)}"))

    @cached_property
    def _fullest(self) -> tuple[list[int], list[float]]:
        """Of every node, with the pod: the axis with the least left, and how full it would be."""
        shares = self._ledger.shares_with(self._pod)
        return shares.argmax(axis=0).tolist(), shares.max(axis=0).tolist()

    def _crowded(self, node: int) -> str:
        axes, shares = self._fullest
        axis = self._case.arrays.axes[axes[node]]
        limit = _limit(self._ledger.headroom(self._pod, node))
        return f"peak: {axis} would be at {percent(shares[node])}, must stay below {limit}"


@lru_cache(maxsize=8)
def _limit(headroom: float) -> str:
    """A plan's reasons name the same few limits thousands of times."""
    return percent(1 - headroom)


def some(names: Iterable[str]) -> str:
    """A few names and how many more there are: notes are read by people."""
    every = list(names)
    more = f" and {len(every) - MOST_LISTED} more" if len(every) > MOST_LISTED else ""
    return ", ".join(every[:MOST_LISTED]) + more
