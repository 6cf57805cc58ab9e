"""A matching with fewer blocking pairs than serial choice leaves, on small instances: every placement is looked at.

With rules between pods, or when nobody may be left out, serial choice need not end in a stable matching even where
there is one. Up to MOST_PLACEMENTS placements are all judged: of those in which nobody who runs loses its node and the
moves can be made in some order, the one with the fewest blocking pairs is taken, then the one with the fewest moves. It
must not take headroom from more pods than serial choice does.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from matching.arrays import NOWHERE, Ints, Mask
from matching.case import Case
from matching.outcome import Choice
from matching.planners.all_placements import all_placements
from matching.planners.claims import Claims, claims, refused
from matching.possible import order_of
from matching.problem import Availability

MOST_PLACEMENTS = 1 << 12
"""Six pods that may use four nodes, or seven that may use three."""


def steadier(case: Case, choosers: Mask, choice: Choice) -> Choice:
    """The choice itself where it leaves no blocking pair, where there are too many placements, and where what a pod
    likes depends on who chose before it."""
    lists_change = case.problem.options.availability is Availability.AFTER
    if lists_change or (case.arrays.neighbours is None and not choice.kept_home):
        return choice
    placements = all_placements(case, choosers & (choice.at != NOWHERE), case.arrays.home, MOST_PLACEMENTS)
    if placements is None:
        return choice
    mine = claims(case, choosers, choice.at[None])
    blocking = _blocking(case, choosers, choice.at, mine, 0, np.iinfo(np.int64).max)
    if blocking == 0:
        return choice
    at = _steadiest(case, choosers, placements.at, (int(mine.degraded[0]), blocking))
    if at is None:
        return choice
    at_home = np.flatnonzero(choosers & (at == case.arrays.home)).tolist()
    stayed = frozenset(pod for pod in at_home if _kept(case, choice, pod))
    headroom = {pod: given for pod, given in choice.headroom.items() if at[pod] == choice.at[pod]}
    return replace(choice, at=at, chose=choosers, headroom=headroom, kept_home=stayed)


def _kept(case: Case, choice: Choice, pod: int) -> bool:
    """At home only so that nobody is left out: serial choice kept it there, or its rules drive it out."""
    home = int(case.arrays.home[pod])
    return pod in choice.kept_home or (home != NOWHERE and not case.candidates.of(pod)[home])


def _steadiest(case: Case, choosers: Mask, at: Ints, found: tuple[int, int]) -> Ints | None:
    """None when no placement has fewer blocking pairs than was found."""
    judged = claims(case, choosers, at)
    degraded, most = found
    doubts = sum((wants.sum(axis=1) for wants in judged.doubtful.values()), np.zeros(len(at), dtype=np.int64))
    moves = (at != case.arrays.home).sum(axis=1)
    best: Ints | None = None
    for row in np.lexsort((moves, doubts, judged.sure)).tolist():
        if judged.sure[row] >= most:
            break
        if judged.degraded[row] > degraded:
            continue
        blocking = _blocking(case, choosers, at[row], judged, row, most)
        if blocking < most and not order_of(case, at[row]).refused:
            best, most = at[row], blocking
    return best


def _blocking(case: Case, choosers: Mask, at: Ints, judged: Claims, row: int, most: int) -> int:
    """Counted no further than `most`."""
    count = int(judged.sure[row])
    for pod, wants in judged.doubtful.items():
        for node in np.flatnonzero(wants[row]).tolist():
            if count >= most:
                return count
            count += not refused(case, choosers, at, pod, node)
    return count
