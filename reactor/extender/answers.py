"""The answers to kube-scheduler. A replacement gets its planned node; other pods get BNIP's score.

Nothing here waits: an answer takes a few milliseconds for 5,000 nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum

import numpy as np
from msgspec import Struct

from matching.network_score import HIGHEST, scores, variances
from reactor.clock import Clock
from reactor.cluster.hints import Hint
from reactor.cluster.records import Pod
from reactor.extender.messages import FilterResult, HostPriority, Question
from reactor.state.network_use import NetworkUse

MOST = int(HIGHEST)
"""kube-scheduler multiplies it by the weight of the extender and by 10."""
_ELSEWHERE = 1
"""Of a replacement on nodes other than the planned one; the node that it left has 0."""


class Judgement(StrEnum):
    PLANNED = "planned"
    SCORED = "scored"
    UNKNOWN = "unknown"
    """The pod's demand or every node's use is unknown: all nodes score 0, so the extender has no say."""


class Priorities(Struct, frozen=True, gc=False):
    judgement: Judgement
    hosts: list[HostPriority]


class Hinted(Struct, frozen=True, gc=False):
    """The node names of a hint, which itself has host names."""

    target: str
    source: str
    hard: bool


class Answers:
    def __init__(
        self,
        network: NetworkUse,
        hints: Callable[[], Mapping[str, Hint]],
        node_called: Callable[[str], str | None],
        clock: Clock,
    ) -> None:
        """`hints` by the UID of the owner; `node_called` gives the node with a value of `kubernetes.io/hostname`."""
        self._network = network
        self._hints = hints
        self._node_called = node_called
        self._clock = clock

    def prioritize(self, question: Question) -> Priorities:
        hinted = self._hinted(question.pod)
        if hinted is not None:
            hosts = [HostPriority(name, _preferred(name, hinted)) for name in question.nodes]
            return Priorities(Judgement.PLANNED, hosts)
        found = self._scores(question)
        if found is None:
            return Priorities(Judgement.UNKNOWN, [HostPriority(name, 0) for name in question.nodes])
        return Priorities(Judgement.SCORED, list(map(HostPriority, question.nodes, found)))

    def filter(self, question: Question) -> FilterResult:
        """All nodes pass, but for the second try of a move: then only the planned node does, if it is among them."""
        hinted = self._hinted(question.pod)
        if hinted is None or not hinted.hard or hinted.target not in question.nodes:
            return FilterResult(question.nodes)
        why = f"the replacement is planned for {hinted.target}"
        return FilterResult([hinted.target], {name: why for name in question.nodes if name != hinted.target})

    def _scores(self, question: Question) -> list[int] | None:
        """Rounded down, so that only the best nodes have 10. The variance is that of all nodes, also of those that
        kube-scheduler does not ask about."""
        now = self._clock.now()
        demand = self._network.demand_of(question.pod, now)
        if demand is None:
            return None
        shares = self._network.shares(now)
        slots = self._network.slots_of(question.nodes)
        possible = (slots >= 0) & np.append(shares.known, False)[slots]
        if not possible.any():
            return None
        variance = np.full(len(shares.known) + 1, np.inf)
        known = np.flatnonzero(shares.known)
        variance[known] = variances(shares.use[known], demand / shares.bandwidth[known])
        of_nodes = np.where(possible, variance[slots], 0.0)
        found: list[int] = np.floor(scores(of_nodes, possible)).astype(int).tolist()
        return found

    def _hinted(self, pod: Pod) -> Hinted | None:
        if pod.owner is None:
            return None
        hint = self._hints().get(pod.owner.uid)
        if hint is None or (hint.pod is not None and hint.pod != pod.name):
            return None
        target = self._node_called(hint.hostname)
        if target is None:
            return None
        source = self._node_called(hint.avoid) if hint.avoid is not None else None
        return Hinted(target, source or "", hint.hard)


def _preferred(name: str, hinted: Hinted) -> int:
    if name == hinted.target:
        return MOST
    return 0 if name == hinted.source else _ELSEWHERE
