"""What keeps a pod from each node: constraints, or too little room. And what the cluster lacks for pending pods."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from enum import IntEnum
from functools import lru_cache

import numpy as np

from matching.array_types import NOWHERE, Floats, Ints
from matching.cached_property import cached_property
from matching.constraints import resources
from matching.model.arrays import Arrays
from matching.model.ledger import Ledger
from matching.plan import Rejected
from matching.planning.prepared import PreparedProblem
from matching.planning.reasons.wording import amount, percent, plural
from matching.problem import Rules, Term
from matching.selectors import requirement_text

MOST_LISTED = 10
ALL_NODES = "all nodes"


class Kind(IntEnum):
    NOTHING = 0
    CROWDED = 1
    TOO_LITTLE = 2
    TOO_MANY = 3
    INTER_POD = 4
    RULE = 5


_COUNTED = {
    Kind.NOTHING: "less preferred",
    Kind.CROWDED: "too crowded at peak",
    Kind.TOO_LITTLE: "too little left by requests",
    Kind.TOO_MANY: resources.POD_COUNT_REASON,
    Kind.INTER_POD: "refused by inter-pod constraints",
}


class Obstacles:
    """Of one pod at its turn. The kinds are found for all nodes at once, the texts on demand."""

    def __init__(self, prepared: PreparedProblem, ledger: Ledger, pod: int) -> None:
        self._prepared, self._ledger, self._pod = prepared, ledger, pod
        arrays = prepared.arrays
        self.allowed = prepared.candidates.of(pod)
        kind = np.where(ledger.fits_peak(pod, arrays.options.headroom), Kind.NOTHING, Kind.CROWDED)
        kind[~ledger.fits_requests(pod)] = Kind.TOO_LITTLE
        kind[~resources.fits_pod_count(ledger.slots)] = Kind.TOO_MANY
        kind[~ledger.inter_pod.allows(pod)] = Kind.INTER_POD
        kind[~self.allowed] = Kind.RULE
        self.kind: Ints = kind

    def text(self, node: int) -> str:
        """Empty when only the pod's preference is against the node."""
        match int(self.kind[node]):
            case Kind.RULE:
                return self._prepared.candidates.why_not(self._pod, node)
            case Kind.INTER_POD:
                return self._ledger.inter_pod.why_not(self._pod, node)
            case Kind.TOO_MANY:
                return f"{resources.POD_COUNT_REASON} ({self._prepared.arrays.max_pods[node]})"
            case Kind.TOO_LITTLE:
                return f"requests: lacks {self.missing(node)}"
            case Kind.CROWDED:
                return self._crowded(node)
            case _:
                return ""

    def missing(self, node: int) -> str:
        arrays = self._prepared.arrays
        lacking = self._shortfall([node])[:, 0] * arrays.request_unit
        return " and ".join(amount(axis, value) for axis, value in zip(arrays.axes, lacking, strict=True) if value > 0)

    def nearest(self, nodes: list[int]) -> int:
        """The node that lacks least."""
        return nodes[_least_column(self._prepared.arrays, self._shortfall(nodes))]

    def _shortfall(self, nodes: list[int]) -> Floats:
        return resources.shortfall(self._ledger.free[:, nodes], self._prepared.arrays.request[:, self._pod])

    def counted(self, nodes: Ints) -> str:
        """How many of those nodes were rejected for which kind of reason, the most frequent first."""
        kinds = self.kind[nodes]
        numbers = np.bincount(kinds, minlength=len(Kind)).tolist()
        counts = [(numbers[kind], text) for kind, text in _COUNTED.items() if numbers[kind]]
        if numbers[Kind.RULE]:
            refusals = self._prepared.candidates.refusals(self._pod, nodes[kinds == Kind.RULE])
            counts += [(number, reason) for reason, number in refusals.items()]
        counts.sort(key=lambda counted: -counted[0])
        return ", ".join(f"{number} {reason}" for number, reason in counts)

    def listed(self, nodes: Ints, word: Callable[[int], str]) -> tuple[Rejected, ...]:
        """The first few nodes one by one, the rest as counts under the name `*`."""
        names = self._prepared.arrays.nodes
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
        axis = self._prepared.arrays.axes[axes[node]]
        limit = _limit(self._ledger.headroom(self._pod, node))
        return f"peak: {axis} would be at {percent(shares[node])}, must stay below {limit}"


