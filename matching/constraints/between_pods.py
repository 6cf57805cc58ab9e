"""Rules between pods while a planner tries placements: affinity, anti-affinity, topology spread, host ports.

The state is always one that a cluster could be in: a running pod counts where it is until it is put somewhere else.
So a planner that puts pods one after the other gets placements that can be reached by moves in that order, each of
which would pass kube-scheduler at its turn (the pod itself gone from where it was) and none of which makes a rule of
another pod worse: the last match of a required affinity is not taken away, no skew grows above what is allowed or was
there. Where a pod is, it may stay, whatever the rules say.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from matching.constraints.neighbours import Neighbours
from matching.constraints.tallies import Counts, Tally, count
from matching.shapes import NOWHERE, Ints, Mask


class BetweenPods:
    """`rules` None: there are no such rules, and everything here is free of cost."""

    def __init__(self, rules: Neighbours | None, nodes: int, home: Ints, at: Ints) -> None:
        """`at` says where each pod is; one that is NOWHERE there counts at its `home`."""
        self._rules = rules
        self._everywhere = np.ones(nodes, dtype=bool)
        self._everywhere.flags.writeable = False
        self._home = home
        self._counts: list[Ints] | None = None
        if rules is not None:
            self._at = np.where(at == NOWHERE, home, at)

    def allows(self, pod: int) -> Mask:
        """Where the pod may go as things are now, by the rules of all pods; not to be written to."""
        if self._rules is None:
            return self._everywhere
        kind, here = int(self._rules.kind_of_pod[pod]), int(self._at[pod])
        checks, duties = self._rules.checks[kind], self._rules.duties[kind] if here != NOWHERE else ()
        if not checks and not duties:
            return self._everywhere
        counts = self.counts
        self._change(pod, here, -1)
        answers = [check.allows(counts) for check in checks]
        answers += [duty.allows(counts, here) for duty in duties]
        self._change(pod, here, 1)
        allowed: Mask = np.logical_and.reduce(answers)
        if here != NOWHERE:
            allowed[here] = True
        return allowed

    def allows_on(self, pod: int, node: int) -> bool:
        return self._rules is None or bool(self.allows(pod)[node])

    def minds(self, pod: int) -> bool:
        """Whether the pod's coming and going can make a difference to any rule."""
        return self._rules is not None and bool(self._rules.tallies_of_kind[self._rules.kind_of_pod[pod]])

    def why_not(self, pod: int, node: int) -> str:
        """The first rule that keeps the pod from the node, in words; empty when none does."""
        here = NOWHERE if self._rules is None else int(self._at[pod])
        if self._rules is None or node == here:
            return ""
        counts = self.counts
        self.take_out(pod)
        found = next(self._refusals(pod, here, node, counts), "")
        self._at[pod] = here
        self._change(pod, here, 1)
        return found

    def _refusals(self, pod: int, here: int, node: int, counts: Counts) -> Iterator[str]:
        assert self._rules is not None
        kind = int(self._rules.kind_of_pod[pod])
        for check in self._rules.checks[kind]:
            if not check.allows(counts)[node]:
                yield check.why_not(self, node)
        for duty in self._rules.duties[kind] if here != NOWHERE else ():
            if not duty.allows(counts, here)[node]:
                yield duty.why_not(self, here, node)

    def put(self, pod: int, node: int) -> None:
        """It is there now and no longer where it was."""
        if self._rules is None:
            return
        if self._counts is not None:
            self._change(pod, int(self._at[pod]), -1)
            self._change(pod, node, 1)
        self._at[pod] = node

    def put_plain(self, pods: Ints, nodes: Ints) -> None:
        """Several at once that no rule is about; one that found no node stays where it was."""
        if self._rules is not None:
            self._at[pods] = np.where(nodes == NOWHERE, self._at[pods], nodes)

    def take(self, pod: int) -> None:
        """A pod without a home is gone at once; one that runs counts where it is until it is put somewhere else."""
        if self._home[pod] == NOWHERE:
            self.take_out(pod)

    def take_out(self, pod: int) -> None:
        """It is nowhere, and counts nowhere."""
        if self._rules is None:
            return
        if self._counts is not None:
            self._change(pod, int(self._at[pod]), -1)
        self._at[pod] = NOWHERE

    @property
    def counts(self) -> Counts:
        """Made when first asked for: many who hold a ledger never ask."""
        if self._counts is None:
            assert self._rules is not None
            self._counts = count(self._rules.tallies, self._rules.kind_of_pod, self._at)
        return self._counts

    def someone(self, tally: Tally, node: int) -> str:
        assert self._rules is not None
        placed = np.flatnonzero(tally.members[self._rules.kind_of_pod] & (self._at != NOWHERE))
        there = placed[tally.place[self._at[placed]] == tally.place[node]]
        return self._rules.pods[int(there[0])].key if len(there) else "a pod"

    def _change(self, pod: int, node: int, by: int) -> None:
        if node == NOWHERE:
            return
        assert self._rules is not None
        assert self._counts is not None
        for tally in self._rules.tallies_of_kind[self._rules.kind_of_pod[pod]]:
            place = tally.place[node]
            if place != NOWHERE:
                self._counts[tally.number][place] += by
