"""Serial choice: in rank order each pod takes the node it likes best of those where it still fits.

All nodes rank the pods alike, so nobody who chooses later can claim the place of one who chose earlier, and the
result is the one stable matching for the quotas. A happy pod fits at home when the peaks fit at all (`ledger`), so it
is displaced only where pods that rank higher leave less than that. A pod that fits nowhere with the full headroom
tries again, at its turn, with half of it and with none; then it takes the node that ends least overloaded. So nobody
loses a node for lack of room by peaks, only for lack of room by requests.
"""

from __future__ import annotations

import numpy as np

from matching.arrays import NOWHERE, Ints, Mask
from matching.case import Case
from matching.ledger import Ledger
from matching.outcome import Choice
from matching.preferences import DECIMALS
from matching.standing import Standing

_MOST_ROUNDS = 5


def serial_choice(case: Case, choosers: Mask, at: Ints) -> Choice:
    """The others stay as `at` says. A chooser that no node can take by requests ends NOWHERE."""
    at = np.where(choosers, NOWHERE, at)
    ledger, standing = Ledger(case.arrays, at), Standing(case.arrays)
    headroom: dict[int, float | None] = {}
    wanted = case.arrays.options.headroom
    ranked = case.ranking[choosers[case.ranking]]
    for pod, favourite in zip(ranked.tolist(), case.tastes.favourite[ranked].tolist(), strict=True):
        at_once = favourite != NOWHERE and ledger.takes(pod, favourite)
        node, given = (favourite, wanted) if at_once else _take(case, ledger, standing, pod)
        if node == NOWHERE:
            continue
        if given != wanted:
            headroom[pod] = given
        at[pod] = node
        ledger.put(pod, node)
        standing.went(pod, node)
    return Choice(at, choosers, headroom)


def choice_for_all(case: Case, choosers: Mask) -> Choice | None:
    """Serial choice in which every running pod ends with a node.

    Sizes can make a pod that chooses late find no room by requests anywhere, not even at home. Such pods keep their
    node beforehand and the choice begins again. None when that does not settle in a few rounds.
    """
    home = case.arrays.home
    kept = np.zeros(len(home), dtype=bool)
    for _ in range(_MOST_ROUNDS):
        choice = serial_choice(case, choosers & ~kept, home)
        left_out = (choice.at == NOWHERE) & (home != NOWHERE)
        if not left_out.any():
            return Choice(choice.at, choice.chose, choice.headroom, frozenset(np.flatnonzero(kept).tolist()))
        kept |= left_out
    return None


def _take(case: Case, ledger: Ledger, standing: Standing, pod: int) -> tuple[int, float | None]:
    """The node, and the headroom it was found with; None when there was no room even without any."""
    allowed = case.candidates.of(pod) & ledger.fits(pod)
    if not allowed.any():
        return NOWHERE, None
    for headroom in _headroom_steps(case.arrays.options.headroom):
        roomy = allowed & ledger.fits_peak(pod, headroom)
        if roomy.any():
            return case.preferences.choose(pod, roomy, standing), headroom
    return _least_overloaded(case, ledger, standing, pod, allowed), None


def _least_overloaded(case: Case, ledger: Ledger, standing: Standing, pod: int, allowed: Mask) -> int:
    """Staying wins ties, then the pod's own preference."""
    worst = np.where(allowed, ledger.shares_with(pod).max(axis=0).round(DECIMALS), np.inf)
    best: Mask = worst == worst.min()
    home = int(case.arrays.home[pod])
    if home != NOWHERE and best[home]:
        return home
    return case.preferences.choose(pod, best, standing)


def _headroom_steps(full: float) -> tuple[float, ...]:
    return (full, full / 2, 0.0) if full > 0 else (0.0,)
