"""What a running pod that moves owes to the others: no rule of a pod that stays gets worse by its going.

kube-scheduler does not ask this of a pod that it places for the first time, so pending pods owe nothing. The pod is
already taken out of the counts; `here` is the node it was taken from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from matching.constraints.checks import Evenness, Scene
from matching.constraints.tallies import Counts, Tally
from matching.shapes import NOWHERE, Ints, Mask


class Duty(Protocol):
    def allows(self, counts: Counts, here: int) -> Mask: ...

    def why_not(self, scene: Scene, here: int, node: int) -> str: ...


@dataclass(frozen=True, slots=True)
class KeepsEven:
    """A move of a running pod makes no spread that counts it worse than allowed, or than it is already."""

    evenness: Evenness

    def allows(self, counts: Counts, here: int) -> Mask:
        after, limit = self._skews(counts, here)
        fine: Mask = after[self.evenness.tally.place] <= limit
        return fine

    def why_not(self, scene: Scene, here: int, node: int) -> str:
        after, _ = self._skews(scene.counts, here)
        return self.evenness.words(int(after[self.evenness.tally.place[node]]))

    def _skews(self, counts: Counts, here: int) -> tuple[Ints, int]:
        """The skew if the pod went to each domain (the last slot: to none that counts), and what it may be."""
        evenness, mine = self.evenness, counts[self.evenness.tally.number]
        before = mine.copy()
        if evenness.tally.place[here] != NOWHERE:
            before[evenness.tally.place[here]] += 1
        after = np.full(len(mine), evenness.skew(mine), dtype=np.int64)
        if len(evenness.eligible):
            after[evenness.eligible] = _skews_with_one_more(evenness, mine[evenness.eligible])
        return after, max(evenness.max_skew, evenness.skew(before))


def _skews_with_one_more(evenness: Evenness, counts: Ints) -> Ints:
    highest: Ints = np.maximum(counts + 1, counts.max())
    if len(counts) < evenness.min_domains:
        return highest
    lowest, runner_up = np.partition(np.append(counts, counts.max() + 1), 1)[:2].tolist()
    lifted = np.where(counts == lowest, min(lowest + 1, runner_up), lowest)
    skews: Ints = highest - lifted
    return skews


@dataclass(frozen=True, slots=True)
class StillNeeded:
    """A move of a running pod does not take the last match away from a pod that requires one beside it."""

    tally: Tally
    """The pods that match."""
    owners: Tally
    """Pods that require it and do not match themselves."""
    likes: Tally
    """Pods that require it and match: one of them alone has nobody left."""

    def allows(self, counts: Counts, here: int) -> Mask:
        place = self.tally.place
        if place[here] == NOWHERE or not self._missed(counts, int(place[here])):
            return np.ones(len(place), dtype=bool)
        same: Mask = place == place[here]
        return same

    def why_not(self, scene: Scene, here: int, node: int) -> str:
        domain = int(self.tally.place[here])
        lonely = self.owners if scene.counts[self.owners.number][domain] else self.likes
        return f"{scene.someone(lonely, here)} requires it on {self.tally.where(here)}, not on {self.tally.where(node)}"

    def _missed(self, counts: Counts, domain: int) -> bool:
        left = counts[self.tally.number][domain]
        owners, likes = counts[self.owners.number][domain], counts[self.likes.number][domain]
        return bool((left == 0 and owners > 0) or (left == 1 and likes == 1))