@lru_cache(maxsize=8)
def _limit(headroom: float) -> str:
    """Cached: a plan repeats the same few limits thousands of times."""
    return percent(1 - headroom)


def some(names: Iterable[str]) -> str:
    """A few names, and how many more there are."""
    every = list(names)
    more = f" and {len(every) - MOST_LISTED} more" if len(every) > MOST_LISTED else ""
    return ", ".join(every[:MOST_LISTED]) + more


def missing_for_pending(prepared: PreparedProblem, at: Ints) -> Iterator[str]:
    """What the cluster lacks for the pending pods that got no node: one sentence per kind of node that they select.

    Their requests are compared with all that is left on such nodes. Where that would be enough in total, the sentence
    says what the nearest single node lacks. The highest priority comes first.
    """
    arrays = prepared.arrays
    without_node = prepared.ranking[(arrays.pending & (at == NOWHERE))[prepared.ranking]]
    by_kind: defaultdict[str, list[int]] = defaultdict(list)
    for pod in without_node.tolist():
        by_kind[kind_of_nodes(arrays.pods[pod].rules)].append(pod)
    ledger = Ledger(arrays, at)
    for kind, pods in by_kind.items():
        subject = f"no node for {plural(len(pods), 'pending pod')} ({some(arrays.pods[pod].key for pod in pods)})"
        yield f"{subject}: {_lacking(prepared, ledger, kind, pods)}"


def kind_of_nodes(rules: Rules) -> str:
    """The nodes that a pod's own rules select, as text."""
    parts = [" and ".join(f"{key}={value}" for key, value in rules.node_selector)]
    parts += [_any_of(terms) for terms in (rules.node_affinity, *rules.volumes) if terms is not None]
    parts += [f"{key} in ({','.join(values)})" for key, values in rules.volume_zones]
    selected = " and ".join(part for part in parts if part)
    return f"nodes with {selected}" if selected else ALL_NODES


def _lacking(prepared: PreparedProblem, ledger: Ledger, kind: str, pods: list[int]) -> str:
    arrays = prepared.arrays
    allowed = prepared.candidates.of(pods[0])
    if not allowed.any():
        return f"of {kind} none would take {'it' if len(pods) == 1 else 'them'}, even if empty"
    requested = arrays.request[:, pods].sum(axis=1)
    left = ledger.free[:, allowed].clip(min=0.0).sum(axis=1)
    if found := _amounts_text(arrays, requested - left):
        remaining = _amounts_text(arrays, left) or "nothing"
        return f"on {kind} at least {found} more would be needed ({remaining} left in total)"
    nodes = np.flatnonzero(allowed)
    short = resources.shortfall(ledger.free[:, nodes], arrays.request[:, pods[0]])
    nearest = _least_column(arrays, short)
    if found := _amounts_text(arrays, short[:, nearest]):
        key, name = arrays.pods[pods[0]].key, arrays.nodes[nodes[nearest]].name
        return f"on {kind} enough is left in total, but not on one node: for {key} {name} lacks {found}"
    return f"on {kind} the requests would fit; the reason for each pod says what prevents it"


def _least_column(arrays: Arrays, requests: Floats) -> int:
    """All axes together, as shares of the largest node."""
    return int((requests * (arrays.request_unit / arrays.unit)[:, None]).sum(axis=0).argmin())


def _amounts_text(arrays: Arrays, requests: Floats) -> str:
    found = zip(arrays.axes, (requests * arrays.request_unit).tolist(), strict=True)
    return " and ".join(amount(axis, value) for axis, value in found if value > 0)


def _any_of(terms: tuple[Term, ...]) -> str:
    texts = [" and ".join(map(requirement_text, (*term.expressions, *term.fields))) for term in terms]
    return texts[0] if len(texts) == 1 else "(" + " or ".join(texts) + ")"
