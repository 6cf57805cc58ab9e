"""Serial choice: in rank order each pod takes the node it likes best of those where it still fits.

All nodes rank the pods alike, so nobody who chooses later can claim the place of one who chose earlier, and the
result is the one stable matching for the quotas. A happy pod fits at home when the peaks fit at all (`ledger`), so it
is displaced only where pods that rank higher leave less than that. A pod that fits nowhere with the full headroom
tries again, at its turn, with half of it and with none; then it takes the node that ends least overloaded. So nobody
loses a node for lack of room by peaks, only for lack of room by requests.

Most pods of a large cluster are plain: happy or pending, without soft wishes, and no rule between pods is about them.
`matching.compiled` lets them choose, run after run, with the same result.
"""

from __future__ import annotations

from types import ModuleType

import numpy as np

from matching.arrays import NOWHERE, Ints, Mask
from matching.case import Case
from matching.compiled import loading
from matching.compiled.arena import Arena
from matching.compiled.layout import Run
from matching.ledger import Ledger, headroom_steps
from matching.outcome import Choice
from matching.planners.placing import nobody_left_out
from matching.preferences import DECIMALS
from matching.problem import Availability
from matching.standing import Standing

_NOWHERE_ASKED = np.zeros(0, dtype=bool)


def serial_choice(case: Case, choosers: Mask, at: Ints) -> Choice:
    """The others stay as `at` says. A chooser that no node can take by requests ends NOWHERE."""
    turns = _Turns(case, choosers, at)
    ranked = case.ranking[choosers[case.ranking]]
    kernels = loading.kernels(len(ranked), len(case.arrays.nodes))
    if kernels is None or not case.arrays.nodes:
        turns.one_by_one(ranked)
    else:
        turns.run_by_run(kernels, ranked)
    return Choice(turns.at, choosers, turns.headroom)


def choice_for_all(case: Case, choosers: Mask) -> Choice | None:
    """Serial choice in which every running pod ends with a node; None as in `nobody_left_out`."""
    home = case.arrays.home
    return nobody_left_out(home, lambda kept: serial_choice(case, choosers & ~kept, home))


class _Turns:
    def __init__(self, case: Case, choosers: Mask, at: Ints) -> None:
        self._case = case
        self.at: Ints = np.where(choosers, NOWHERE, at)
        self.headroom: dict[int, float | None] = {}
        self._ledger, self._standing = Ledger(case.arrays, self.at), Standing(case.arrays)

    def one_by_one(self, ranked: Ints) -> None:
        """Most pods get the node they like best, and to find that for all of them at once pays where many are asked."""
        if self._case.arrays.options.availability is Availability.AFTER or 2 * len(ranked) < self._case.movable.sum():
            favourites = np.full(len(ranked), NOWHERE)
        else:
            favourites = self._case.favourites[ranked]
        for pod, favourite in zip(ranked.tolist(), favourites.tolist(), strict=True):
            self._choose(pod, favourite)

    def run_by_run(self, kernels: ModuleType, ranked: Ints) -> None:
        """A run ends with a pod that rules between pods are about, or before one that is asked in numpy."""
        arena = self._case.ground.arena(self._ledger, self._standing)
        kernels.refresh_all(arena.places, arena.blocks, arena.ways.after)
        arrays, begin = self._case.arrays, 0
        stops = arrays.choosy if arrays.neighbours is None else arrays.choosy | arrays.neighbours.involved
        for place in [*np.flatnonzero(stops[ranked]).tolist(), len(ranked)]:
            last = int(ranked[place]) if place < len(ranked) else NOWHERE
            alone = last == NOWHERE or bool(arrays.choosy[last])
            self._run(kernels, arena, ranked[begin : place if alone else place + 1], among=None if alone else last)
            begin = place + 1
            if alone and last != NOWHERE and (node := self._choose(last, NOWHERE)) != NOWHERE:
                kernels.refresh(arena.places, arena.blocks, node, arena.ways.after)

    def _run(self, kernels: ModuleType, arena: Arena, pods: Ints, among: int | None) -> None:
        """`among`: the pod that the rules between pods are about, the last one; nobody else makes a difference to them,
        so they may be asked before the run. The answer is copied, since numba compiles anew for a read-only array."""
        if not len(pods):
            return
        allowed = _NOWHERE_ASKED if among is None else self._ledger.between.allows(among).copy()
        run = Run(pods, among is not None, allowed, arena.notes)
        nodes, given = np.full(len(pods), NOWHERE), np.zeros(len(pods), dtype=np.int64)
        kernels.choose_in_turn(arena.places, arena.blocks, arena.guests, arena.ways, run, (nodes, given))
        self.at[pods] = nodes
        plain = len(pods) if among is None else len(pods) - 1
        self._ledger.between.put_plain(pods[:plain], nodes[:plain])
        if among is not None and nodes[-1] != NOWHERE:
            self._ledger.between.put(among, int(nodes[-1]))
        steps: tuple[float | None, ...] = (*headroom_steps(self._case.arrays.options.headroom), None)
        for place in np.flatnonzero((nodes != NOWHERE) & (given > 0)).tolist():
            self.headroom[int(pods[place])] = steps[int(given[place])]

    def _choose(self, pod: int, favourite: int) -> int:
        if favourite != NOWHERE and self._ledger.takes(pod, favourite):
            return self._goes(pod, favourite, self._case.arrays.options.headroom)
        return self._goes(pod, *_take(self._case, self._ledger, self._standing, pod))

    def _goes(self, pod: int, node: int, given: float | None) -> int:
        if node != NOWHERE:
            self.at[pod] = node
            if given != self._case.arrays.options.headroom:
                self.headroom[pod] = given
            self._ledger.put(pod, node)
            self._standing.went(pod, node)
        return node


def _take(case: Case, ledger: Ledger, standing: Standing, pod: int) -> tuple[int, float | None]:
    """The node, and the headroom it was found with; None when there was no room even without any."""
    allowed = case.candidates.of(pod) & ledger.fits(pod)
    if not allowed.any():
        return NOWHERE, None
    for headroom in headroom_steps(case.arrays.options.headroom):
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
