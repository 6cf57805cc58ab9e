"""Who would rather be elsewhere and could be: the planner's own count of blocking pairs, many placements at once.

(p, n) blocks when p may run on n, likes n better at its turn than the node it has, and fits there, with the headroom
that it needs there, beside what cannot move and the pods that rank above it. Whether rules between pods let it come is
another question, asked only where it matters (`refused`), because it depends on the whole placement.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from matching.arrays import NOWHERE, TOLERANCE, Floats, Ints, Mask, share_of_room
from matching.case import Case
from matching.constraints import peaks
from matching.constraints.between_pods import BetweenPods
from matching.ledger import Ledger


@dataclass(frozen=True, slots=True)
class Claims:
    sure: Ints
    """Of each placement: blocking pairs of pods that no rule between pods is about."""
    doubtful: dict[int, Mask]
    """By pod that such rules are about: placements and nodes, where only they can stand against it."""
    degraded: Ints
    """Of each placement: pods whose node has no room for their peak with the headroom it should leave."""


def claims(case: Case, choosers: Mask, at: Ints) -> Claims:
    """`at` has one row per placement; who is no chooser is where it is now."""
    state, number = _Filling(case, choosers, len(at)), np.arange(len(at))
    sure, degraded = np.zeros(len(at), dtype=np.int64), np.zeros(len(at), dtype=np.int64)
    doubtful: dict[int, Mask] = {}
    for pod in case.ranking[choosers[case.ranking]].tolist():
        end = at[:, pod]
        spare, liking = state.fits_peak(pod), state.liking(pod)
        allowed = case.candidates.of(pod)
        welcome = (end != NOWHERE) & allowed[end]
        had = np.where(welcome, liking[number, end], np.iinfo(np.int64).max)
        wants: Mask = (liking < had[:, None]) & allowed & spare & state.fits(pod)
        wants[number[end != NOWHERE], end[end != NOWHERE]] = False
        degraded += (end != NOWHERE) & ~spare[number, end]
        if concerned(case, pod):
            doubtful[pod] = wants
        else:
            sure += wants.sum(axis=1)
        state.put(pod, end)
    return Claims(sure, doubtful, degraded)


def concerned(case: Case, pod: int) -> bool:
    neighbours = case.arrays.neighbours
    return neighbours is not None and neighbours.matters_to(pod)


def refused(case: Case, choosers: Mask, at: Ints, pod: int, node: int) -> bool:
    """Whether rules between pods keep a pod away from a node, in that placement, without the choosers there that rank
    below it."""
    between = BetweenPods(case.arrays.neighbours, len(case.arrays.nodes), case.arrays.home, at)
    place = np.flatnonzero(case.ranking == pod)[0]
    for other in case.ranking[place + 1 :].tolist():
        if choosers[other] and at[other] == node:
            between.take_out(other)
    return not between.allows_on(pod, node)


class _Filling:
    """The nodes while the pods are put there in rank order, in all placements side by side."""

    def __init__(self, case: Case, choosers: Mask, placements: int) -> None:
        self._case = case
        arrays = case.arrays
        ledger = Ledger(arrays, np.where(choosers, NOWHERE, arrays.home))
        self._free, self._load = (_each(amounts, placements) for amounts in (ledger.free, ledger.load))
        self._slots = np.tile(ledger.slots, (placements, 1))
        self._standing = _each(arrays.background + arrays.at_home.peak, placements)
        limit = 1 - arrays.options.headroom
        self._overloaded = share_of_room(self._standing[:, 0], arrays.allocatable).max(axis=0) > limit + TOLERANCE

    def fits(self, pod: int) -> Mask:
        """By requests and number of pods."""
        enough = (self._free >= self._case.arrays.least_free[:, pod, None, None]).all(axis=0)
        fits: Mask = enough & (self._slots >= 1)
        return fits

    def fits_peak(self, pod: int) -> Mask:
        arrays = self._case.arrays
        quota = peaks.quota(arrays.allocatable, arrays.options.headroom)
        if arrays.at_ease[pod]:
            quota[:, arrays.home[pod]] = arrays.allocatable[:, arrays.home[pod]]
        spare: Mask = np.logical_and.reduce(quota[:, None, :] - self._load > arrays.least_spare[:, pod, None, None])
        return spare

    def liking(self, pod: int) -> Ints:
        """Placements and nodes; the smaller, the better."""
        arrays, nodes = self._case.arrays, len(self._case.arrays.nodes)
        by_wish = np.empty(nodes, dtype=np.int64)
        by_wish[np.argsort(self._case.preferences.wishes(pod), kind="stable")] = np.arange(nodes)
        liking = np.tile(by_wish, (len(self._slots), 1))
        if not arrays.unhappy[pod]:
            return liking
        home, options = int(arrays.home[pod]), arrays.options
        here = self._worst(self._standing)[:, home]
        there = self._worst(self._standing + arrays.peak[:, pod, None, None])
        cured = self._overloaded[home] & (here < 1 - options.headroom - TOLERANCE)
        group = np.where(there <= here[:, None] - options.relief + TOLERANCE, 1, 3)
        group[:, home] = np.where(cured, 0, 2)
        grouped: Ints = liking + nodes * group
        return grouped

    def put(self, pod: int, end: Ints) -> None:
        arrays, home = self._case.arrays, int(self._case.arrays.home[pod])
        rows = np.flatnonzero(end != NOWHERE)
        self._free[:, rows, end[rows]] -= arrays.request[:, pod, None]
        self._load[:, rows, end[rows]] += arrays.peak[:, pod, None]
        self._slots[rows, end[rows]] -= 1
        if arrays.options.inertia > 0:
            self._standing[:, rows, end[rows]] += arrays.peak[:, pod, None]
            if home != NOWHERE:
                self._standing[:, :, home] -= arrays.peak[:, pod, None]

    def _worst(self, loads: Floats) -> Floats:
        worst: Floats = share_of_room(loads, self._case.arrays.allocatable[:, None, :]).max(axis=0)
        return worst


def _each(amounts: Floats, placements: int) -> Floats:
    return np.repeat(amounts[:, None, :], placements, axis=1)
