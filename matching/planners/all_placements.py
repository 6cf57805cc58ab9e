"""Every placement of a few pods, as arrays: for instances small enough to look at all of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from matching.arrays import NOWHERE, TOLERANCE, Floats, Ints, Mask
from matching.case import Case
from matching.ledger import Ledger


@dataclass(frozen=True, slots=True)
class Placements:
    at: Ints
    """One row per placement, one column per pod."""
    loads: Floats
    """Peaks: axes, placements, nodes."""


def all_placements(case: Case, free: Mask, start: Ints, most: int) -> Placements | None:
    """Of the free pods; the others are as `start` says. Each may stay where it is, and what arrives on a node fits
    there by requests and number of pods. None when there would be more than so many."""
    arrays = case.arrays
    pods = np.flatnonzero(free).tolist()
    choices: list[Ints] = []
    total = 1
    for pod in pods:
        choices.append(_choices(case, pod, int(start[pod])))
        total *= len(choices[-1])
        if total > most:
            return None
    at = np.tile(start, (total, 1))
    number, stride = np.arange(total), 1
    for pod, nodes in zip(pods, choices, strict=True):
        at[:, pod] = nodes[number // stride % len(nodes)]
        stride *= len(nodes)
    at = at[_fit(case, at, pods, start)]
    without = np.where(free, NOWHERE, start)
    return Placements(at, _sums(Ledger(arrays, without).load, arrays.peak, at, pods))


def _choices(case: Case, pod: int, here: int) -> Ints:
    allowed = case.candidates.of(pod)
    if here != NOWHERE:
        allowed[here] = True
    return np.flatnonzero(allowed)


def _sums(base: Floats, amounts: Floats, at: Ints, pods: list[int]) -> Floats:
    sums = np.repeat(base[:, None, :], len(at), axis=1)
    rows = np.arange(len(at))
    for pod in pods:
        sums[:, rows, at[:, pod]] += amounts[:, pod, None]
    return sums


def _fit(case: Case, at: Ints, pods: list[int], start: Ints) -> Mask:
    arrays, rows = case.arrays, np.arange(len(at))
    chosen = np.zeros(len(start), dtype=bool)
    chosen[pods] = True
    ledger = Ledger(arrays, np.where(chosen, NOWHERE, start))
    left = -_sums(-ledger.free, arrays.request, at, pods)
    slots = np.tile(ledger.slots, (len(at), 1))
    fits = np.ones(len(at), dtype=bool)
    for pod in pods:
        slots[rows, at[:, pod]] -= 1
    slack = -TOLERANCE * max(1, len(pods))
    for pod in pods:
        node = at[:, pod]
        enough = ((left[:, rows, node] >= slack) | (arrays.request[:, pod, None] == 0)).all(axis=0)
        fits &= (node == start[pod]) | (enough & (slots[rows, node] >= 0))
    return fits
