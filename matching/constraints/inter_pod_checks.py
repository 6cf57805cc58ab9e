"""What all inter-pod checks have in common: the protocols, the table they are collected in, and the one check that both
anti-affinity and host ports use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from matching.array_types import Mask
from matching.constraints.pod_counts import Counts, PodCounter, PodCounters, PodKind


class CountedPods(Protocol):
    @property
    def counts(self) -> Counts: ...

    def example(self, counter: PodCounter, node: int) -> str:
        """The name of a pod that the counter counts in the domain of that node."""


class ArrivalCheck(Protocol):
    """A filter of kube-scheduler: may a pod of this kind come? The pod itself is already taken out of the counts."""

    def allows(self, counts: Counts) -> Mask:
        """For all nodes at once."""
        ...

    def why_not(self, counted: CountedPods, node: int) -> str: ...


class DepartureCheck(Protocol):
    """A move of a running pod must not make a constraint of another pod worse. kube-scheduler has no such filter, so
    pending pods skip it. The pod is already taken out of the counts; `here` is the node it was taken from."""

    def allows(self, counts: Counts, here: int) -> Mask: ...

    def why_not(self, counted: CountedPods, here: int, node: int) -> str: ...


@dataclass(frozen=True, slots=True)
class NoPodCounted:
    """The node's domain must not have any of the counted pods."""

    counter: PodCounter
    reason: str
    """With `{pod}` for one of those pods and `{domain}` for the domain."""

    def allows(self, counts: Counts) -> Mask:
        clear: Mask = counts[self.counter.number][self.counter.domain_of] == 0
        return clear

    def why_not(self, counted: CountedPods, node: int) -> str:
        return self.reason.format(pod=counted.example(self.counter, node), domain=self.counter.domain_name(node))


class CheckTable:
    """The checks by kind of pods, in the order in which they are asked."""

    def __init__(self, kinds: Sequence[PodKind], counters: PodCounters) -> None:
        self.kinds, self.counters = kinds, counters
        self.arrivals: list[list[ArrivalCheck]] = [[] for _ in kinds]
        self.departures: list[list[DepartureCheck]] = [[] for _ in kinds]

    def add_arrival(self, kinds: Mask, check: ArrivalCheck) -> None:
        for number in np.flatnonzero(kinds).tolist():
            self.arrivals[number].append(check)

    def add_departure(self, counter: PodCounter, check: DepartureCheck) -> None:
        """For all pods that the counter counts."""
        for number in np.flatnonzero(counter.members).tolist():
            self.departures[number].append(check)
